//! What is recorded is what happened: the recording of a store that threads work on, walked in the order of
//! time with a plain set of keys, agrees with every outcome in it and with what callers were told.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::thread;

use rand::RngExt;
use wavetank_bench::Unwatched;
use wavetank_cache::{Promotion, Rules, WritePolicy, eviction};
use wavetank_model::{Fate, Recorded, StorageCall, seeded};
use wavetank_store::backends::{self, Site};
use wavetank_store::{Existing, Key, Lane, Listener, Outcome, Payload, Put, Store, Tier, Want};
use wavetank_trace::Input;
use wavetank_trace::calls::CallReader;
use wavetank_trace::calls::lct::{FRAME_LIMIT, Reader};

use super::*;
use crate::bench::args::{BenchArgs, GenerationMode};
use crate::bench::run::{BenchFiles, BenchObserver, bench};
use crate::bench::testing::without_gpu;

/// What callers were told, or a recording says, by name.
type Counts = BTreeMap<&'static str, u64>;

fn add(counts: &mut Counts, what: &'static str) {
    *counts.entry(what).or_default() += 1;
}

/// What a recording says when it is walked.
#[derive(Default)]
struct Walk {
    there: HashSet<[u8; 16]>,
    counts: Counts,
    removed: u64,
}

impl Walk {
    fn of(path: &Path) -> Self {
        let mut reader = Reader::open(&Input::File(path.to_owned()), FRAME_LIMIT).unwrap();
        let mut calls = Vec::new();
        while let Some(recorded) = reader.advance().unwrap() {
            calls.push(recorded);
        }
        assert!(calls.is_sorted_by_key(|recorded| recorded.at), "the file is in the order of time");
        let survey = reader.survey();
        assert!(survey.cut.is_none() && survey.lost == 0 && survey.damaged.reasons.is_empty());
        let mut walk = Self::default();
        for recorded in &calls {
            let key = recorded.call.keys().next().expect("a call has a key");
            let hash = reader.keys().key(key).chunk_hash.try_into().unwrap();
            walk.step(recorded, hash);
        }
        walk
    }

    fn step(&mut self, recorded: &Recorded, key: [u8; 16]) {
        let is_there = self.there.contains(&key);
        let fate = recorded.outcome.as_ref().expect("a call has an outcome")[0];
        let agrees = match (&recorded.call, fate) {
            (StorageCall::FinishWrite { .. }, Fate::Done) => {
                add(&mut self.counts, "stored");
                self.there.insert(key);
                true
            }
            (StorageCall::Removed { .. }, Fate::Done) => {
                self.removed += 1;
                self.there.remove(&key)
            }
            (StorageCall::ReserveWrite { .. } | StorageCall::FinishWrite { .. }, Fate::Resident) => {
                add(&mut self.counts, "existed");
                is_there
            }
            (StorageCall::ReserveWrite { .. }, Fate::Staged)
            | (StorageCall::FinishWrite { .. }, Fate::Absent) => {
                add(&mut self.counts, "existed");
                !is_there
            }
            (StorageCall::ReserveWrite { .. }, Fate::NoMemory) => {
                add(&mut self.counts, "refused");
                true
            }
            (StorageCall::SubmitPrefetch(_), Fate::Absent) => {
                add(&mut self.counts, "missed");
                !is_there
            }
            (StorageCall::SubmitPrefetch(_), Fate::FirstTier | Fate::LowerTier)
            | (StorageCall::ReadEnter { .. }, Fate::Done) => is_there,
            (StorageCall::ReadExit { .. }, Fate::Done) => {
                add(&mut self.counts, "hit");
                true
            }
            (StorageCall::ReserveWrite { .. } | StorageCall::FinishRead { .. }, _)
            | (StorageCall::ReadExit { .. }, Fate::Absent) => true,
            other => panic!("{other:?}"),
        };
        assert!(agrees, "{recorded:?}, and it is {}there", if is_there { "" } else { "not " });
    }
}

/// Users who ask for entries of 1 to 10 MiB.
const SCALED: &str = "user_templates:
  chatbot: {context_range: [51, 410], generation_range: [5, 20], think_time_range: [0.01, 0.05]}
  coding: {context_range: [51, 410], generation_range: [10, 50], think_time_range: [0.02, 0.1]}
  document: {context_range: [51, 410], generation_range: [20, 80], think_time_range: [0.03, 0.15]}
