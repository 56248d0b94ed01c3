//! `fault`: a device that fails now and then, the same way every time.
//!
//! Whether a call fails depends on the seed, the entry's key, the operation, the offset and how often that
//! operation was asked for there before: not on timing, nor on which thread asks. Calls that fail do not
//! reach the backend inside. How often each was asked for is remembered for every piece: this is for tests.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wavetank_model::Result;

use super::Entry;
use crate::around::{Slots, around, within};
use crate::backend::{Backend, Completion, Found, Held, NewEntry, Piece, Port, Recovery, Seal};
use crate::buffer::{Buffer, Region};
use crate::dice::{COMMIT, CREATE, Dice, READ, WRITE};
use crate::gate::{Due, Gate, Queued, Rule, Way};
use crate::options::Options;

pub use crate::dice::{Faults, Injected, KINDS, Kind};

pub(super) const ENTRY: Entry = Entry {
    name: "fault",
    about: "fails now and then, the same way for the same seed",
    options: &[
        ("seed", "which calls fail; 0 unless given"),
        ("read_error", "probability that a read fails: EIO or ENOSPC"),
        ("write_error", "probability that a write fails"),
        ("create_error", "probability that making room for an entry fails"),
        ("commit_error", "probability that an entry cannot be made to last"),
        ("short_read", "probability that a read ends early"),
        ("torn_write", "probability that a write reports success and its second half is wrong"),
        ("bit_flip", "probability that one bit of a read is wrong"),
        ("spike", "probability that a read or write comes back late"),
        ("spike_ms", "how much later, in milliseconds; 10 unless given"),
    ],
    wrap: |inner, options| {
        options.only(ENTRY.name, ENTRY.options)?;
        Ok(wrap(inner, faults_of(options)?).0)
    },
};

fn faults_of(options: &Options) -> Result<Faults> {
    let mut chances = [0.0; KINDS.len()];
    for (kind, name) in KINDS {
        chances[kind as usize] = options.probability(name)?;
    }
    let spike = Duration::from_millis(options.option("spike_ms", 10)?);
    Ok(Faults { seed: options.option("seed", 0)?, chances, spike })
}

/// Puts the faults around `inner`; the handle says how many there were.
pub fn wrap(inner: Arc<dyn Backend>, faults: Faults) -> (Arc<dyn Backend>, Injected) {
    let dice = Dice::new(faults);
    (Arc::new(Faulty { inner, dice: Arc::clone(&dice) }), Injected(dice))
}

struct Faulty {
    inner: Arc<dyn Backend>,
    dice: Arc<Dice>,
}

impl Backend for Faulty {
    fn port(self: Arc<Self>, region: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>> {
        let inner = Arc::clone(&self.inner).port(region, depth)?;
        let rule = Failing { dice: Arc::clone(&self.dice), on_way: Slots::default() };
        Ok(Box::new(FaultyPort(Gate::new(inner, rule, depth))))
    }

    fn recover(self: Arc<Self>, found: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
        Arc::clone(&self.inner).recover(&mut |entry| {
            let held = around(Arc::clone(&entry.held), Mark(entry.key.fingerprint()));
            found(Found { held, ..entry });
        })
    }

    fn trim(&self) -> io::Result<()> {
        self.inner.trim()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.inner.notes();
        let injected = Injected(Arc::clone(&self.dice));
        let counts = KINDS.iter().map(|(kind, name)| (injected.count(*kind), name));
        notes.extend(
            counts.filter(|(count, _)| *count > 0).map(|(n, name)| format!("fault: {name} {n} times")),
        );
        notes
    }
}

/// The fingerprint of a hold's key.
struct Mark(u64);

fn marked(held: &Arc<dyn Held>) -> (&Arc<dyn Held>, u64) {
    let held = within::<Mark>(held);
    (&held.inner, held.known.0)
}

/// Fails pieces, or hands them over and spoils what comes back.
struct Failing {
    dice: Arc<Dice>,
    on_way: Slots<OnWay>,
}

/// A piece with the backend inside.
struct OnWay {
    token: u64,
    due: Instant,
    mend: Mend,
}

/// What happens to its buffer when it comes back.
enum Mend {
    Nothing,
    /// This bit is wrong.
    Flip {
        bit: usize,
    },
    /// The caller's bytes from here on, which the device did not get.
    Restore {
        from: usize,
        bytes: Vec<u8>,
    },
}

impl Failing {
    fn read(&mut self, inner: &mut dyn Port, queued: Queued) -> Result<(), Due> {
        let (held, fingerprint) = marked(&queued.held);
        let (piece, buffer) = (queued.piece, queued.buffer);
        let throw = self.dice.throw(READ, fingerprint, piece.offset);
        let due = throw.due();
        let failed = throw.error(Kind::ReadError).and_then(|()| match throw.fails(Kind::ShortRead) {
            Some(_) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the device gave fewer bytes")),
            None => Ok(()),
        });
        if let Err(error) = failed {
            return Err((refused(piece.token, buffer, error), due));
        }
        let flipped = if piece.len > 0 { throw.fails(Kind::BitFlip) } else { None };
        let mend =
            flipped.map_or(Mend::Nothing, |how| Mend::Flip { bit: (how % (8 * piece.len as u64)) as usize });
        let token = self.on_way.put(OnWay { token: piece.token, due, mend });
        inner.read(held, Piece { token, ..piece }, buffer);
        Ok(())
    }

