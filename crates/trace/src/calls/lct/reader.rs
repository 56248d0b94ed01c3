//! A recording as calls, one at a time. What cannot be read is counted and passed over (spec/storage-
//! trace.md 1.8).

use wavetank_model::{Error, KeyTable, Recorded, Result, StorageCall};

use super::cursor::{FaultKind, brief};
use super::decode::{self, Record};
use super::frame::{Frames, Next};
use super::generation::Generations;
use super::header::Header;
use super::key::Names;
use super::operation::{NAMES, Operation};
use crate::Input;
use crate::call_survey::{CallSurvey, Stop};
use crate::calls::{Call, CallReader};

/// A longer frame is refused: it would be read into memory whole.
pub const FRAME_LIMIT: usize = 64 << 20;

/// An open recording.
pub struct Reader {
    frames: Frames,
    header: Header,
    names: Names,
    generations: Generations,
    /// Records by [`Operation`].
    counts: [u64; NAMES.len()],
    survey: CallSurvey,
    ended: bool,
}

impl Reader {
    /// Opens `input` and reads its header.
    pub fn open(input: &Input, frame_limit: usize) -> Result<Self> {
        let mut frames = Frames::open(input, frame_limit)?;
        let refused = |message: &str| {
            let hint = "an .lct recording begins with a header, which its recorder writes at once";
            Err(Error::input(message).at(input.name()).hint(hint))
        };
        let header = match frames.advance() {
            Next::Frame(_, range) => Header::of(frames.content(range), frames.name())?,
            Next::Cut(_) => return refused("it ends within its first frame"),
            Next::Stop(stop) => return Err(stopped(&stop, frames.name())),
            Next::End => return refused("it is empty"),
        };
        Ok(Self {
            frames,
            names: Names::new(header.schema),
            header,
            generations: Generations::ANY,
            counts: [0; NAMES.len()],
            survey: CallSurvey::default(),
            ended: false,
        })
    }

    /// What the recording says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Which releases write records like those read so far.
    pub fn generations(&self) -> Generations {
        let mut generations = self.generations;
        generations.narrow(self.names.evidence);
        generations
    }

    /// Every key and layout of the calls read so far.
    pub fn keys(&self) -> &KeyTable {
        &self.names.table
    }

    /// The next call. Where a file cannot be read on, the error says so and [`CallSurvey::stopped`] too.
    pub fn advance(&mut self) -> Result<Option<Recorded>> {
        while !self.ended {
            let (offset, range) = match self.frames.advance() {
                Next::Frame(offset, range) => (offset, range),
                last => {
                    self.ended = true;
                    return self.last(last).map(|()| None);
                }
            };
            match decode::record(self.frames.content(range), &mut self.names) {
                Ok(Record::Call(operation, recorded, evidence)) => {
                    self.counts[operation as usize] += 1;
                    self.generations.narrow(evidence);
                    return Ok(Some(self.noted(recorded)));
                }
                Ok(Record::Mark(operation, number)) => {
                    self.counts[operation as usize] += 1;
                    self.survey.note(mark(operation, number));
                }
                Ok(Record::Other(qualname, at_s)) => {
                    self.survey.count(qualname, 1);
                    self.survey.last_s = self.survey.last_s.max(at_s);
                    if self.header.level == "storage" {
                        self.survey
                            .unknown
                            .add(&format!("unknown operation \"{}\"", brief(qualname)), offset);
                    }
                }
                Ok(Record::Unusable(operation, at_s, fault)) => {
                    self.counts[operation as usize] += 1;
                    self.survey.last_s = self.survey.last_s.max(at_s);
                    self.passed_over(fault.kind, &fault.reason, offset)?;
                }
                Err(fault) => self.passed_over(fault.kind, &fault.reason, offset)?,
            }
        }
        Ok(None)
    }

    /// How the file ends.
    fn last(&mut self, last: Next) -> Result<()> {
        match last {
            Next::Cut(cut) => self.survey.cut = Some(cut),
            Next::Stop(stop) => {
                let error = stopped(&stop, self.frames.name());
                self.survey.stopped = Some(stop);
                return Err(error);
            }
            Next::Frame(..) | Next::End => {}
        }
        Ok(())
    }

    fn noted(&mut self, recorded: Recorded) -> Recorded {
        if let Some(clock) = recorded.clock {
            self.survey.last_s = self.survey.last_s.max(clock.mono_s);
        }
        if let StorageCall::Gap { lost } = recorded.call {
            self.survey.lost = self.survey.lost.saturating_add(lost);
        }
        recorded
    }

    #[cold]
    fn passed_over(&mut self, kind: FaultKind, reason: &str, offset: u64) -> Result<()> {
        match kind {
            FaultKind::Damaged => self.survey.damaged.add(reason, offset),
            FaultKind::Unknown => self.survey.unknown.add(reason, offset),
            FaultKind::Refused => {
                self.ended = true;
                return Err(Error::input(reason.to_owned())
                    .at(format!("{}: byte {offset}", self.frames.name()))
                    .hint(
                        "version 2 has the tenant in every key; this is another version, or it is damaged",
                    ));
            }
        }
        Ok(())
    }
}

#[cold]
fn stopped(stop: &Stop, name: &str) -> Error {
    Error::input(stop.reason.clone())
        .at(format!("{name}: byte {}", stop.offset))
        .hint("the file is damaged here, or it is no .lct recording; every record before it can be read")
}

/// What a mark of the recorder says.
fn mark(operation: Operation, number: u64) -> String {
    match operation {
        Operation::Continued => format!("the recording goes on in part {number}"),
        _ => format!("the recording reached its largest size, {number} bytes, and stopped"),
    }
}

impl Iterator for Reader {
    type Item = Result<Call>;

    fn next(&mut self) -> Option<Result<Call>> {
        Some(self.advance().transpose()?.map(Call::Storage))
    }
}

impl CallReader for Reader {
    fn keys(&self) -> &KeyTable {
        &self.names.table
    }

    fn survey(&self) -> CallSurvey {
        let mut survey = self.survey.clone();
        for (name, count) in NAMES.iter().zip(self.counts) {
            survey.count(name, count);
        }
        survey
    }
}
