//! What a trace asks a cache for: prompts of requests, or objects of storage calls.

use std::hash::{DefaultHasher, Hash, Hasher};

use wavetank_cache::mrc::{Access, Block, Sizes, Study};
use wavetank_model::{Error, Result, StorageCall, find};
use wavetank_trace::calls::{self, Call, Operation, Phase, TierCall};
use wavetank_trace::requests::{Blocks, Source};
use wavetank_trace::{CallSurvey, HashFill, Input};

use super::super::source::TraceArgs;
use super::CurveUnit;

/// A trace that can be shown to a study.
pub(super) enum Accesses {
    Requests { args: TraceArgs, source: Source },
    Calls { format: &'static str, input: Input },
}

/// What was met on the way.
#[derive(Default)]
pub(super) struct Met {
    pub(super) unit: CurveUnit,
    pub(super) warnings: Vec<String>,
}

impl Accesses {
    pub(super) fn of(args: &TraceArgs) -> Result<Self> {
        let mut of_calls = None;
        for word in &args.input.files {
            of_calls = of_calls.or(call_format(word)?);
        }
        match (of_calls, &args.input.files[..]) {
            (Some((format, input)), [_]) => Ok(Self::Calls { format, input }),
            (Some((_, input)), _) => Err(Error::usage("is a trace of storage calls, and not the only file")
                .at(input.name())
                .hint("name one; the later files of a recording are found by themselves")),
            (None, _) => Self::of_requests(args),
        }
    }

    fn of_requests(args: &TraceArgs) -> Result<Self> {
        let source = args.source()?;
        let has_ids = source.format.provides.blocks != Blocks::Absent;
        if !has_ids && args.fill.hash != HashFill::Session {
            return Err(Error::input("there are no block ids in this format: no block is asked for twice")
                .at(source.name())
                .hint(
                    "with --fill hash=session a turn begins with all that was said before in its session",
                ));
        }
        Ok(Self::Requests { args: args.clone(), source })
    }

    pub(super) fn is_once(&self) -> bool {
        match self {
            Self::Requests { source, .. } => source.is_once(),
            Self::Calls { input, .. } => input.is_once(),
        }
    }

    pub(super) fn files(&self) -> Vec<String> {
        match self {
            Self::Requests { source, .. } => source.inputs.iter().map(Input::name).collect(),
            Self::Calls { input, .. } => vec![input.name()],
        }
    }

    pub(super) fn format(&self) -> &'static str {
        match self {
            Self::Requests { source, .. } => source.format.name,
            Self::Calls { format, .. } => format,
        }
    }

    /// What blocks take of a capacity.
    pub(super) fn sizes(&self) -> Sizes {
        match self {
            Self::Requests { .. } => Sizes::Equal,
            Self::Calls { .. } => Sizes::Weighed,
        }
    }

    /// Shows all of it to `study`.
    pub(super) fn show(&self, study: &mut Study) -> Result<Met> {
        match self {
            Self::Requests { args, source } => show_requests(args, source, study),
            Self::Calls { format, input } => show_calls(format, input, study),
        }
    }
}

/// The format of calls that `word` names or its file begins as.
fn call_format(word: &str) -> Result<Option<(&'static str, Input)>> {
    if let Some((name, path)) = word.split_once(':')
        && let Ok(format) = find("storage-call format", calls::ALL, name)
    {
        return Ok(Some((format.name, Input::named(path))));
    }
    if word.split_once(':').is_some_and(|(name, _)| wavetank_trace::requests::find(name).is_ok()) {
        return Ok(None);
    }
    let input = Input::named(word);
    Ok(calls::recognise(&input)?.map(|format| (format, input)))
}

fn show_requests(args: &TraceArgs, source: &Source, study: &mut Study) -> Result<Met> {
    let mut prompts = args.prompts(source)?;
    let mut blocks = Vec::new();
    while let Some(asked) = prompts.advance()? {
        args.meter.count()?;
        blocks.clear();
        blocks.extend(asked.blocks.iter().map(|block| Block { id: block.id, weight: block.tokens.into() }));
        study.push(Access { blocks: &blocks, tenant: 0 })?;
    }
    let unit = CurveUnit::Blocks { tokens_per_block: prompts.tokens_per_block() };
    let survey = prompts.finish()?;
    let mut warnings = survey.notes;
    if survey.clamped > 0 {
        warnings.push(format!("{} inputs cut to what their ids cover", survey.clamped));
    }
    Ok(Met { unit, warnings })
}

fn show_calls(format: &str, input: &Input, study: &mut Study) -> Result<Met> {
    let mut calls = calls::read(format, input)?;
    let (mut blocks, mut shown, mut passed_over) = (Vec::new(), 0_u64, 0_u64);
    while let Some(call) = calls.next() {
        let before = shown;
        match call? {
            Call::Tier(call) => {
                if let Some(object) = object(&call) {
                    study.push(Access { blocks: &[object], tenant: 0 })?;
                    shown += 1;
                }
            }
            Call::Storage(recorded) => {
                let StorageCall::SubmitPrefetch(prefetch) = recorded.call else {
                    passed_over += 1;
                    continue;
                };
                for row in &prefetch.rows {
                    let layout = calls.keys().layout(row.layout);
                    let weight = layout.bytes().map_err(|error| error.at(input.name()))?;
                    blocks.clear();
                    blocks.extend(row.keys.iter().map(|key| Block { id: key.0.into(), weight }));
                    study.push(Access { blocks: &blocks, tenant: 0 })?;
                    shown += 1;
                }
            }
        }
        passed_over += u64::from(shown == before);
    }
    if shown == 0 {
        return Err(Error::input("nobody asks for an object in it").at(input.name()).hint(
            "what counts are prefetches of a recording, and reads and writes of a log that evict nothing",
        ));
    }
    let mut warnings = of_survey(&calls.survey());
    if passed_over > 0 {
        let what = "records that ask for nothing (stores, locks, evictions, deletes) are passed over";
        warnings.push(format!("{passed_over} {what}"));
    }
    Ok(Met { unit: CurveUnit::Bytes, warnings })
}

/// What is asked for; what a store moves or removes to make room is its own doing.
fn object(call: &TierCall) -> Option<Block> {
    let is_asked = matches!(call.operation, Operation::Read | Operation::Write) && call.phase != Phase::Evict;
    let mut hasher = DefaultHasher::new();
    call.key.hash(&mut hasher);
    is_asked.then(|| Block { id: hasher.finish(), weight: call.bytes })
}

/// What of a recording could not be used.
fn of_survey(survey: &CallSurvey) -> Vec<String> {
    let mut warnings = survey.notes.clone();
    let mut warn = |count: u64, what: &str| {
        warnings.extend((count > 0).then(|| format!("{count} {what}")));
    };
    warn(survey.unknown.count(), "records of an operation or arguments that are not known are left out");
    warn(survey.damaged.count(), "frames that are no records are left out");
    warn(survey.lost, "calls are missing: the recorder could not keep up");
    warn(survey.cut.map_or(0, |cut| cut.bytes), "bytes at the end are no whole frame");
    warnings.extend(survey.missing_part.clone());
    warnings
}
