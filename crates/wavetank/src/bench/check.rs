//! What holds for every plan, whether it was typed or read: what comes after may rely on it.

use std::path::Path;

use wavetank_bench::{Arrivals, Feed, Plan, Template, TierPlan, Time};
use wavetank_cache::eviction::{self, Settings};
use wavetank_model::{Nanos, Result, TierRole};
use wavetank_store::backend::Location;
use wavetank_store::backends;

use super::findings::Findings;
use super::place;
use super::plan::BenchPlan;
use super::simulated;

/// Notes everything that is wrong with `plan`.
pub(super) fn plan(plan: &BenchPlan, findings: &mut Findings) {
    run(&plan.run, findings);
    habits(&plan.run, findings);
    for tier in &plan.run.tiers {
        let sound = tier_is_sound(tier, plan.temporary_cache);
        let name = tier.role.name();
        findings.take(sound.map_err(|error| error.within(format!("{name} tier"))));
    }
    rank(plan, findings);
    simulated::check(plan, findings);
    findings.count("--trials", plan.trials.most.into(), 1, 1000);
    findings.within("--trials-ci", plan.trials.until_ci_percent.unwrap_or(1.0), 0.1, 100.0);
    let limits = &plan.criteria;
    for (name, limit) in [
        ("--pass-read-p95-ms", limits.storage_read_p95_ms),
        ("--pass-write-p95-ms", limits.storage_write_p95_ms),
        ("--pass-cpu-p95-ms", limits.cpu_p95_ms),
        ("--pass-hit-rate", limits.hit_rate),
        ("--pass-read-gbps", limits.read_bandwidth_gbps),
        ("--pass-write-gbps", limits.write_bandwidth_gbps),
    ] {
        findings.within(name, limit, 0.0, f64::INFINITY);
    }
    if plan.run.time == Time::Virtual && plan.run.io_threads != 1 {
        findings.wrong("io_threads", "must be 1 on a virtual clock");
    }
    let recorded = matches!(plan.run.feed, Feed::Recording { .. });
    if recorded != plan.dataset.is_some() {
        findings.wrong("dataset", "goes with a feed that is a recording, and only with it");
    }
}

/// Notes what is wrong with being one of many.
pub(super) fn rank(plan: &BenchPlan, findings: &mut Findings) {
    let Some(rank) = plan.rank else { return };
    if rank.number >= rank.of || rank.of < 2 {
        findings.wrong("rank", format!("there is no number {} of {}", rank.number, rank.of));
    }
    if plan.trials.until_ci_percent.is_some() {
        let what =
            "auto is not for ranks: they do not know of each other, and none may end before the others";
        findings.wrong("--trials", format!("{what} — hint: give a number"));
    }
}

fn run(run: &Plan, findings: &mut Findings) {
    let many = u64::from(u32::MAX);
    for (name, number) in [
        ("--num-users", run.users),
        ("workers_max", run.workers_max),
        ("--precondition-threads", run.precondition_depth),
        ("--io-threads", run.io_threads),
        ("--io-depth", run.io_depth),
        ("--max-concurrent-allocs", run.max_concurrent_allocs.unwrap_or(1)),
    ] {
        findings.count(name, number.into(), 1, many);
    }
    findings.count("bytes_per_token", run.bytes_per_token, 1, 1 << 40);
    let longest = Nanos::from_seconds(1e9).0;
    findings.count("--duration", run.duration.0, 1, longest);
    findings.count("--warmup", run.warmup.0, 0, longest);
    match run.feed {
        Feed::Recording { arrivals: Arrivals::Recorded { speedup }, .. } => {
            findings.within("--trace-speedup", speedup, 1e-6, 1e6);
        }
        Feed::Recording { arrivals: Arrivals::Every(gap), .. } => {
            findings.count("--request-rate (nanoseconds between requests)", gap.0, 1, longest);
        }
        _ => {}
    }
    if let Some(scaling) = &run.scaling {
        findings.count("--scale-interval", scaling.interval.0, 1, longest);
        findings.within("--target-saturation", scaling.target_saturation, 0.0, 1.0);
        findings.within("autoscaler.scale_up_factor", scaling.up_factor, 1.0, 100.0);
        findings.within("autoscaler.scale_down_factor", scaling.down_factor, 0.01, 1.0);
        let [least, most] = [scaling.users_min, scaling.users_max].map(u64::from);
        if least > most {
            findings.wrong("autoscaler.min_users", "must not be above autoscaler.max_users");
        } else if run.users > 0 {
            findings.count("--num-users with autoscaling", run.users.into(), least, most);
        }
    }
    let room = run.rules.room;
    findings.within("eviction.target_usage_ratio", room.target_share, 0.0, 1.0);
    findings.within("eviction.large_entry_limit_ratio", room.largest_share, 0.0, 1.0);
    let roles: Vec<TierRole> = run.tiers.iter().map(|tier| tier.role).collect();
    if !roles.is_sorted_by(|a, b| a < b) || roles.last() != Some(&TierRole::Storage) {
        findings.wrong("tiers", "must be some of gpu, cpu and storage in this order, storage last");
    }
}

fn habits(run: &Plan, findings: &mut Findings) {
    let habits = &run.habits;
    for (name, chance) in [
        ("conversation.end_conversation_probability", habits.end_probability),
        ("prefix_cache.system_prompt_hit_probability", habits.prompt_probability),
        ("rag.request_probability", habits.documents.request_probability),
        ("qos_distribution.interactive_probability", habits.classes.interactive_probability),
        ("qos_distribution.responsive_threshold", habits.classes.responsive_threshold),
    ] {
        findings.within(name, chance, 0.0, 1.0);
    }
    let shares = habits.mix.0;
    let is_mix = shares.iter().all(|share| share.is_finite() && *share >= 0.0);
    if !is_mix || shares.iter().sum::<f64>() <= 0.0 {
        findings.wrong("--persona-mix", "must be shares from 0 up, not all of them 0");
    }
    if !habits.templates.iter().all(template_is_sound) || !is_range(habits.documents.tokens_range) {
        findings.wrong("user_templates and rag", "ranges must begin with the smaller end, from 1 token up");
    }
}

fn template_is_sound(template: &Template) -> bool {
    let [low, high] = template.think_time_range;
    let is_time = low >= 0.0 && low <= high && high.is_finite();
    is_range(template.context_range) && is_range(template.generation_range) && is_time
}

fn is_range([low, high]: [u32; 2]) -> bool {
    low >= 1 && low <= high
}

fn tier_is_sound(tier: &TierPlan, is_temporary: bool) -> Result<()> {
    let entry = backends::backend(&tier.backend)?;
    let policy = eviction::policy(&tier.eviction).map_err(|error| error.at("--eviction"))?;
    let settings = Settings { capacity_bytes: tier.capacity_bytes, ..Settings::default() };
    (policy.build)(&settings).map_err(|error| error.at("--eviction"))?;
    let is_made = is_temporary && tier.location.is_empty();
    if entry.caps.location == Location::Directory && !is_made {
        place::check(Path::new(&tier.location))?;
    }
    Ok(())
}
