//! A recording in memory, and what it knows of work in the background.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use serde_json::Value;
use wavetank_calls::{End, Recording};
use wavetank_model::{Error, Fate, KeyId, KeyTable, Nanos, Recorded, Result, StorageCall};
use wavetank_trace::calls::CallReader;
use wavetank_trace::calls::lct::{FRAME_LIMIT, Header, Reader};
use wavetank_trace::{CallSurvey, Input};

use super::plan::is_of_bench;

/// A later time is none: loops would look a million times and more for nothing.
pub(super) const LONGEST: Nanos = Nanos(365 * 86_400 * 1_000_000_000);

/// Everything of a recording.
pub(super) struct Loaded {
    reader: Reader,
    calls: Vec<Recorded>,
    layout_bytes: Vec<u64>,
    pub(super) survey: CallSurvey,
    /// Its configuration; null if it has none.
    pub(super) config: Value,
    pub(super) known: Known,
    pub(super) read_s: f64,
}

/// What it knows of work in the background.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// Records of it.
    pub(super) records: u64,
    /// Whether it is a benchmark's, which says all that left its store.
    pub(super) is_of_bench: bool,
    /// Records of objects that left by themselves.
    pub(super) removed: u64,
    /// When loops looked, by tier.
    pub(super) passes: Vec<Vec<Nanos>>,
    /// From the end of a write to its copy behind, in the middle.
    pub(super) copy_takes: Option<Nanos>,
    /// The first call.
    pub(super) first: Nanos,
    /// The last record.
    pub(super) last: Nanos,
}

impl Loaded {
    pub(super) fn read(recording: &str) -> Result<Self> {
        let start = Instant::now();
        let mut reader = Reader::open(&Input::named(recording), FRAME_LIMIT)?;
        let level = &reader.header().level;
        if level != "storage" {
            return Err(Error::input(format!("its level is \"{level}\", and only calls can be made again"))
                .at(recording.to_owned())
                .hint("`wavetank trace info` says what is in it"));
        }
        refuse_part(recording, reader.header().part)?;
        let mut calls: Vec<Recorded> = Vec::new();
        while let Some(recorded) = reader.advance()? {
            calls.push(recorded);
        }
        let late = calls.iter().find(|recorded| recorded.at > LONGEST);
        if let Some(late) = late {
            let seconds = late.at.as_seconds();
            return Err(Error::input(format!(
                "a record is of {seconds:.0} s after the start, a year or more"
            ))
            .at(recording.to_owned())
            .hint("its times are damaged; --to does not help, as all of it is read first"));
        }
        // Threads take the time first and write later; the order of times is that of the calls.
        calls.sort_by_key(|recorded| recorded.at);
        let survey = reader.survey();
        if survey.lost > 0 {
            end_at_once(&mut calls);
        }
        let config: Value = serde_json::from_str(&reader.header().config_json).unwrap_or_default();
        if is_of_bench(&config) {
            take_tiers_as_one(&mut calls);
        }
        let layouts = reader.keys().layouts();
        Ok(Self {
            layout_bytes: layouts.iter().map(|layout| layout.bytes()).collect::<Result<Vec<_>>>()?,
            known: Known { is_of_bench: is_of_bench(&config), ..Known::of(&calls) },
            config,
            survey,
            calls,
            reader,
            read_s: start.elapsed().as_secs_f64(),
        })
    }

    pub(super) fn keys(&self) -> &KeyTable {
        self.reader.keys()
    }

    pub(super) fn header(&self) -> &Header {
        self.reader.header()
    }

    /// What is made again.
    pub(super) fn recording(&self) -> Recording<'_> {
        let is_cut = self.survey.cut.is_some() || self.survey.missing_part.is_some();
        let end = if is_cut { End::Cut } else { End::Whole };
        let Self { calls, layout_bytes, .. } = self;
        Recording { calls, keys: self.keys().len(), table: Some(self.keys()), layout_bytes, end }
    }
}

/// What a part finds was stored in those before it.
fn refuse_part(recording: &str, part: u32) -> Result<()> {
    if part == 1 {
        return Ok(());
    }
    Err(Error::input(format!("it is part {part} of a recording, and what came before is not in it"))
        .at(recording.to_owned())
        .hint("name the first part, as x.lct for x.2.lct: those after it are read with it"))
}

/// Where records were lost, a prefetch whose end is not there may have ended: it is taken to be over at once.
fn end_at_once(calls: &mut [Recorded]) {
    let ended = |recorded: &Recorded| match recorded.call {
        StorageCall::PrefetchCompleted { handle, .. } => Some(handle),
        _ => None,
    };
    let ended: HashSet<u64> = calls.iter().filter_map(ended).collect();
    for recorded in calls {
        if let StorageCall::SubmitPrefetch(asked) = &mut recorded.call {
            asked.handle = asked.handle.filter(|handle| ended.contains(handle));
        }
    }
}

/// Where an object was found does not count.
fn take_tiers_as_one(calls: &mut [Recorded]) {
    let fates = calls.iter_mut().filter_map(|recorded| recorded.outcome.as_mut()).flatten();
    fates.filter(|fate| **fate == Fate::LowerTier).for_each(|fate| *fate = Fate::FirstTier);
}

impl Known {
    fn of(calls: &[Recorded]) -> Self {
        let mut known = Self {
            first: calls.first().map_or(Nanos::ZERO, |recorded| recorded.at),
            last: calls.last().map_or(Nanos::ZERO, |recorded| recorded.at),
            ..Self::default()
        };
        let mut written: HashMap<KeyId, Nanos> = HashMap::new();
        let mut takes: Vec<Nanos> = Vec::new();
        let has_copies =
            calls.iter().any(|recorded| matches!(recorded.call, StorageCall::StoreCompleted { .. }));
        for recorded in calls {
            known.records += 1;
            match &recorded.call {
                StorageCall::EvictionPass { tier, .. } => {
                    let tier = usize::from(*tier);
                    known.passes.resize(known.passes.len().max(tier + 1), Vec::new());
                    known.passes[tier].push(recorded.at);
                }
                StorageCall::StoreCompleted { keys, .. } => {
                    let ended = keys.first().and_then(|key| written.get(key));
                    takes.extend(ended.map(|ended| recorded.at.since(*ended)));
                }
                StorageCall::StoreBegun { .. }
                | StorageCall::PrefetchCompleted { .. }
                | StorageCall::Found { .. } => {}
                StorageCall::Removed { .. } => known.removed += 1,
                StorageCall::FinishWrite { keys } if has_copies => {
                    known.records -= 1;
                    written.extend(keys.iter().map(|key| (*key, recorded.at)));
                }
                _ => known.records -= 1,
            }
        }
        takes.sort_unstable();
        known.copy_takes = takes.get(takes.len() / 2).copied();
        known
    }
}
