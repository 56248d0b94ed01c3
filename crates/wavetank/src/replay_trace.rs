//! A simulated run as files that trace viewers open.

use std::path::{Path, PathBuf};

use wavetank_model::{Error, ErrorKind, Nanos, Result, ServeEvent, Sink};
use wavetank_telemetry::replay::ReplayTrace;
use wavetank_trace::Output;

use crate::Plan;

/// The files of one run.
pub struct ReplayTraceFiles {
    spans: Option<PathBuf>,
    slices: Option<PathBuf>,
    trace: ReplayTrace<Output<'static>>,
}

impl ReplayTraceFiles {
    /// Makes the files: spans as JSON lines of OTLP, and slices as trace events; `.zst` is compressed. What
    /// is in them depends on the plan alone.
    pub fn create(plan: &Plan, spans: Option<&Path>, slices: Option<&Path>) -> Result<Self> {
        let prefill_workers = plan.simulation.decode.as_ref().map_or(0, |_| plan.simulation.num_workers);
        let [to_spans, to_slices] = [spans, slices].map(|path| path.map(Output::create).transpose());
        Ok(Self {
            spans: spans.map(Path::to_owned),
            slices: slices.map(Path::to_owned),
            trace: ReplayTrace::new(to_spans?, to_slices?, plan.simulation.seed, prefill_workers),
        })
    }

    /// Writes the rest of a run that ended at `end`.
    pub fn finish(self, end: Nanos) -> Result<()> {
        let finished = self.trace.finish(end);
        for (path, written) in [(self.spans, finished.spans), (self.slices, finished.slices)] {
            let (Some(path), Some(written)) = (path, written) else { continue };
            written.and_then(Output::finish).map_err(|error| {
                Error::new(ErrorKind::Io, format!("cannot write: {error}"))
                    .at(path.display().to_string())
                    .source(error)
            })?;
        }
        Ok(())
    }
}

impl Sink<ServeEvent<'_>> for ReplayTraceFiles {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.trace.record(event);
    }
}
