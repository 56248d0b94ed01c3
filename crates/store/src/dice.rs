//! What goes wrong when: faults that depend on what is asked, not on when or by whom.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    ReadError,
    WriteError,
    CreateError,
    CommitError,
    ShortRead,
    TornWrite,
    BitFlip,
    Spike,
}

/// Every kind with the option that gives its probability.
pub const KINDS: [(Kind, &str); 8] = [
    (Kind::ReadError, "read_error"),
    (Kind::WriteError, "write_error"),
    (Kind::CreateError, "create_error"),
    (Kind::CommitError, "commit_error"),
    (Kind::ShortRead, "short_read"),
    (Kind::TornWrite, "torn_write"),
    (Kind::BitFlip, "bit_flip"),
    (Kind::Spike, "spike"),
];

/// How often what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Which calls fail.
    pub seed: u64,
    /// Probabilities in the order of [`KINDS`].
    pub chances: [f64; KINDS.len()],
    /// How late a late piece is.
    pub spike: Duration,
}

/// Says what was injected.
#[derive(Clone)]
pub struct Injected(pub(crate) Arc<Dice>);

impl Injected {
    /// How many of `kind`.
    pub fn count(&self, kind: Kind) -> u64 {
        self.0.injected[kind as usize].load(Ordering::Relaxed)
    }

    /// How many of all kinds.
    pub fn total(&self) -> u64 {
        KINDS.iter().map(|(kind, _)| self.count(*kind)).sum()
    }
}

/// One call, as far as it decides whether it fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Call {
    operation: u8,
    fingerprint: u64,
    offset: u64,
}

/// Operations, as far as faults tell them apart.
pub(crate) const CREATE: u8 = 0;
pub(crate) const WRITE: u8 = 1;
pub(crate) const COMMIT: u8 = 2;
pub(crate) const READ: u8 = 3;

/// Decides, and counts; shared by all ports.
pub(crate) struct Dice {
    faults: Faults,
    asked: Mutex<HashMap<Call, u64>>,
    injected: [AtomicU64; KINDS.len()],
}

/// A call and how often it came before.
#[derive(Clone, Copy)]
pub(crate) struct Throw<'a> {
    dice: &'a Dice,
    call: Call,
    before: u64,
}

impl Dice {
    /// Dice that fall as `faults` say.
    pub(crate) fn new(faults: Faults) -> Arc<Self> {
        Arc::new(Self { faults, asked: Mutex::default(), injected: Default::default() })
    }

    /// One more call.
    pub(crate) fn throw(&self, operation: u8, fingerprint: u64, offset: u64) -> Throw<'_> {
        let call = Call { operation, fingerprint, offset };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.entry(call).or_default();
        *count += 1;
        Throw { dice: self, call, before: *count - 1 }
    }
}

impl Throw<'_> {
    /// Whether `kind` happens now; if so, a number that says how.
    pub(crate) fn fails(&self, kind: Kind) -> Option<u64> {
        let Call { operation, fingerprint, offset } = self.call;
        let words = [kind as u64, u64::from(operation), fingerprint, offset, self.before];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let draw = xxh3_64_with_seed(&bytes, self.dice.faults.seed);
        // The upper 53 bits are a number in [0, 1) as fine as an f64 can be.
        let happens =
            ((draw >> 11) as f64) / ((1_u64 << 53) as f64) < self.dice.faults.chances[kind as usize];
        happens.then(|| {
            self.dice.injected[kind as usize].fetch_add(1, Ordering::Relaxed);
            xxh3_64_with_seed(&draw.to_le_bytes(), self.dice.faults.seed)
        })
    }

    /// The error when `kind` happens: EIO or ENOSPC, as often.
    pub(crate) fn error(&self, kind: Kind) -> io::Result<()> {
        self.fails(kind).map_or(Ok(()), |how| {
            let error = if how.is_multiple_of(2) { libc::EIO } else { libc::ENOSPC };
            Err(io::Error::from_raw_os_error(error))
        })
    }

    /// When a piece that starts now may complete.
    pub(crate) fn due(&self) -> Instant {
        let late = self.fails(Kind::Spike).map_or(Duration::ZERO, |_| self.dice.faults.spike);
        Instant::now() + late
    }
}
