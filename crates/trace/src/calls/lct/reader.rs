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
use super::recording::part_path;
use crate::Input;
use crate::call_survey::{CallSurvey, Stop};
use crate::calls::{Call, CallReader};

/// A longer frame is refused: it would be read into memory whole.
pub const FRAME_LIMIT: usize = 64 << 20;

/// An open recording: a file, and those that it goes on in.
pub struct Reader {
    input: Input,
    frame_limit: usize,
    frames: Frames,
    /// The part that is being read.
    part: u32,
    /// The part that it says it goes on in.
    next_part: Option<u64>,
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
            input: input.clone(),
            frame_limit,
            frames,
            part: header.part,
            next_part: None,
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
                Next::End if self.goes_on() => continue,
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
                    match operation {
                        Operation::Continued => self.next_part = Some(number),
                        _ => self.survey.note(capped(number)),
                    }
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

    /// Turns to the next part, where this one says that there is one; whether it could.
    fn goes_on(&mut self) -> bool {
        let Some(number) = self.next_part.take() else { return false };
        if self.header.part > 1 {
            self.survey.note(format!("the recording goes on in part {number}"));
            return false;
        }
        match self.part_at(number) {
            Ok(frames) => {
                (self.frames, self.part) = (frames, self.part + 1);
                true
            }
            Err(reason) => {
                self.survey
                    .note(format!("the recording goes on in part {number}, which is missing: {reason}"));
                self.survey.missing_part = Some(reason);
                false
            }
        }
    }

    /// The frames of the next part after its header, or why there are none.
    fn part_at(&self, number: u64) -> std::result::Result<Frames, String> {
        let Input::File(first) = &self.input else {
            return Err("only a file has others beside it".to_owned());
        };
        let part = u32::try_from(number).ok().filter(|part| Some(*part) == self.part.checked_add(1));
        let Some(part) = part else {
            return Err(format!("after part {} comes another", self.part));
        };
        let input = Input::File(part_path(first, part));
        let mut frames = Frames::open(&input, self.frame_limit).map_err(|error| error.to_string())?;
        let Next::Frame(_, range) = frames.advance() else {
            return Err(format!("{}: it has no header", input.name()));
        };
        let header = Header::of(frames.content(range), frames.name()).map_err(|error| error.to_string())?;
        let Header { schema, wall_start_s, .. } = self.header;
        if (header.part, header.schema, header.wall_start_s) != (part, schema, wall_start_s) {
            return Err(format!("{}: it is of another recording", input.name()));
        }
        Ok(frames)
    }

    /// How the file ends.
    fn last(&mut self, last: Next) -> Result<()> {
        match last {
            Next::Cut(cut) => {
                self.survey.cut = Some(cut);
                if self.part > self.header.part {
                    self.survey.note(format!("it ends within a frame of part {}", self.part));
                }
            }
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
        let in_part = (self.part > self.header.part).then(|| format!("part {}: {reason}", self.part));
        let reason = in_part.as_deref().unwrap_or(reason);
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

/// What the recorder says of a recording that it stopped.
fn capped(bytes: u64) -> String {
    format!("the recording reached its largest size, {bytes} bytes, and stopped")
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
        if self.part > self.header.part {
            survey.note(format!("it is in {} files, read as one", self.part));
        }
        for (name, count) in NAMES.iter().zip(self.counts) {
            survey.count(name, count);
        }
        survey
    }
}
