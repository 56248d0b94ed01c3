//! KV blocks of a worker: a quarter more, a quarter fewer.

use wavetank::Plan;
use wavetank_report::render::table::number;
use wavetank_sim::timing::{DecodeBatch, TimingConfig};

use super::{Entry, GIB, Perturbation, Pool, Seen, Side, changed};
use crate::sweep::storage_price::gpu_bytes;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "gpu_memory", variants, idle, caveat };

fn variants(plan: &Plan) -> Vec<Perturbation> {
    Pool::both_ways(plan).filter_map(|(pool, side)| variant(plan, pool, side)).collect()
}

fn variant(plan: &Plan, pool: Pool, side: Side) -> Option<Perturbation> {
    let engine = pool.engine(plan);
    let before = f64::from(engine.num_gpu_blocks);
    let after = (before * side.choose(1.25, 0.75)).round().max(1.0).min(f64::from(u32::MAX));
    let blocks = (after - before).abs();
    if blocks == 0.0 {
        return None;
    }
    let gib = gpu_bytes(plan, engine).map(|bytes| bytes / GIB * blocks / before);
    let (amount, unit, told) = match gib {
        Some(gib) => (gib, "GiB per worker", format!("{} GiB", number(gib))),
        None => (blocks, "blocks per worker", format!("{blocks} blocks")),
    };
    let what = format!("{told} {} GPU memory per {}", side.choose("more", "less"), pool.worker());
    let plan = changed(plan, |plan| pool.engine_mut(plan).num_gpu_blocks = after as u32);
    Some(Perturbation { resource: &ENTRY, side, pool, tier: None, what, amount, unit, plan })
}

/// Some timing models know how full a cache is, and not how much is in it.
fn caveat(plan: &Plan) -> Option<String> {
    let engines = Pool::all(plan).iter().map(|pool| &pool.engine(plan).timing);
    let name = &engines.into_iter().find(|timing| knows_share(timing))?.name;
    Some(format!(
        "timing model \"{name}\" takes decode passes to be shorter where less of the cache is in use, so \
         more GPU memory looks faster by itself"
    ))
}

fn knows_share(timing: &TimingConfig) -> bool {
    let Ok(model) = timing.build() else { return false };
    let decode = |capacity_tokens| {
        let mut ms = [0.0];
        let batch = DecodeBatch { requests: 1, kv_tokens: 1000, capacity_tokens, longest: 1000 };
        model.decode_run_ms(batch, &mut ms);
        ms
    };
    decode(1 << 20) != decode(1 << 21)
}

fn idle(seen: &Seen<'_>) -> Option<String> {
    if seen.perturbation.side == Side::More && never_full(seen) {
        return Some("the cache was never full".to_owned());
    }
    let preempted = [seen.base, seen.tried].map(|run| run.of("counts.preemptions"));
    let reused = [seen.base, seen.tried].map(|run| run.of("prefix_cache_reused_ratio"));
    (preempted == [0.0; 2] && reused[0] == reused[1])
        .then(|| "no request lost its blocks, and as much was found in the cache".to_owned())
}

/// Whether all that was ever computed fits into the caches of its workers. What comes to a decode worker is
/// not counted by the worker, so nothing is known of those.
fn never_full(seen: &Seen<'_>) -> bool {
    let Seen { perturbation: Perturbation { pool, .. }, plan, base, .. } = *seen;
    let engine = pool.engine(plan);
    let is_known = *pool != Pool::Decode && engine.data_parallel_ranks <= 1;
    let all_ended = base.of("counts.arrived") == base.of("counts.completed");
    let fits = |share: &wavetank_report::WorkerShare| {
        let tokens = share.prompt_tokens + share.output_tokens;
        // The last block of each request may be filled in part.
        tokens / u64::from(engine.block_size) + 2 * share.requests <= u64::from(engine.num_gpu_blocks)
    };
    let workers = pool.workers(plan) as usize;
    is_known && all_ended && base.attribution.workers.iter().take(workers).all(fits)
}
