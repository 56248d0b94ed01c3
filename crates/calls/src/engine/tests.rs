//! The rules of the storage layer, one by one, and what always holds.

use proptest::prelude::*;
use wavetank_model::{FetchPolicy, LayoutId, Prefetch, Row};

use super::*;
use crate::plan::{AdapterPlan, EvictionPlan, L1Plan, LoadPolicy, StorePolicy};

const SECOND: u64 = 1_000_000_000;
const OBJECT: u64 = 4096;

fn eviction(trigger_watermark: f64, eviction_ratio: f64) -> EvictionPlan {
    EvictionPlan { policy: "lru".to_owned(), trigger_watermark, eviction_ratio }
}

/// Memory for `l1` objects, and a tier behind it for `l2`.
fn plan(l1: u64, l2: u64) -> Plan {
    Plan {
        l1: L1Plan {
            quotas: Default::default(),
            capacity_bytes: Some(l1 * OBJECT),
            align_bytes: OBJECT,
            write_ttl: Nanos(600 * SECOND),
            read_ttl: Nanos(300 * SECOND),
            eviction: eviction(0.5, 0.5),
        },
        adapters: vec![AdapterPlan {
            quotas: Default::default(),
            medium: crate::plan::Medium::Mock,
            capacity_bytes: Some(l2 * OBJECT),
            bytes_per_second: None,
            eviction: Some(eviction(0.9, 0.1)),
        }],
        store_delay: Nanos(SECOND / 1000),
        store_policy: StorePolicy::Default,
        load_policy: LoadPolicy::Default,
    }
}

fn engine(plan: &Plan) -> Engine {
    let mut engine = Engine::new(plan, &Tempo::Clock(vec![Ticks::default(); 2])).unwrap();
    engine.know(64);
    engine
}

fn keys(numbers: &[u32]) -> Vec<KeyId> {
    numbers.iter().map(|&number| KeyId(number)).collect()
}

fn grid(rows: &[&[u32]]) -> Prefetch {
    let row =
        |numbers: &&[u32]| Row { keys: keys(numbers).into(), group: 0, layout: LayoutId(0), window: -1 };
    Prefetch::of(rows.iter().map(row).collect::<Box<[Row]>>())
}

fn reserve(engine: &mut Engine, numbers: &[u32]) -> Vec<Fate> {
    let mut fates = Vec::new();
    engine.reserve_write(&keys(numbers), OBJECT, &mut fates);
    fates
}

fn finish(engine: &mut Engine, numbers: &[u32]) -> Vec<Fate> {
    let mut fates = Vec::new();
    engine.finish_write(&keys(numbers), &mut fates);
    fates
}

fn store(engine: &mut Engine, numbers: &[u32]) {
    assert!(reserve(engine, numbers).iter().chain(&finish(engine, numbers)).all(|fate| *fate == Fate::Done));
}

fn fetch(engine: &mut Engine, asked: &Prefetch) -> Vec<Fate> {
    let mut fates = Vec::new();
    engine.prefetch(asked, &mut fates);
    fates
}

fn release(engine: &mut Engine, numbers: &[u32]) -> Vec<Fate> {
    let mut fates = Vec::new();
    engine.finish_read(&keys(numbers), 1, &mut fates);
    fates
}

#[test]
fn a_batch_gets_all_of_its_room_or_none() {
    let mut engine = engine(&plan(4, 8));
    store(&mut engine, &[0, 1]);
    assert_eq!(
        reserve(&mut engine, &[0, 2, 3, 4]),
        [Fate::Resident, Fate::NoMemory, Fate::NoMemory, Fate::NoMemory]
    );
    assert_eq!(engine.used().0, 2 * OBJECT);
    assert_eq!(reserve(&mut engine, &[2, 3, 2]), [Fate::Done, Fate::Done, Fate::Staged]);
    assert_eq!(finish(&mut engine, &[2, 5]), [Fate::Done, Fate::Absent]);
}

#[test]
fn only_whole_prefixes_are_hits_and_hits_are_held() {
    let mut engine = engine(&plan(16, 16));
    store(&mut engine, &[0, 1, 2, 10, 12]);
    let fates = fetch(&mut engine, &grid(&[&[0, 1, 2], &[10, 11, 12]]));
    let absent = Fate::Absent;
    assert_eq!(fates, [Fate::FirstTier, absent, absent, Fate::FirstTier, absent, absent]);
    assert_eq!(release(&mut engine, &[0, 1, 11]), [Fate::Done, Fate::Unlocked, Fate::Absent]);
    assert_eq!(engine.held(), 1, "the other row's chunk");
}

