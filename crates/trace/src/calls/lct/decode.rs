//! One frame to one record (spec/storage-trace.md 1.4, 1.6). Values that matter are read where they lie; the
//! arguments are read last, when it is known what they are arguments of.

use wavetank_model::{Clock, Fate, Keys, LayoutId, Nanos, Recorded, StorageCall, WriteMode};

use super::cursor::{Cursor, Fault, Read};
use super::generation::Generations;
use super::key::{Names, Salts};
use super::operation::Operation;
use super::prefetch;
use super::shape::{Field, keep, required};

/// A record.
pub(super) enum Record<'b> {
    /// A storage call or background work of ours.
    Call(Operation, Recorded, Generations),
    /// The recording goes on in another file, or stopped here.
    Mark(Operation, u64),
    /// Something else, by its name and time.
    Other(&'b str, f64),
    /// A known operation whose arguments cannot be used.
    Unusable(Operation, f64, Fault),
}

/// What stands around the arguments.
#[derive(Default)]
struct Outline<'b> {
    kind: Option<&'b [u8]>,
    mono_s: Option<f64>,
    wall_s: Option<f64>,
    qualname: Option<&'b str>,
    args: Option<Cursor<'b>>,
    /// Bytes of the frame after the arguments.
    after_args: usize,
    salts: Option<Salts<'b>>,
    mode: Option<WriteMode>,
    outcome: Option<Box<[Fate]>>,
    duration: Option<u64>,
    thread: Option<u32>,
    handle: Option<u64>,
    unnamed: Option<u64>,
}

/// Reads one frame.
pub(super) fn record<'b>(frame: &'b [u8], names: &mut Names) -> Read<Record<'b>> {
    let outline = Outline::read(frame)?;
    if required("type", outline.kind)? != b"record" {
        return Err(Fault::damaged("a frame that is no record"));
    }
    let mono_s = required("t_mono", outline.mono_s)?;
    required("t_wall", outline.wall_s)?;
    let after_args = outline.after_args;
    let qualname = required("qualname", outline.qualname)?;
    let mut args = required("args", outline.args)?;
    let Some(operation) = Operation::of(qualname) else {
        args.skip()?;
        ended(args, after_args)?;
        return Ok(Record::Other(qualname, mono_s));
    };
    match outline.known(operation, args, names) {
        Ok(record) => Ok(record),
        Err(fault) => {
            // A frame that is no MessagePack is no record; one that is counts as one.
            args.skip()?;
            ended(args, after_args)?;
            Ok(Record::Unusable(operation, mono_s, fault))
        }
    }
}

/// A frame is one value and nothing after it.
fn ended(args: Cursor<'_>, after: usize) -> Read<()> {
    if args.rest().len() == after { Ok(()) } else { Err(Fault::damaged("bytes after the record")) }
}

impl<'b> Outline<'b> {
    fn read(frame: &'b [u8]) -> Read<Self> {
        let mut cursor = Cursor::new(frame);
        let mut outline = Self::default();
        let fields = cursor.map()?;
        for field in 1..=fields {
            let name = cursor.name()?;
            if name == b"args" {
                outline.args = Some(cursor);
                // Last, as they are written, their end is found when they are read.
                if field == fields {
                    outline.after_args = 0;
                    return Ok(outline);
                }
                cursor.skip()?;
                outline.after_args = cursor.rest().len();
            } else if let Field::Unknown = outline.field(name, &mut cursor)? {
                cursor.skip()?;
            }
        }
        if cursor.rest().is_empty() { Ok(outline) } else { Err(Fault::damaged("bytes after the record")) }
    }

