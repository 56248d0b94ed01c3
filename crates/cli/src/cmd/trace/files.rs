//! What the verbs that read and write traces of requests share: their files, progress, and how they end.

use clap::Args;
use wavetank::{Error, Fill, Meter, Result, TraceInput, TraceOutput, TraceWritten};

use crate::exit::Exit;
use crate::interrupt::{INTERRUPTED, stop_flag};
use crate::output;
use crate::progress::ReadProgress;

#[derive(Args, Clone, Debug)]
pub(super) struct InFlags {
    /// The format that is read: a row of `wavetank list formats` [default: what stands before the
    /// path, as in azure:FILE, or what the file looks like].
    #[arg(long, value_name = "NAME")]
    trace_format: Option<String>,
    /// Tokens that an id stands for, where the format does not say.
    #[arg(long, value_name = "TOKENS")]
    trace_block_size: Option<u32>,
}

impl InFlags {
    pub(super) fn input(self, files: Vec<String>) -> TraceInput {
        TraceInput { files, format: self.trace_format, trace_block_size: self.trace_block_size }
    }
}

#[derive(Args)]
pub(super) struct OutFlags {
    /// The format that is written [default: what stands before the path, the format whose name is in
    /// that of the file, or the one that was read].
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    /// What stands in for what the trace does not say and the format needs: hash=unique|session|none,
    /// output=TOKENS, or both with a comma between them.
    #[arg(long, value_name = "RULES")]
    fill: Option<Fill>,
}

impl OutFlags {
    pub(super) fn output(self, file: String) -> TraceOutput {
        TraceOutput { file, to: self.to, fill: self.fill.unwrap_or_default() }
    }
}

/// Inputs and, behind them, the output.
pub(super) fn split(mut files: Vec<String>) -> Result<(Vec<String>, String)> {
    match files.pop() {
        Some(last) if !files.is_empty() => Ok((files, last)),
        _ => {
            Err(Error::usage("one file alone")
                .hint("name what is read, and then what is written; - is a pipe"))
        }
    }
}

/// Does `work` with a bar on a terminal, and says on standard error what was written and what to know of it.
pub(super) fn write(work: impl FnOnce(&Meter) -> Result<TraceWritten>) -> Result<Exit> {
    watched(work, |written| {
        for note in &written.notes {
            output::complain(note);
        }
        let requests = if written.requests == 1 { "request" } else { "requests" };
        output::complain(&format!("{} {requests} written as {}", written.requests, written.format));
        Ok(Exit::DONE)
    })
}

/// Does `work` with a bar on a terminal; Ctrl-C ends it.
pub(super) fn watched<T>(
    work: impl FnOnce(&Meter) -> Result<T>,
    done: impl FnOnce(T) -> Result<Exit>,
) -> Result<Exit> {
    let stop =
        stop_flag("interrupted: nothing was written", "ended at once: a hidden .part file may be left")?;
    let meter = Meter::stopped_by(stop);
    let progress = ReadProgress::start(meter.clone());
    let result = work(&meter);
    drop(progress);
    match result {
        Ok(result) => done(result),
        Err(_) if meter.is_stopped() => Ok(Exit::from(INTERRUPTED)),
        Err(error) => Err(error),
    }
}
