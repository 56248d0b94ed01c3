//! A backend of the store measured from what the user typed to a [`TierProfile`], its file and its drift.
//!
//! `plan` is the only place that validates; `file` reads and writes profiles; `drift` compares two of them;
//! `text` is what people see.

mod drift;
mod file;
mod origin;
mod plan;
mod target;
#[cfg(test)]
pub(crate) mod testing;
mod text;

use std::sync::atomic::AtomicBool;

use wavetank_bench::{ProbeObserver, ProbePlan, Probed, probe};
use wavetank_model::{Error, Result, TIER_LAYOUT, TierPoint, TierProfile, TierSettings};

pub use drift::{Change, Drift};
pub use file::{read, text as file_text};
pub use plan::{Extent, TierArgs, TierProbe};
pub use text::{drift_table, table};

/// A measured backend, and what to know of it.
pub struct MeasuredTier {
    /// What is written.
    pub profile: TierProfile,
    /// What did not work as it should, in words.
    pub notes: Vec<String>,
}

/// Measures what `plan` says until it is done or `stop` is raised; `seen` is told of every point. Nothing of
/// it is left, whatever ends it but the end of the process.
pub fn measure(
    plan: &TierProbe,
    stop: &AtomicBool,
    seen: &mut dyn FnMut(&TierPoint),
) -> Result<MeasuredTier> {
    let origin = origin::find(&plan.target)?;
    let place = plan.target.place()?;
    let probe_plan = ProbePlan { location: place.location(), ..plan.probe.clone() };
    let probed = probe(&probe_plan, ProbeObserver { stop, measured: seen });
    let left = place.close();
    let Probed { points, sustained, partial, notes } = probed?;
    left?;
    if points.is_empty() {
        return Err(Error::usage("it was ended before the first point was measured"));
    }
    let ProbePlan { seconds_per_point, sustained_seconds, working_set_bytes, seed, .. } = probe_plan;
    let settings = TierSettings { seconds_per_point, sustained_seconds, working_set_bytes, threads: 1, seed };
    let layout = TIER_LAYOUT.to_owned();
    Ok(MeasuredTier { profile: TierProfile { layout, partial, origin, settings, sustained, points }, notes })
}
