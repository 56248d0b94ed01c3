//! A backend that fails now and then, under `verify`: no wrong byte passes, every error is told once.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use wavetank_store::Key;
use wavetank_store::backend::{Backend, NewEntry};
use wavetank_store::backends::{self, Site};
use wavetank_store::wrappers::fault::{self, Faults, Injected, KINDS, Kind};
use wavetank_store::wrappers::verify;

use crate::driver::{Driver, Order, made, reads, writes};
use crate::stage::{Stage, keeping};

const CHANCE: f64 = 0.05;

fn faulty(inner: Arc<dyn Backend>, kinds: &[Kind], seed: u64) -> (Arc<dyn Backend>, Injected) {
    let mut chances = [0.0; KINDS.len()];
    kinds.iter().for_each(|kind| chances[*kind as usize] = CHANCE);
    let (backend, injected) = fault::wrap(inner, Faults { seed, chances, spike: Duration::from_millis(3) });
    (verify::wrap(backend), injected)
}

/// What an operation on an entry failed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Create,
    Write,
    Commit,
    Read(ErrorKind),
}

/// Writes entry `number`, reads it twice and removes it; gives all failures, one for each piece.
fn live(driver: &mut Driver, number: u64, depth_first: Order) -> Vec<Failure> {
    let len = if number.is_multiple_of(10) { (2 << 20) + 5 } else { 1 + 331 * number as usize };
    let (key, bytes) = (Key::new(number.to_le_bytes()), made(number, len));
    let entry = NewEntry { key: &key, bytes: len as u64, recipe: None, birth: Default::default() };
    let Ok(held) = driver.port.create(&entry) else { return vec![Failure::Create] };
    let outcomes = driver.drive(&writes(depth_first, &held, &bytes));
    let refused = outcomes.iter().filter(|outcome| outcome.result.is_err()).count();
    if refused > 0 {
        driver.port.remove(held).unwrap();
        return vec![Failure::Write; refused];
    }
    let Ok(held) = driver.port.commit(held) else { return vec![Failure::Commit] };
    let mut failures = Vec::new();
    for _ in 0..2 {
        let open = driver.port.open(&held).unwrap();
        let work = reads(depth_first, &open, len);
        let outcomes = driver.drive(&work);
        let right = work
            .iter()
            .zip(&outcomes)
            .all(|(work, outcome)| outcome.bytes == bytes[work.offset as usize..][..work.len]);
        let errors: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.result.as_ref().err()).collect();
        assert!(right || !errors.is_empty(), "wrong bytes of entry {number} passed for right ones");
        failures.extend(errors.into_iter().map(|e| Failure::Read(e.kind())));
    }
    driver.port.remove(held).unwrap();
    failures
}

const ENTRIES: u64 = 90;

/// All failures with the entries' numbers.
fn live_all(backend: &Arc<dyn Backend>, depth: usize, order: Order) -> Vec<(u64, Failure)> {
    let mut driver = Driver::new(backend, depth);
    let all =
        (0..ENTRIES).flat_map(|n| live(&mut driver, n, order).into_iter().map(move |failure| (n, failure)));
    all.collect()
}

/// Whether failures of entries are what `injected` faults of `kind` bring about.
fn explained(kind: Kind, injected: u64, failures: &[Failure]) -> bool {
    let count = |wanted: &dyn Fn(&Failure) -> bool| failures.iter().filter(|f| wanted(f)).count() as u64;
    let (all, wrong) = (failures.len() as u64, count(&|f| *f == Failure::Read(ErrorKind::InvalidData)));
    match kind {
        Kind::CreateError => count(&|f| *f == Failure::Create) == injected && all == injected,
        Kind::WriteError => count(&|f| *f == Failure::Write) == injected && all == injected,
        Kind::CommitError => count(&|f| *f == Failure::Commit) == injected && all == injected,
        Kind::ReadError => {
            let told = |f: &Failure| matches!(f, Failure::Read(kind) if *kind != ErrorKind::InvalidData);
            count(&told) == injected && all == injected
        }
        Kind::ShortRead => {
            count(&|f| *f == Failure::Read(ErrorKind::UnexpectedEof)) == injected && all == injected
        }
        // Read twice; several pieces of an entry may be torn.
        Kind::TornWrite => wrong == all && wrong.is_multiple_of(2) && (2..=2 * injected).contains(&wrong),
        Kind::BitFlip => wrong == all && (1..=injected).contains(&wrong),
        Kind::Spike => all == 0,
    }
}

#[test]
fn no_wrong_byte_gets_through_and_every_error_is_told_once() {
    for stage in Stage::every(keeping) {
        let inner = stage.open();
        for (kind, name) in KINDS {
            let (backend, injected) = faulty(Arc::clone(&inner), &[kind], 3);
            let failures: Vec<_> =
                live_all(&backend, 4, Order::Forward).into_iter().map(|(_, failure)| failure).collect();
            let count = injected.count(kind);
            assert!(count > 0 && injected.total() == count, "{}: {name}: {count}", stage.name);
            assert!(explained(kind, count, &failures), "{}: {name}: {count}, {failures:?}", stage.name);
            assert!(backend.notes().contains(&format!("fault: {name} {count} times")));
        }
        drop(inner);
        if stage.entry.caps.survives {
            assert_eq!(stage.reopen().1.len(), 0, "{}: all were removed or never committed", stage.name);
        }
    }
}

#[test]
fn all_faults_at_once_leave_a_backend_that_works() {
    for stage in Stage::every(keeping) {
        let inner = stage.open();
        let (backend, injected) = faulty(Arc::clone(&inner), &KINDS.map(|(kind, _)| kind), 5);
        assert!(!live_all(&backend, 4, Order::Shuffled(1)).is_empty() && injected.total() > 20);
        let mut driver = Driver::new(&inner, 4);
        assert!((0..20).all(|n| live(&mut driver, n, Order::Forward).is_empty()), "{}", stage.name);
    }
}

#[test]
fn the_seed_alone_decides_what_fails() {
    let kinds = KINDS.map(|(kind, _)| kind);
    let failures = |seed, depth, order| {
        let memory = backends::open("memory", &Site::default()).unwrap();
        let (backend, injected) = faulty(memory, &kinds, seed);
        let mut failures = live_all(&backend, depth, order);
        failures.sort_by_key(|(n, failure)| (*n, format!("{failure:?}")));
        (failures, KINDS.map(|(kind, _)| injected.count(kind)))
    };
    let first = failures(1, 1, Order::Forward);
    assert_eq!(first, failures(1, 8, Order::Shuffled(9)));
    assert_ne!(first, failures(2, 1, Order::Forward));
}
