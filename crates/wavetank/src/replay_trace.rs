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
    seed: u64,
    prefill_workers: u32,
    /// Names of the tiers, from the fastest.
    tiers: Vec<String>,
    /// Once they are there.
    trace: Option<Result<ReplayTrace<Output<'static>>>>,
}

impl ReplayTraceFiles {
    /// Spans as JSON lines of OTLP, and slices as trace events; `.gz` and `.zst` are compressed. What is in
    /// them depends on the plan alone.
    pub fn of(plan: &Plan, spans: Option<&Path>, slices: Option<&Path>) -> Self {
        Self {
            spans: spans.map(Path::to_owned),
            slices: slices.map(Path::to_owned),
            seed: plan.simulation.seed,
            tiers: plan.simulation.engine.tiers.iter().map(|tier| tier.name.clone()).collect(),
            prefill_workers: plan.simulation.decode.as_ref().map_or(0, |_| plan.simulation.num_workers),
            trace: None,
        }
    }

    /// Makes the files; called when the workload is there, so that none is left by one that is not.
    pub fn create(&mut self) {
        let [spans, slices] = [&self.spans, &self.slices].map(|path| path.as_deref().map(Output::create));
        self.trace = Some(match (spans.transpose(), slices.transpose()) {
            (Ok(spans), Ok(slices)) => {
                let trace = ReplayTrace::new(spans, slices, self.seed, self.prefill_workers);
                Ok(trace.naming(&self.tiers))
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        });
    }

    /// Writes the rest of a run that ended at `end`.
    pub fn finish(self, end: Nanos) -> Result<()> {
        let Some(trace) = self.trace else { return Ok(()) };
        let finished = trace?.finish(end);
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
        if let Some(Ok(trace)) = &mut self.trace {
            trace.record(event);
        }
    }
}