    /// The record of an operation that is known.
    fn known(self, operation: Operation, mut args: Cursor<'b>, names: &mut Names) -> Read<Record<'b>> {
        let mut salts = self.salts.unwrap_or(Salts::Inside);
        let mut evidence = Generations::ANY;
        let call = match operation {
            Operation::SubmitPrefetch => {
                let (mut prefetch, found) = prefetch::read(&mut args, names, &mut salts)?;
                evidence = found;
                prefetch.handle = self.handle;
                StorageCall::SubmitPrefetch(Box::new(prefetch))
            }
            Operation::Continued | Operation::Capped => {
                return Ok(Record::Mark(operation, Plain::read(&mut args, names, &mut salts)?.number()?));
            }
            operation => {
                Plain::read(&mut args, names, &mut salts)?.call(operation, self.mode, &mut evidence)?
            }
        };
        ended(args, self.after_args)?;
        if matches!(salts, Salts::Each(_, 1..)) {
            return Err(Fault::damaged("more salts than keys"));
        }
        if self.outcome.as_ref().is_some_and(|fates| fates.len() != call.keys().count()) {
            return Err(Fault::damaged("the result has more keys than the call, or fewer"));
        }
        let (mono_s, wall_s) = (self.mono_s.unwrap_or(0.0), self.wall_s.unwrap_or(0.0));
        let recorded = Recorded {
            at: Nanos::from_seconds(mono_s),
            clock: Some(Clock { mono_s, wall_s }),
            duration: self.duration.map(Nanos),
            thread: self.thread,
            outcome: self.outcome,
            unnamed: self.unnamed.unwrap_or(0),
            call,
        };
        Ok(Record::Call(operation, recorded, evidence))
    }

    fn field(&mut self, name: &[u8], cursor: &mut Cursor<'b>) -> Read<Field> {
        match name {
            b"type" => keep(&mut self.kind, cursor.name()),
            b"t_mono" => keep(&mut self.mono_s, cursor.float()),
            b"t_wall" => keep(&mut self.wall_s, cursor.float()),
            b"qualname" => keep(&mut self.qualname, cursor.text()),
            b"wt_salt" => keep(&mut self.salts, Salts::read(cursor)),
            b"wt_mode" => keep(&mut self.mode, cursor.text().and_then(write_mode)),
            b"wt_result" => keep(&mut self.outcome, cursor.binary().and_then(fates)),
            b"wt_duration_ns" => keep(&mut self.duration, cursor.integer()),
            b"wt_thread" => keep(&mut self.thread, cursor.integer()),
            b"wt_handle" => keep(&mut self.handle, cursor.integer()),
            b"wt_unnamed" => keep(&mut self.unnamed, cursor.integer()),
            _ => Ok(Field::Unknown),
        }
    }
}

fn fates(numbers: &[u8]) -> Read<Box<[Fate]>> {
    let fate = |number: &u8| Fate::of_number(*number).ok_or_else(|| Fault::damaged("an unknown result"));
    numbers.iter().map(fate).collect()
}

fn write_mode(name: &str) -> Read<WriteMode> {
    match name {
        "new" => Ok(WriteMode::New),
        "update" => Ok(WriteMode::Update),
        "all" => Ok(WriteMode::All),
        _ => Err(Fault::unknown("write mode", name)),
    }
}

/// Arguments of every operation but the prefetch.
#[derive(Default)]
struct Plain {
    keys: Option<Keys>,
    layout: Option<LayoutId>,
    mode: Option<WriteMode>,
    read_locks: Option<u32>,
    extra_locks: Option<u32>,
    tier: Option<u8>,
    most: Option<u32>,
    number: Option<u64>,
}

impl Plain {
    fn read(args: &mut Cursor<'_>, names: &mut Names, salts: &mut Salts<'_>) -> Read<Self> {
        let mut plain = Self::default();
        args.fields(|name, cursor| match name {
            b"keys" => keep(&mut plain.keys, names.keys(cursor, salts)),
            b"layout_desc" => keep(&mut plain.layout, names.layout(cursor)),
            b"mode" => keep(&mut plain.mode, cursor.text().and_then(write_mode)),
            b"read_locks" => keep(&mut plain.read_locks, cursor.integer()),
            b"extra_count" => keep(&mut plain.extra_locks, prefetch::locks_of_extra(cursor)),
            b"tier" => keep(&mut plain.tier, cursor.integer()),
            b"most" => keep(&mut plain.most, cursor.integer()),
            b"evicted" | b"handle" | b"lost" | b"part" | b"bytes" => {
                keep(&mut plain.number, cursor.integer())
            }
            _ => Ok(Field::Unknown),
        })?;
        Ok(plain)
    }

    fn number(&self) -> Read<u64> {
        required("number", self.number)
    }

    fn call(
        self,
        operation: Operation,
        mode: Option<WriteMode>,
        evidence: &mut Generations,
    ) -> Read<StorageCall> {
        let number = self.number;
        let tier = self.tier;
        let keys = required("keys", self.keys);
        Ok(match operation {
            Operation::ReserveWrite => {
                evidence.narrow(if self.mode.is_some() { Generations::A_TO_F } else { Generations::G });
                let mode = self.mode.or(mode).unwrap_or_default();
                StorageCall::ReserveWrite { keys: keys?, layout: required("layout_desc", self.layout)?, mode }
            }
            Operation::FinishWrite => StorageCall::FinishWrite { keys: keys? },
            Operation::ReadEnter => StorageCall::ReadEnter { keys: keys? },
            Operation::ReadExit => StorageCall::ReadExit { keys: keys? },
            Operation::FinishRead => {
                evidence.narrow(match (self.read_locks, self.extra_locks) {
                    (Some(_), _) => Generations::F_TO_G,
                    (None, Some(_)) => Generations::A_TO_E,
                    (None, None) => Generations::ANY,
                });
                StorageCall::FinishRead {
                    keys: keys?,
                    locks: self.read_locks.or(self.extra_locks).unwrap_or(1),
                }
            }
            Operation::EvictionPass => {
                let evicted = u32::try_from(required("evicted", number)?);
                let evicted = evicted.map_err(|_| Fault::damaged("\"evicted\" is out of range"))?;
                StorageCall::EvictionPass { tier: required("tier", tier)?, evicted, most: self.most }
            }
            Operation::StoreCompleted => {
                StorageCall::StoreCompleted { tier: required("tier", tier)?, keys: keys? }
            }
            Operation::StoreBegun => StorageCall::StoreBegun { tier: required("tier", tier)?, keys: keys? },
            Operation::PrefetchCompleted => {
                StorageCall::PrefetchCompleted { handle: required("handle", number)?, keys: keys? }
            }
            Operation::Found => StorageCall::Found {
                tier: required("tier", tier)?,
                keys: keys?,
                layout: required("layout_desc", self.layout)?,
            },
            Operation::Removed => StorageCall::Removed { keys: keys? },
            Operation::Gap => StorageCall::Gap { lost: required("lost", number)? },
            Operation::SubmitPrefetch | Operation::Continued | Operation::Capped => {
                unreachable!("read by their own code")
            }
        })
    }
}