";

fn plan(folder: &Path, more: BenchArgs) -> BenchPlan {
    std::fs::write(folder.join("scaled.yaml"), SCALED).unwrap();
    let args = BenchArgs {
        model: Some("tiny-1b".to_owned()),
        config: Some(folder.join("scaled.yaml")),
        cpu_mem_gb: Some(0.05),
        storage_capacity_gb: Some(0.1),
        cache_dir: Some(folder.join("cache")),
        warmup: Some(0.0),
        generation_mode: more.generation_mode.or(Some(GenerationMode::None)),
        ..more
    };
    BenchPlan::on(&without_gpu(), &args).unwrap()
}

/// Tells a tape what a store does, without a benchmark between them.
struct Direct(Arc<dyn Calls>);

impl Listener for Direct {
    fn hear(&self, call: Call) {
        self.0.hear(call, None);
    }
}

fn tier(name: &str, folder: &Path, capacity: u64) -> Tier {
    let location = if name == "memory" { String::new() } else { folder.display().to_string() };
    // Room for what comes before what makes room for it has gone.
    let site = Site { location, capacity_bytes: Some(4 * capacity), ..Site::default() };
    let settings = eviction::Settings { capacity_bytes: Some(capacity), ..Default::default() };
    let eviction = (eviction::policy("lru").unwrap().build)(&settings).unwrap();
    Tier { backend: backends::open(name, &site).unwrap(), capacity_bytes: Some(capacity), eviction }
}

/// Random work on few keys, of which less than half have room.
fn work(lane: &mut Lane, seed: u64, operations: u64) -> Counts {
    let (mut random, mut counts) = (seeded(seed, "work"), Counts::default());
    let mut asked = 0;
    loop {
        while asked < operations && lane.pending() < 2 {
            asked += 1;
            let key = Key::from(format!("{}", random.random_range(0..40)).as_str());
            let bytes = random.random_range(1..=24) * 1024;
            let replaces = random.random_range(0..10) == 0;
            let existing = if replaces { Existing::Replace } else { Existing::Keep };
            match random.random_range(0..20) {
                0 => lane.remove(key),
                1..9 => lane.put(Put { key, payload: Payload::Seeded { seed, bytes }, tenant: 0, existing }),
                _ => lane.get(key, Want::Nothing),
            };
        }
        let Some(done) = lane.wait() else { return counts };
        match done.outcome {
            Outcome::Stored(_) => add(&mut counts, "stored"),
            Outcome::Existed => add(&mut counts, "existed"),
            Outcome::Refused(_) => add(&mut counts, "refused"),
            Outcome::Hit(_) => add(&mut counts, "hit"),
            Outcome::Missed => add(&mut counts, "missed"),
            Outcome::Removed(_) => {}
            Outcome::Failed(error) => panic!("{error}"),
        }
    }
}

/// Threads on a store of two tiers out of which entries fall all the time. Broken by: a time taken outside the
/// lock of the key's shard, a look-up that says found of an entry that left, a departure that is not told, a
/// get that is told as missed without having looked.
fn races(lower: &str, rounds: u64) {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), BenchArgs::default());
    for round in 0..rounds {
        let path = folder.path().join("races.lct");
        let to = CallRecording { path: path.clone(), rotate_bytes: None, cap_bytes: None };
        let tape = Tape::start(&to, &plan, 1).unwrap();
        let tiers = vec![
            tier("memory", folder.path(), 150 * 1024),
            tier(lower, &folder.path().join(format!("store{round}")), 150 * 1024),
        ];
        let promotion = if round % 2 == 0 { Promotion::OnHit } else { Promotion::Never };
        let rules = Rules { promotion, write: WritePolicy::Back, ..Rules::default() };
        let store = Store::open(tiers, rules).unwrap();
        store.attach(Arc::new(Direct(tape.calls())));
        let told = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|number| {
                    let store = &store;
                    scope.spawn(move || work(&mut store.lane(4).unwrap(), round * 10 + number, 1000))
                })
                .collect();
            let mut all = Counts::default();
            for (what, count) in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
                *all.entry(what).or_default() += count;
            }
            all
        });
        let recorded = tape.finish().unwrap();
        assert_eq!((recorded.lost, &recorded.failure), (0, &None));
        let walk = Walk::of(&path);
        assert_eq!(walk.counts, told, "round {round}");
        let left: HashSet<_> = store.keys().iter().map(|key| key.hash().to_be_bytes()).collect();
        assert_eq!(walk.there, left, "round {round}");
        assert!(walk.removed > 100, "{}", walk.removed);
    }
}

