//! How many workers there are: one more, one fewer.

use wavetank::Plan;

use super::{Entry, Perturbation, Pool, Seen, Side, changed};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "workers", variants, idle, caveat: |_| None };

fn variants(plan: &Plan) -> Vec<Perturbation> {
    Pool::both_ways(plan).filter_map(|(pool, side)| variant(plan, pool, side)).collect()
}

fn variant(plan: &Plan, pool: Pool, side: Side) -> Option<Perturbation> {
    let before = pool.workers(plan);
    let after = side.choose(before.saturating_add(1), before - 1);
    if after == 0 {
        return None;
    }
    let what = format!("one {} {}", pool.worker(), side.choose("more", "fewer"));
    let plan = changed(plan, |plan| pool.set_workers(plan, after));
    let (resource, amount, unit) = (&ENTRY, 1.0, "workers");
    Some(Perturbation { resource, side, pool, tier: None, what, amount, unit, plan })
}

/// Where requests wait for a worker that has no time or no room.
const WAITS: [&str; 4] = ["router_queue_ms", "engine_queue_ms", "decode_room_ms", "first_token_wait_ms"];

fn idle(seen: &Seen<'_>) -> Option<String> {
    let share = seen.base.share_of_ttft(&WAITS)?;
    Some(format!("{:.1} % of the time to first token is waiting for a worker", share * 100.0))
}