/// Broken by: objects from behind that stay, or that leave under another reader.
#[test]
fn what_came_from_behind_leaves_with_its_last_reader() {
    let mut engine = engine(&plan(4, 8));
    store(&mut engine, &[0, 1]);
    engine.advance(Nanos(SECOND / 2));
    // The loop of memory looks at half a capacity and takes half of the objects, oldest first: 1, whose chunk
    // is the later one.
    engine.advance(Nanos(SECOND));
    assert_eq!(engine.background().l1.evicted, 1);
    let asked = grid(&[&[0, 1]]);
    assert_eq!(fetch(&mut engine, &asked), [Fate::FirstTier, Fate::LowerTier]);
    assert_eq!(fetch(&mut engine, &asked), [Fate::FirstTier, Fate::FirstTier]);
    assert_eq!(release(&mut engine, &[0, 1]), [Fate::Done, Fate::Done]);
    assert_eq!(engine.used().0, 2 * OBJECT, "a reader is left");
    release(&mut engine, &[0, 1]);
    assert_eq!(engine.used().0, OBJECT, "what was written stays");
}

/// Broken by: a row that is kept where another row of the same chunks got no room, or did not come.
#[test]
fn all_that_is_there_is_trimmed_to_what_every_row_gets() {
    let behind = |l1: u64| {
        let mut engine = Engine::new(&plan(l1, 16), &Tempo::Told).unwrap();
        engine.know(64);
        for row in [[0, 1, 2, 3], [4, 5, 6, 7]] {
            store(&mut engine, &row);
            engine.end_copy(0, &keys(&row), &[]);
            keys(&row).iter().for_each(|key| assert!(engine.l1.forget(*key, engine.now)));
        }
        engine
    };
    let full = Prefetch { policy: FetchPolicy::Full, ..grid(&[&[0, 1, 2, 3], &[4, 5, 6, 7]]) };
    let mut tight = behind(4);
    assert_eq!(fetch(&mut tight, &full), [[Fate::Absent; 4], [Fate::NoMemory; 4]].concat());
    assert_eq!((tight.held(), tight.used().0), (0, 0));
    // With room for all of it, a load that fails takes its column along.
    let (mut wide, mut fates) = (behind(8), Vec::new());
    let fetching = wide.begin_prefetch(&full, &mut fates);
    fates.clear();
    wide.end_prefetch(&full, fetching, &keys(&[5]), &mut fates);
    let (came, absent) = (Fate::LowerTier, Fate::Absent);
    assert_eq!(fates, [came, absent, came, came, came, Fate::Failed, came, came]);
    assert_eq!((wide.held(), wide.used().0), (6, 6 * OBJECT));
    // What is only not there is no reason to give up the rest.
    let odd = Prefetch { policy: FetchPolicy::Full, ..grid(&[&[0, 9], &[4, 5]]) };
    assert_eq!(fetch(&mut behind(8), &odd), [came, absent, came, came]);
}

/// Broken by: asking for room where none is needed. It then never ends.
#[test]
fn a_prefetch_of_nothing_ends_even_in_memory_that_is_overfull() {
    let mut engine = engine(&plan(1, 8));
    keys(&[0, 1]).iter().for_each(|key| engine.force_in(*key, OBJECT, 1));
    assert_eq!(fetch(&mut engine, &grid(&[&[0, 1, 2]])), [Fate::FirstTier, Fate::FirstTier, Fate::Absent]);
}

/// Broken by: room that is given back by what is there at the end.
#[test]
fn what_is_taken_out_while_it_is_loaded_costs_no_room() {
    let mut engine = Engine::new(&plan(4, 8), &Tempo::Told).unwrap();
    engine.know(64);
    store(&mut engine, &[0]);
    engine.end_copy(0, &keys(&[0]), &[]);
    assert_eq!(engine.pass(0), None);
    engine.force_in(KeyId(1), OBJECT, 1);
    assert_eq!(engine.pass(0), Some(1));
    let (asked, mut fates) = (grid(&[&[0]]), Vec::new());
    let fetching = engine.begin_prefetch(&asked, &mut fates);
    assert_eq!(fates, [Fate::LowerTier]);
    engine.force_out(KeyId(0));
    engine.end_prefetch(&asked, fetching, &[], &mut fates);
    assert_eq!(engine.used(), (engine.l1.counted(), vec![0]));
    release(&mut engine, &[0, 1]);
    assert_eq!(engine.used().0, 0);
}

#[test]
fn what_is_held_is_not_evicted_and_locks_expire() {
    let mut engine = engine(&plan(2, 8));
    store(&mut engine, &[0, 1]);
    fetch(&mut engine, &grid(&[&[0, 1]]));
    engine.advance(Nanos(3 * SECOND));
    assert_eq!(engine.background().l1.evicted, 0);
    engine.advance(Nanos(301 * SECOND));
    assert!(engine.background().l1.evicted > 0, "readers have 300 s");
    assert_ne!(release(&mut engine, &[1]), [Fate::Done]);
}

