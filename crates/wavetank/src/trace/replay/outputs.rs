//! What is written while calls are made: a recording of the replay, a line per call for programs or people.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use wavetank_calls::{Act, Listener, Made, Manner, Note, Recorder, Tally, replay};
use wavetank_model::{Error, ErrorKind, Fate, KeyTable, Nanos, Recorded, Result};
use wavetank_trace::calls::lct::{Header, LctOptions, Recording};

use super::CallReplayPlan;
use super::config::config_of;
use super::load::Loaded;
use super::operation::qualname;
use crate::bench::CallRecording;
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
}

impl CallOutputs<'_> {
    fn is_empty(&self) -> bool {
        self.recording.is_none() && self.jsonl.is_none() && self.verbose.is_none()
    }
}

/// Makes the calls and writes what is asked for.
pub(super) fn play(loaded: &Loaded, plan: &CallReplayPlan, outputs: CallOutputs<'_>) -> Result<Tally> {
    let manner = plan.manner();
    if outputs.is_empty() {
        return replay(&loaded.recording(), &manner, None);
    }
    let CallOutputs { recording, jsonl, verbose } = outputs;
    let lines = Lines { from: plan.scope.from, jsonl, verbose };
    let Some(CallRecording { path, rotate_bytes, cap_bytes }) = recording else {
        let mut lines = lines;
        return replay(&loaded.recording(), &manner, Some(&mut lines));
    };
    let options = LctOptions { rotate_bytes: *rotate_bytes, cap_bytes: *cap_bytes };
    let mut file = Recording::buffered(path, header(loaded, plan), options)?;
    let tally = record(loaded, &manner, lines, |recorded, keys| file.write(recorded, keys))?;
    file.finish()?;
    Ok(tally)
}

/// That of the recording, with what the calls are made on now: a replay happens at the recording's times.
fn header(loaded: &Loaded, plan: &CallReplayPlan) -> Header {
    let config = config_of(&plan.storage, &plan.l2_adapters).to_string();
    let Header { mono_start_s, wall_start_s, .. } = *loaded.header();
    Header { mono_start_s, ..Header::storage(wall_start_s, config) }
}

fn record(
    loaded: &Loaded,
    manner: &Manner,
    lines: Lines<'_>,
    mut write: impl FnMut(&Recorded, &KeyTable) -> Result<()>,
) -> Result<Tally> {
    let recorder = Recorder::new(manner, |recorded: &Recorded| write(recorded, loaded.keys()));
    let mut both = Both(recorder, lines);
    replay(&loaded.recording(), manner, Some(&mut both))
}

/// Two that listen, one after the other.
struct Both<A, B>(A, B);

impl<A: Listener, B: Listener> Listener for Both<A, B> {
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>> {
        let _ = self.0.made(made)?;
        self.1.made(made)
    }

    fn ended(&mut self, after: &[Note]) -> Result<()> {
        self.0.ended(after)?;
        self.1.ended(after)
    }
}

/// A line per call.
struct Lines<'o> {
    from: Nanos,
    jsonl: Option<&'o mut (dyn Write + 'o)>,
    verbose: Option<&'o mut (dyn Write + 'o)>,
}

impl Listener for Lines<'_> {
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>> {
        if made.at < self.from {
            return Ok(ControlFlow::Continue(()));
        }
        let failed = |flag: &str, error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot write: {error}")).at(flag.to_owned())
        };
        if let Some(out) = &mut self.jsonl {
            writeln!(out, "{}", json_of(made)).map_err(|error| failed("--jsonl-out", error))?;
        }
        if let Some(out) = &mut self.verbose {
            writeln!(out, "{}", words_of(made)).map_err(|error| failed("--verbose", error))?;
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