    fn write(&mut self, inner: &mut dyn Port, queued: Queued, seal: Option<Seal>) -> Result<(), Due> {
        let (held, fingerprint) = marked(&queued.held);
        let (piece, mut buffer) = (queued.piece, queued.buffer);
        let throw = self.dice.throw(WRITE, fingerprint, piece.offset);
        let due = throw.due();
        if let Err(error) = throw.error(Kind::WriteError) {
            return Err((refused(piece.token, buffer, error), due));
        }
        let torn = if piece.len > 0 { throw.fails(Kind::TornWrite) } else { None };
        let mend = torn.map_or(Mend::Nothing, |how| tear(&mut buffer.payload_mut()[..piece.len], how));
        let token = self.on_way.put(OnWay { token: piece.token, due, mend });
        inner.write(held, Piece { token, ..piece }, buffer, seal);
        Ok(())
    }
}

impl Rule for Failing {
    fn hand_over(&mut self, inner: &mut dyn Port, mut queued: Queued) -> Option<Due> {
        match std::mem::replace(&mut queued.way, Way::Read) {
            Way::Read => self.read(inner, queued).err(),
            Way::Write(seal) => self.write(inner, queued, seal).err(),
        }
    }

    fn take_back(&mut self, mut completion: Completion) -> Due {
        let OnWay { token, due, mend } = self.on_way.take(completion.token);
        completion.token = token;
        let payload = completion.buffer.payload_mut();
        match mend {
            Mend::Nothing => {}
            Mend::Flip { bit } => payload[bit / 8] ^= 1 << (bit % 8),
            Mend::Restore { from, bytes } => payload[from..from + bytes.len()].copy_from_slice(&bytes),
        }
        (completion, due)
    }
}

fn refused(token: u64, buffer: Buffer, error: io::Error) -> Completion {
    let now = Instant::now();
    Completion { token, buffer, result: Err(error), submitted: now, finished: now }
}

/// Makes the second half of a piece wrong, in one of the ways devices do.
fn tear(payload: &mut [u8], how: u64) -> Mend {
    let from = payload.len() / 2;
    let (first, second) = payload.split_at_mut(from);
    let bytes = second.to_vec();
    match how % 3 {
        0 => second.fill(0),
        1 => second.iter_mut().zip(first).for_each(|(byte, other)| *byte = *other),
        _ => {}
    }
    if second == bytes {
        second.iter_mut().for_each(|byte| *byte ^= 0xa5);
    }
    Mend::Restore { from, bytes }
}

struct FaultyPort(Gate<Failing>);

impl Port for FaultyPort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        let fingerprint = entry.key.fingerprint();
        self.0.rule.dice.throw(CREATE, fingerprint, 0).error(Kind::CreateError)?;
        Ok(around(self.0.inner.create(entry)?, Mark(fingerprint)))
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, seal: Option<Seal>) {
        self.0.queue(held, piece, buffer, Way::Write(seal));
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        let (inner, fingerprint) = marked(&held);
        self.0.rule.dice.throw(COMMIT, fingerprint, 0).error(Kind::CommitError)?;
        Ok(around(self.0.inner.commit(Arc::clone(inner))?, Mark(fingerprint)))
    }

    fn open(&mut self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        let (inner, fingerprint) = marked(held);
        Ok(around(self.0.inner.open(inner)?, Mark(fingerprint)))
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer) {
        self.0.queue(held, piece, buffer, Way::Read);
    }

    fn remove(&mut self, held: Arc<dyn Held>) -> io::Result<()> {
        self.0.inner.remove(Arc::clone(marked(&held).0))
    }

    fn submit(&mut self) -> io::Result<()> {
        self.0.submit()
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        self.0.reap(deadline, done)
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }
}
