//! What is written while calls are made: a recording of the replay, a line per call for programs or people.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use wavetank_calls::{Act, Both, Keep, Listener, Made, Note, PlayOptions, PlayReport, Recorder, Tally};
use wavetank_model::{Error, ErrorKind, Fate, Nanos, Recorded, Result};
use wavetank_trace::calls::lct::{Header, Recording, Written};

use super::CallReplayPlan;
use super::bytes::make;
use super::load::Loaded;
use super::operation::qualname;
use crate::bench::{CallRecording, RecordedCalls};
use crate::trace::info::FATES;

/// Where what is written goes; nowhere unless asked for.
#[derive(Default)]
pub struct CallOutputs<'o> {
    /// A recording of the replay.
    pub recording: Option<&'o CallRecording>,
    /// A JSON object per call that is counted.
    pub jsonl: Option<&'o mut (dyn Write + 'o)>,
    /// A line per call that is counted, for people.
    pub verbose: Option<&'o mut (dyn Write + 'o)>,
    /// Raised by whoever wants it to end early.
    pub stop: Arc<AtomicBool>,
    /// Raised once the recording was read: from then on there is something to end with.
    pub loaded: Arc<AtomicBool>,
}

impl CallOutputs<'_> {
    /// What is written decides what is kept; whoever ends it early can.
    pub(super) fn shape(&self, options: PlayOptions) -> PlayOptions {
        let keep = if self.jsonl.is_some() { Keep::Each } else { Keep::Nothing };
        PlayOptions { keep, stop: Arc::clone(&self.stop), ..options }
    }
}

/// What came of calls, and what was measured where bytes moved.
pub(super) type Played = (Tally, Option<PlayReport>);

/// Makes the calls and writes what is asked for; with bytes where there are `options` for them.
pub(super) fn play(
    loaded: &Loaded,
    plan: &CallReplayPlan,
    options: Option<&PlayOptions>,
    outputs: CallOutputs<'_>,
) -> Result<(Played, Option<RecordedCalls>)> {
    let manner = plan.manner();
    let CallOutputs { recording, jsonl, verbose, stop, .. } = outputs;
    let mut lines = Lines { from: plan.scope.from, jsonl, verbose, later: options.map(|_| Vec::new()) };
    let how = (options, &*stop);
    let (played, recorded) = match recording {
        None if lines.is_empty() => (make(&loaded.recording(), &manner, how, None)?, None),
        None => (make(&loaded.recording(), &manner, how, Some(&mut lines))?, None),
        Some(to) => {
            let mut file = Recording::buffered(&to.path, header(loaded, plan), to.options())?;
            let recorder = Recorder::new(&manner, |recorded: &Recorded| file.write(recorded, loaded.keys()));
            let played = make(&loaded.recording(), &manner, how, Some(&mut Both(recorder, &mut lines)))?;
            let Written { files, bytes, calls, lost } = file.finish()?;
            (played, Some(RecordedCalls { files, calls, bytes, lost, failure: None }))
        }
    };
    lines.end(played.1.as_ref())?;
    Ok((played, recorded))
}

/// A recording at its largest size takes no more calls.
pub(super) fn lost(recorded: &RecordedCalls) -> Option<String> {
    let RecordedCalls { calls, lost, .. } = recorded;
    (*lost > 0).then(|| {
        format!(
            "the recording of the replay reached its largest size: {calls} calls are in it, and {lost} are \
             not (--trace-cap-mb)"
        )
    })
}

/// That of the recording, with what the calls are made on now: a replay happens at the recording's times.
fn header(loaded: &Loaded, plan: &CallReplayPlan) -> Header {
    let config = plan.storage.config(&plan.l2_adapters).to_string();
    let Header { mono_start_s, wall_start_s, .. } = *loaded.header();
    Header { mono_start_s, ..Header::storage(wall_start_s, config) }
}

/// A line per call.
struct Lines<'o> {
    from: Nanos,
    jsonl: Option<&'o mut (dyn Write + 'o)>,
    verbose: Option<&'o mut (dyn Write + 'o)>,
    /// Where calls are measured: lines that wait for what they took.
    later: Option<Vec<Box<str>>>,
}

impl Lines<'_> {
    fn is_empty(&self) -> bool {
        self.jsonl.is_none() && self.verbose.is_none()
    }

    /// Writes the lines that waited, with what was measured. What no call of the recording did took nothing.
    fn end(mut self, report: Option<&PlayReport>) -> Result<()> {
        let (Some(lines), Some(out)) = (self.later.take(), &mut self.jsonl) else { return Ok(()) };
        let mut each = report.map(|report| report.each.iter()).into_iter().flatten();
        for line in lines {
            let mut line: Value = serde_json::from_str(&line).expect("written here");
            let is_surplus = line["surplus"] == true;
            let took = if is_surplus { Some(Nanos::ZERO) } else { each.next().copied().flatten() };
            // Null is a call that was dropped when it was ended early.
            line["latency_ms"] = json!(took.map(|took| took.as_ms()));
            writeln!(out, "{line}").map_err(|error| failed("--jsonl-out", &error))?;
        }
        Ok(())
    }
}

fn failed(flag: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write: {error}")).at(flag.to_owned())
}

impl Listener for Lines<'_> {
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>> {
        if made.at < self.from {
            return Ok(ControlFlow::Continue(()));
        }
        match (&mut self.jsonl, &mut self.later) {
            (Some(_), Some(later)) => later.push(json_of(made).to_string().into()),
            (Some(out), None) => {
                writeln!(out, "{}", json_of(made)).map_err(|error| failed("--jsonl-out", &error))?;
            }
            (None, _) => {}
        }
        if let Some(out) = &mut self.verbose {
            writeln!(out, "{}", words_of(made)).map_err(|error| failed("--verbose", &error))?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn ended(&mut self, _after: &[Note]) -> Result<()> {
        Ok(())
    }
}

/// The reference's three keys, and what it throws away.
fn json_of(made: &Made<'_>) -> Value {
    json!({
        "qualname": qualname(&made.act),
        "latency_ms": made.took.as_ms(),
        "failed": made.act.has_failed(made.fates),
        "at_s": made.at.as_seconds(),
        "thread": made.thread,
        "keys": keys(&made.act),
        "surplus": matches!(made.act, Act::GiveBack(..)),
        "fates": fates(made.fates),
    })
}

fn words_of(made: &Made<'_>) -> String {
    let name = qualname(&made.act).rsplit("StorageManager.").next().unwrap_or_default();
    let fates: Vec<String> = fates(made.fates).iter().map(|(fate, keys)| format!("{keys} {fate}")).collect();
    let surplus = if matches!(made.act, Act::GiveBack(..)) { ", beyond the recording" } else { "" };
    let colon = if fates.is_empty() { "" } else { ": " };
    let (at, keys) = (made.at.as_seconds(), keys(&made.act));
    format!("{at:.6} s  {name}  {keys} keys{colon}{}{surplus}", fates.join(", "))
}

/// Keys by what became of them.
fn fates(fates: &[Fate]) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for fate in fates {
        *counts.entry(FATES[*fate as usize]).or_default() += 1;
    }
    counts
}

fn keys(act: &Act<'_>) -> usize {
    match act {
        Act::Prefetch(asked) => asked.rows.iter().map(|row| row.keys.len()).sum(),
        Act::Reserve { keys, .. }
        | Act::FinishWrite(keys)
        | Act::Enter(keys)
        | Act::Exit(keys)
        | Act::Release(keys, _)
        | Act::GiveBack(keys, _) => keys.len(),
    }
}
