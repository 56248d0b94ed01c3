//! Short ways to run a plan in a test.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use wavetank::{Keep, Observer, Plan, ReplayArgs, Replayed, Unwatched, replay};
use wavetank_report::Record;

/// Runs `args`; records in order of arrival.
pub(crate) fn run(args: &ReplayArgs) -> (Replayed, Vec<Record>) {
    let plan = Plan::of(args).unwrap();
    let stop = AtomicBool::new(false);
    let mut replayed = replay(
        &plan,
        Observer { watch: &mut Unwatched, stop: &stop, keep: Keep { records: true, pictures: true } },
    )
    .unwrap();
    let records = replayed.records.take().unwrap().sorted().collect();
    (replayed, records)
}

/// Runs `args` on a trace of these lines.
pub(crate) fn run_trace(lines: &[impl AsRef<str>], args: ReplayArgs) -> (Replayed, Vec<Record>) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for line in lines {
        writeln!(file, "{}", line.as_ref()).unwrap();
    }
    run(&ReplayArgs { trace_files: vec![file.path().display().to_string()], ..args })
}

/// Only engine arguments.
pub(crate) fn engine(json: &str) -> ReplayArgs {
    ReplayArgs { extra_engine_args: Some(json.to_owned()), ..ReplayArgs::default() }
}

/// A flat synthetic load.
pub(crate) fn synthetic(input: u32, output: u32, count: u32) -> ReplayArgs {
    ReplayArgs {
        input_tokens: Some(input),
        output_tokens: Some(output),
        request_count: Some(count),
        ..ReplayArgs::default()
    }
}

/// Completed requests, their input and output tokens.
pub(crate) fn totals(replayed: &Replayed) -> (u64, u64, u64) {
    let summary = &replayed.summary;
    (summary.counts.completed, summary.input_tokens, summary.output_tokens)
}