#[test]
fn a_tier_behind_takes_what_fits_in_order() {
    let mut engine = engine(&plan(16, 2));
    store(&mut engine, &[0, 1, 2]);
    engine.advance(Nanos(SECOND / 10));
    assert_eq!((engine.background().behind().copied, engine.background().behind().dropped), (2, 1));
    assert_eq!(engine.used().1, [2 * OBJECT]);
}

#[derive(Clone, Debug)]
enum Act {
    Write(Vec<u32>),
    Fetch(Vec<u32>),
    Release(Vec<u32>),
    Wait(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let numbers = || prop::collection::vec(0u32..24, 1..6);
    let act = prop_oneof![
        numbers().prop_map(Act::Write),
        numbers().prop_map(Act::Fetch),
        numbers().prop_map(Act::Release),
        (1u64..3_000_000_000).prop_map(Act::Wait),
    ];
    prop::collection::vec(act, 1..60)
}

fn perform(engine: &mut Engine, acts: &[Act]) -> Vec<Fate> {
    let (mut now, mut all) = (0, Vec::new());
    for act in acts {
        match act {
            Act::Write(numbers) => {
                all.extend(reserve(engine, numbers));
                all.extend(finish(engine, numbers));
            }
            Act::Fetch(numbers) => all.extend(fetch(engine, &grid(&[numbers]))),
            Act::Release(numbers) => all.extend(release(engine, numbers)),
            Act::Wait(span) => {
                now += span;
                engine.advance(Nanos(now));
            }
        }
    }
    all
}

proptest! {
    /// Broken by: bytes that are booked twice or never given back, a capacity that is exceeded, an order that
    /// depends on anything but the calls.
    #[test]
    fn books_are_kept(acts in acts()) {
        let plan = plan(8, 12);
        let mut first = engine(&plan);
        let fates = perform(&mut first, &acts);
        prop_assert_eq!(first.used().0, first.l1.counted());
        prop_assert!(first.used().0 <= 8 * OBJECT && first.used().1[0] <= 12 * OBJECT);
        let mut second = engine(&plan);
        prop_assert_eq!(perform(&mut second, &acts), fates);
    }

    /// Broken by: a refusal or a miss without a reason.
    #[test]
    fn without_limits_what_was_written_is_found(acts in acts()) {
        let mut plan = plan(0, 0);
        plan.l1.capacity_bytes = None;
        plan.adapters[0].capacity_bytes = None;
        let mut engine = engine(&plan);
        let fates = perform(&mut engine, &acts);
        prop_assert!(fates.iter().all(|fate| !matches!(fate, Fate::NoMemory | Fate::LowerTier)));
        let written: std::collections::BTreeSet<u32> = acts.iter().flat_map(|act| match act {
            Act::Write(numbers) => numbers.clone(),
            _ => Vec::new(),
        }).collect();
        for number in 0..24 {
            let found = fetch(&mut engine, &grid(&[&[number]])) == [Fate::FirstTier];
            prop_assert_eq!(found, written.contains(&number));
        }
    }

    /// Broken by: a use that does not renew, forgets a lock or a temporary object, or renews what others
    /// hold for too long.
    #[test]
    fn one_use_is_a_prefetch_a_read_and_its_end(acts in acts(), uses in prop::collection::vec(0u32..24, 60)) {
        let plan = plan(8, 12);
        let (mut quick, mut slow) = (engine(&plan), engine(&plan));
        for (act, number) in acts.iter().zip(uses) {
            let fates = perform(&mut quick, std::slice::from_ref(act));
            prop_assert_eq!(perform(&mut slow, std::slice::from_ref(act)), fates);
            let is_there = quick.l1.is_resident(KeyId(number));
            prop_assert_eq!(quick.use_resident(KeyId(number)), is_there);
            if is_there {
                prop_assert_eq!(fetch(&mut slow, &grid(&[&[number]])), [Fate::FirstTier]);
                let mut fates = Vec::new();
                slow.read_enter(&keys(&[number]), &mut fates);
                prop_assert_eq!(fates, [Fate::Done]);
                prop_assert_eq!(release(&mut slow, &[number]), [Fate::Done]);
            }
            prop_assert_eq!((quick.used(), quick.held()), (slow.used(), slow.held()));
        }
        // They leave in the same order.
        quick.keep_notes();
        slow.keep_notes();
        prop_assert_eq!(quick.pass_up_to(0, Some(24)), slow.pass_up_to(0, Some(24)));
        let (mut one, mut other) = (Vec::new(), Vec::new());
        quick.take_notes(&mut one);
        slow.take_notes(&mut other);
        prop_assert_eq!(one, other);
    }
}
