//! What a simulation asks of one of its tiers: operations on objects, as a device would be asked for them.

use std::collections::HashMap;
use std::path::Path;

use wavetank_bench::{Deed, Step};
use wavetank_model::{Error, KeyTable, Nanos, Operation, Result, ServeEvent, Sink, TierEvent, TierObject};
use wavetank_trace::Output;
use wavetank_trace::calls::{self, Call, Operation as CallOperation, Phase, TierCall};

/// The format that operations on a tier are written in.
const FORMAT: &str = "mlperf-csv";
/// What that format calls storage, and what is played unless another tier is asked for.
const STORAGE: u8 = 2;

/// One operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoOperation {
    /// When it was asked for, in simulated time.
    pub at: Nanos,
    /// How long it took there.
    pub took: Nanos,
    /// What was done.
    pub operation: Operation,
    /// What to; as it was written.
    pub object: TierObject,
    /// How long it is.
    pub bytes: u64,
}

/// Takes note of everything that is asked of one tier.
#[derive(Debug, Default)]
pub struct TierIo {
    tier: u8,
    operations: Vec<IoOperation>,
}

impl TierIo {
    /// Listens for what is asked of tier number `tier`.
    pub fn of(tier: u8) -> Self {
        Self { tier, operations: Vec::new() }
    }

    /// Everything in the order of its times. What is read is named by the writes that put it there: a read of
    /// parts of several is several reads, and one of what nobody wrote is none.
    pub fn finish(self) -> Vec<IoOperation> {
        let mut operations = self.operations;
        operations.sort_by_key(|it| (it.at, it.operation, it.object));
        let mut written: HashMap<u64, Vec<(u8, u64)>> = HashMap::new();
        let mut finished = Vec::with_capacity(operations.len());
        for operation in operations {
            let TierObject { group, slots } = operation.object;
            let parts = written.entry(group).or_default();
            match operation.operation {
                Operation::Write => {
                    parts.retain(|(other, _)| other & slots == 0);
                    parts.push((slots, operation.bytes));
                    finished.push(operation);
                }
                Operation::Read => {
                    let wanted = parts.iter().filter(|(part, _)| part & slots != 0);
                    finished.extend(wanted.map(|&(slots, bytes)| IoOperation {
                        object: TierObject { group, slots },
                        bytes,
                        ..operation
                    }));
                }
            }
        }
        finished
    }
}

impl Sink<ServeEvent<'_>> for TierIo {
    fn record(&mut self, event: &ServeEvent<'_>) {
        let ServeEvent::Tier(TierEvent::Moved { tier, operation, objects, bytes, began, ended, .. }) = *event
        else {
            return;
        };
        if tier != self.tier {
            return;
        }
        let blocks: u64 = objects.iter().map(|object| u64::from(object.slots.count_ones())).sum();
        let per_block = bytes / blocks.max(1);
        self.operations.extend(objects.iter().map(|&object| IoOperation {
            at: began,
            took: ended.since(began),
            operation,
            object,
            bytes: per_block * u64::from(object.slots.count_ones()),
        }));
    }
}

impl IoOperation {
    /// What the object is called on a device.
    fn key(&self) -> Box<str> {
        format!("{:016x}-{:02x}", self.object.group, self.object.slots).into()
    }

    /// As it is played.
    pub fn step(&self) -> Step {
        let deed = match self.operation {
            Operation::Read => Deed::Read,
            Operation::Write => Deed::Write,
        };
        Step { at: self.at, deed, bytes: self.bytes, key: self.key() }
    }

    fn call(&self) -> TierCall {
        let (operation, phase) = match self.operation {
            Operation::Read => (CallOperation::Read, Phase::Decode),
            Operation::Write => (CallOperation::Write, Phase::Prefill),
        };
        TierCall { at: self.at, operation, bytes: self.bytes, tier: STORAGE, key: self.key(), phase }
    }

    /// Writes operations as a trace of calls on storage, which `wavetank trace replay` plays.
    pub fn write_all(operations: &[Self], path: &Path) -> Result<()> {
        let (output, draft) = Output::draft(path)?;
        let mut writer = calls::write(FORMAT, output)?;
        let failed = |error| Error::io(path, error);
        for operation in operations {
            writer.write(&Call::Tier(operation.call()), &KeyTable::default()).map_err(failed)?;
        }
        writer.finish().map_err(failed)?;
        draft.keep()
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::WorkerId;

    use super::*;

    fn moved(io: &mut TierIo, operation: Operation, objects: &[TierObject], (began, ended): (u64, u64)) {
        let blocks: u32 = objects.iter().map(|object| object.slots.count_ones()).sum();
        io.record(&ServeEvent::Tier(TierEvent::Moved {
            transfers: 1,
            worker: WorkerId(0),
            tier: 1,
            operation,
            request: None,
            objects,
            bytes: u64::from(blocks) * 100,
            began: Nanos(began),
            ended: Nanos(ended),
        }));
    }

    fn object(group: u64, slots: u8) -> TierObject {
        TierObject { group, slots }
    }

    /// Broken by: reads under names that nothing was written under.
    #[test]
    fn reads_are_of_what_was_written() {
        let mut io = TierIo::of(1);
        // Workers are simulated ahead of each other: a later one may be told first.
        moved(&mut io, Operation::Read, &[object(7, 0b1111)], (50, 80));
        moved(&mut io, Operation::Write, &[object(7, 0b0011)], (10, 20));
        moved(&mut io, Operation::Write, &[object(7, 0b1100), object(8, 1)], (30, 40));
        moved(&mut io, Operation::Read, &[object(9, 1)], (60, 70));
        let operations = io.finish();
        let seen: Vec<_> = operations.iter().map(|it| (it.at.0, it.took.0, it.object, it.bytes)).collect();
        let expected = [
            (10, 10, object(7, 0b0011), 200),
            (30, 10, object(7, 0b1100), 200),
            (30, 10, object(8, 1), 100),
            (50, 30, object(7, 0b0011), 200),
            (50, 30, object(7, 0b1100), 200),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_trace_of_it_can_be_read_and_played() {
        let mut io = TierIo::of(1);
        moved(&mut io, Operation::Write, &[object(7, 3)], (1_000, 2_000));
        moved(&mut io, Operation::Read, &[object(7, 3)], (5_000, 9_000));
        let operations = io.finish();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("io.csv");
        IoOperation::write_all(&operations, &path).unwrap();
        let input = wavetank_trace::Input::named(&path.to_string_lossy());
        let read: Vec<_> = calls::read(FORMAT, &input).unwrap().map(|call| call.unwrap()).collect();
        let Call::Tier(second) = &read[1] else { panic!("calls on a tier") };
        assert_eq!((second.at, second.bytes, second.tier), (Nanos(4_000), 200, 2));
        assert_eq!(second.key, operations[1].step().key);
    }

    /// Broken by: a file that is emptied and then written.
    #[test]
    fn a_trace_of_it_replaces_another_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["io.csv", "other name"].map(|name| folder.path().join(name));
        std::fs::write(&path, "before").unwrap();
        std::fs::hard_link(&path, &other).unwrap();
        IoOperation::write_all(&[], &path).unwrap();
        assert_eq!(std::fs::read(&other).unwrap(), b"before");
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("Timestamp,"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no part stays");
    }
}
