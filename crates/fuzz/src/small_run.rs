//! What must hold of every plan of a replay: it is written and read as it is, and what is small runs to its
//! end.

use std::sync::atomic::AtomicBool;

use wavetank::{Keep, Observer, Plan, ReplayMode, Unwatched, WorkloadPlan, replay};

use crate::said::sketch;
use crate::scratch::Scratch;

/// Requests, prompt tokens, answer tokens and workers of a plan that runs in milliseconds.
const SMALL: [u64; 4] = [20, 4096, 256, 64];

/// Panics where a plan is not what it should be; tells how it ran.
pub(crate) fn all_holds(plan: &Plan) -> String {
    let text = serde_json::to_vec(plan).expect("a plan is plain data");
    let file = Scratch::of("plan.json", &text);
    let again = Plan::read(file.path()).expect("what is written is a plan");
    assert!(again == *plan, "{again:?} is not {plan:?}");
    if !is_small(plan) {
        return "not run".to_owned();
    }
    let keep = Keep { records: true, pictures: true };
    let observer = Observer { watch: &mut Unwatched, stop: &AtomicBool::new(false), keep };
    match replay(plan, observer) {
        Ok(ran) => format!("ran with {} warnings", ran.warnings.len()),
        Err(error) => sketch(&error.to_string()),
    }
}

fn is_small(plan: &Plan) -> bool {
    let WorkloadPlan::Synthetic(load) = &plan.workload else { return false };
    let simulation = &plan.simulation;
    let decode = simulation.decode.as_ref().map_or(0, |pool| pool.num_workers);
    let sizes = [
        u64::from(load.request_count) * u64::from(load.turns_per_session),
        load.input_tokens.into(),
        load.output_tokens.into(),
        u64::from(simulation.num_workers) + u64::from(decode),
    ];
    let is_alone = plan.inputs().next().is_none() && simulation.scaling.is_none();
    plan.replay_mode == ReplayMode::Offline
        && is_alone
        && sizes.iter().zip(SMALL).all(|(size, most)| *size <= most)
}
