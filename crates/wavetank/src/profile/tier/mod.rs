//! A backend of the store measured from what the user typed to a [`TierProfile`], its file and its drift.
//!
//! `plan` is the only place that validates; `file` reads and writes profiles; `drift` compares two of them;
//! `text` and `drift_text` are what people see.

mod drift;
mod drift_text;
mod file;
mod origin;
mod plan;
mod play;
mod target;
#[cfg(test)]
pub(crate) mod testing;
mod text;

use std::sync::atomic::AtomicBool;

use wavetank_bench::{ProbeObserver, ProbePlan, Probed, probe};
use wavetank_model::{Error, Result, TIER_LAYOUT, TierSettings};

pub use drift::{Change, Drift, Verdict};
pub use drift_text::drift_table;
pub use file::{read, text as file_text};
pub use plan::{Extent, TierArgs, TierProbe};
pub use play::{LatencyHistogram, PlayedIo, play};
pub use text::table;
pub use wavetank_model::{TIER_QUANTILES, TierLatency, TierPoint, TierProfile};

/// A measured backend, and what to know of it.
pub struct MeasuredTier {
    /// What is written.
    pub profile: TierProfile,
    /// What did not work as it should, in words.
    pub notes: Vec<String>,
}

/// Measures what `plan` says until it is done or `stop` is raised; `seen` is told of every point in every
/// pass. Nothing of it is left, whatever ends it but the end of the process.
pub fn measure(plan: &TierProbe, stop: &AtomicBool, seen: &mut dyn FnMut()) -> Result<MeasuredTier> {
    let origin = origin::find(&plan.target)?;
    let place = plan.target.place()?;
    let probe_plan = ProbePlan { location: place.location(), ..plan.probe.clone() };
    let probed = probe(&probe_plan, ProbeObserver { stop, measured: seen });
    let left = place.close();
    let Probed { points, sustained, again, partial, notes } = probed?;
    left?;
    if points.is_empty() {
        return Err(Error::usage("it was ended before the first point was measured: there is no profile"));
    }
    let (layout, settings) = (TIER_LAYOUT.to_owned(), settings(&probe_plan));
    let profile = TierProfile { layout, partial, origin, settings, sustained, again, points };
    Ok(MeasuredTier { profile, notes })
}

fn settings(plan: &ProbePlan) -> TierSettings {
    TierSettings {
        passes: plan.passes,
        seconds_per_point: plan.seconds_per_point,
        sustained_seconds: plan.sustained_seconds,
        working_set_bytes: plan.working_set_bytes,
        entries_max: plan.entries_max,
        in_flight_bytes_max: plan.in_flight_bytes_max,
        threads: plan.threads,
        seed: plan.seed,
    }
}
