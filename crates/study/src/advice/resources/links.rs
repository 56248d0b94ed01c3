//! What KV moves over from prefill to decode workers: twice the bandwidth, half of it.

use wavetank::Plan;

use super::{Entry, Perturbation, Pool, Seen, Side, changed};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "links", variants, idle, caveat: |_| None };

fn variants(plan: &Plan) -> Vec<Perturbation> {
    let gbps = slowest(plan);
    gbps.into_iter().flat_map(|gbps| Side::BOTH.map(|side| variant(plan, side, gbps))).collect()
}

/// The least bandwidth that a transfer has; nothing where KV moves in no time.
fn slowest(plan: &Plan) -> Option<f64> {
    let pool = plan.simulation.decode.as_ref()?;
    let own = plan.simulation.engine.transfer;
    let own = Some(own.kv_transfer_bandwidth).filter(|gbps| *gbps > 0.0 && own.kv_bytes_per_token > 0);
    let shared = pool.link.shared.map(|shared| shared.gigabytes_per_second);
    [own, shared].into_iter().flatten().min_by(f64::total_cmp)
}

fn variant(plan: &Plan, side: Side, gbps: f64) -> Perturbation {
    let factor = side.choose(2.0, 0.5);
    let plan = changed(plan, |plan| {
        plan.simulation.engine.transfer.kv_transfer_bandwidth *= factor;
        let shared = plan.simulation.decode.as_mut().and_then(|pool| pool.link.shared.as_mut());
        shared.into_iter().for_each(|shared| shared.gigabytes_per_second *= factor);
    });
    Perturbation {
        resource: &ENTRY,
        side,
        pool: Pool::Prefill,
        tier: None,
        what: format!("KV links {} as fast", side.choose("twice", "half")),
        amount: gbps * (factor - 1.0).abs(),
        unit: "GB/s",
        plan,
    }
}

fn idle(seen: &Seen<'_>) -> Option<String> {
    let share = seen.base.share_of_ttft(&["transfer_ms"])?;
    Some(format!("{:.1} % of the time to first token is on the way to decode workers", share * 100.0))
}