#[test]
fn every_outcome_agrees_with_what_was_there() {
    races("memory", 6);
    races("buffered", 2);
}

/// The same for as long as one has patience.
#[test]
#[ignore = "takes a minute"]
fn every_outcome_agrees_with_what_was_there_many_times() {
    races("memory", 200);
    races("buffered", 40);
}

/// Broken by: a trial without its file, counts that are not those of the report, a header of another store.
#[test]
fn a_benchmark_is_recorded_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let more =
        BenchArgs { num_users: Some(6), max_requests: Some(60), io_threads: Some(2), ..BenchArgs::default() };
    let plan = plan(folder.path(), more);
    let to = CallRecording { path: folder.path().join("b.lct.zst"), rotate_bytes: None, cap_bytes: None };
    let stop = AtomicBool::new(false);
    let observer = BenchObserver { watch: &mut Unwatched, stop: &stop, news: &mut |_| {} };
    let benched = bench(&plan, observer, BenchFiles { calls: Some(&to), log: None }).unwrap();
    let [recorded] = benched.recordings.as_slice() else { panic!("one trial") };
    assert_eq!((recorded.lost, &recorded.files), (0, &vec![to.path.clone()]));
    assert_eq!(benched.report["recording"]["calls"], recorded.calls);
    let walk = Walk::of(&to.path);
    assert!(walk.removed > 0, "entries fell out of the last tier");
    let all = benched.summary.touches.all();
    let told = [
        ("hit", all.hits),
        ("missed", all.misses),
        ("stored", all.stored),
        ("existed", all.existed),
        ("refused", all.refused),
    ];
    let told: Counts = told.into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(walk.counts, told);
    let reader = Reader::open(&Input::File(to.path), FRAME_LIMIT).unwrap();
    let config: serde_json::Value = serde_json::from_str(&reader.header().config_json).unwrap();
    assert_eq!(config["wavetank"]["tiers"][1]["backend"], "direct");
    assert_eq!(
        config["l1_manager_config"]["memory_config"]["size_in_bytes"],
        plan.run.tiers[0].capacity_bytes.unwrap()
    );
}

/// On a virtual clock calls have its times, and two runs have the same calls. Broken by: a wall time in them.
#[test]
fn a_virtual_run_is_recorded_the_same_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mode = Some(GenerationMode::Deterministic);
    let more = BenchArgs {
        num_users: Some(3),
        max_requests: Some(30),
        generation_mode: mode,
        ..BenchArgs::default()
    };
    let plan = plan(folder.path(), more);
    let calls = |name: &str| {
        let to = CallRecording { path: folder.path().join(name), rotate_bytes: None, cap_bytes: None };
        let stop = AtomicBool::new(false);
        let observer = BenchObserver { watch: &mut Unwatched, stop: &stop, news: &mut |_| {} };
        bench(&plan, observer, BenchFiles { calls: Some(&to), log: None }).unwrap();
        let reader = Reader::open(&Input::File(to.path), FRAME_LIMIT).unwrap();
        let calls = Box::new(reader) as Box<dyn CallReader>;
        calls.map(|call| format!("{:?}", call.unwrap())).map(|line| without_wall(&line)).collect::<Vec<_>>()
    };
    let (one, other) = (calls("one.lct"), calls("other.lct"));
    assert!(one.len() > 100, "{}", one.len());
    let differs = one.iter().zip(&other).find(|(one, other)| one != other);
    assert_eq!((differs, one.len()), (None, other.len()));
}

/// The time of day is another in every run.
fn without_wall(line: &str) -> String {
    let (start, rest) = line.split_once("wall_s: ").expect("a clock");
    format!("{start}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

#[test]
fn a_trial_has_its_own_file() {
    let of = |name: &str, number| trial_path(Path::new(name), number).display().to_string();
    assert_eq!(of("a/x.lct", 1), "a/x.lct");
    assert_eq!(of("a/x.lct.zst", 2), "a/x.trial-2.lct.zst");
}
