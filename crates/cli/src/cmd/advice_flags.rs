//! Flags of advice, and how it is found beside a replay.

use std::sync::Arc;

use clap::Args;
use wavetank::{Plan, Replayed, Result, processors};
use wavetank_study::advice::{Advice, Advisor, Asked, Setting, USUAL_GOAL};

use crate::interrupt::Interrupt;
use crate::progress::PointProgress;

#[derive(Args)]
#[command(next_help_heading = "Advice")]
pub(crate) struct AdviceFlags {
    /// Replay also with more and with less of each thing (GPU memory, tiers, links,
    /// workers) and say what that is worth, by METRIC [default: p99_ttft_ms].
    #[arg(long, value_name = "METRIC", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = USUAL_GOAL)]
    advise: Option<String>,
    /// What things cost, in USD, for --advise: gpu_hour=2.5,ram_gib_hour=0.004,...
    /// (the keys of [cost] in a sweep).
    #[arg(long, value_name = "NAME=USD,...", requires = "advise")]
    price: Option<String>,
}

impl AdviceFlags {
    /// Who finds advice about `plan`, where it is asked for.
    pub(super) fn advisor(self, plan: &Plan) -> Result<Option<Advisor>> {
        let Some(goal) = self.advise else { return Ok(None) };
        Advisor::of(plan, Asked { goal, price: self.price }).map(Some)
    }

    pub(super) fn is_asked(&self) -> bool {
        self.advise.is_some()
    }
}

/// Finds advice and enters it into the replay's report; nothing where the replay was interrupted.
pub(super) fn advise(advisor: &Advisor, replayed: &mut Replayed, stop: &Interrupt) -> Result<Option<Advice>> {
    let progress = PointProgress::start(Arc::clone(&stop.loaded), "replays with more or less");
    let setting = Setting { threads: processors(), stop: &stop.raised, onlooker: &progress };
    let advice = advisor.advise(replayed, &setting)?;
    if let Some(advice) = &advice {
        advice.enter(replayed);
    }
    Ok(advice)
}
