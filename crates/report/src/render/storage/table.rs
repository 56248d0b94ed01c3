//! The results as people read them on a terminal.

use crate::Spread;
use crate::render::table::{framed, number};
use crate::statistics::{ratio, sum};
use crate::storage::{
    Assessment, Bandwidth, ClassSummary, Clock, Criterion, GIB, LaneSummary, Metric, Standing,
    StorageSummary, TierSummary,
};
use wavetank_model::TierRole;

/// A screen of text: the answer first, then where it comes from.
pub fn table(title: &str, run: &StorageSummary, warnings: &[String]) -> String {
    let assessment = assessment(&run.assessment());
    let metrics: String = run.metrics().iter().map(metric).collect();
    let bottleneck = run.bottleneck().sentence;
    let warnings: String = warnings.iter().map(|warning| format!("Warning: {warning}\n")).collect();
    [
        heading(title, run.setting.clock),
        assessment,
        requests(run),
        metrics,
        latencies(run),
        tiers(run),
        cache(run),
        classes(&run.requests.classes),
        format!("Bottleneck: {bottleneck}\n"),
        warnings,
    ]
    .concat()
}

fn heading(title: &str, clock: Clock) -> String {
    match clock {
        Clock::Wall => format!("{title}\n"),
        Clock::Virtual => format!("{title}\nVirtual time: every rate is per virtual second\n"),
        Clock::VirtualLogged => format!("{title} (virtual time, nothing moved)\n"),
        Clock::Simulated => format!("{title} (simulated: times are those of models, nothing moved)\n"),
    }
}

fn assessment(assessment: &Assessment) -> String {
    let mark = match assessment.status() {
        "PASS" => " ✓",
        "FAIL" => " ✗",
        _ => "",
    };
    let (passed, total) = (assessment.passed_count(), assessment.total_count());
    let heading = format!("### STORAGE PERFORMANCE ASSESSMENT: {}{mark} ###", assessment.status());
    let criteria: String = assessment.criteria.iter().map(criterion).collect();
    format!("{heading}\n  Criteria Passed: {passed}/{total}\n{criteria}")
}

fn criterion(criterion: &Criterion) -> String {
    let Criterion { name, actual, unit, passed, note, .. } = criterion;
    let Some(passed) = passed else { return format!("  - {name}: {note}\n") };
    let mark = if *passed { '✓' } else { '✗' };
    let found = match *unit {
        "ratio" => format!("{:.1}%", actual * 100.0),
        "ms" => format!("{}ms", number(*actual)),
        unit => format!("{} {unit}", number(*actual)),
    };
    format!("  {mark} {name}: {found}\n")
}

fn requests(run: &StorageSummary) -> String {
    let (requests, window) = (&run.requests, &run.window);
    let rate = number(run.per_second(|run| run.requests.completed() as f64));
    // Each rank has its own window: their rates are not the requests over the whole time.
    let rate =
        if run.parts.is_empty() { format!("{rate}/s") } else { format!("{rate}/s, the ranks' own added up") };
    format!(
        "Requests: {} served in {} s ({rate}), {} in flight, {} waiting, {} turned away; \
         {} tokens generated\n",
        requests.completed(),
        number(window.elapsed.as_seconds()),
        window.in_flight,
        window.queued_at_end,
        requests.turned_away(),
        requests.generated_tokens,
    )
}

fn metric(metric: &Metric) -> String {
    let label = match metric.standing {
        Standing::Primary => "  PRIMARY",
        Standing::Secondary => "",
        Standing::Misleading(_) => "  NOT RECOMMENDED (misleading)",
    };
    format!("  {:<30}{:>16} {}{label}\n", metric.name.title(), number(metric.value), metric.unit)
}

fn latencies(run: &StorageSummary) -> String {
    let requests = &run.requests;
    let rows = [
        ("End to end", &requests.end_to_end),
        ("Queue wait", &requests.waited),
        ("Storage I/O", &requests.storage),
        ("Generation", &requests.generation),
    ];
    let mut table = framed(&["Latency (ms)", "mean", "P50", "P95", "P99"]);
    for (name, spread) in rows {
        let Spread { mean, p50, p95, p99, .. } = *spread;
        let numbers = [mean, p50, p95, p99].map(|value| shown(spread, value));
        table.add_row([name.to_owned()].into_iter().chain(numbers));
    }
    format!("{table}\n")
}

pub(super) fn shown(spread: &Spread, value: f64) -> String {
    if spread.count() > 0 { number(value) } else { "N/A".to_owned() }
}

fn tiers(run: &StorageSummary) -> String {
    let columns = [
        &["Tier (ms)", "read GiB/s", "write GiB/s", "read P95", "device", "wait P95"][..],
        &["write P95", "device", "wait P95", "demoted", "promoted", "evicted"],
    ]
    .concat();
    let mut table = framed(&columns);
    for tier in &run.tiers {
        table.add_row(tier_cells(run, tier));
    }
    format!("{table}\n")
}

fn tier_cells(run: &StorageSummary, tier: &TierSummary) -> Vec<String> {
    let Bandwidth { read_gbps, write_gbps } = run.bandwidth(tier.role);
    let p95 = |spread: &Spread| shown(spread, spread.p95);
    // Memory is shown by what it took itself, a drive as callers see it.
    let whole = |lane: &LaneSummary| match tier.role {
        TierRole::Storage => p95(&lane.total),
        TierRole::Gpu | TierRole::Cpu => p95(&lane.service),
    };
    vec![
        tier.role.name().to_owned(),
        number(read_gbps),
        number(write_gbps),
        whole(&tier.reads),
        p95(&tier.reads.device),
        p95(&tier.reads.wait),
        whole(&tier.writes),
        p95(&tier.writes.device),
        p95(&tier.writes.wait),
        tier.demoted_out.operations.to_string(),
        tier.promoted_out.operations.to_string(),
        tier.evictions.to_string(),
    ]
}

fn cache(run: &StorageSummary) -> String {
    let touched = run.touches.all();
    let entries = sum(run.tiers.iter().map(|tier| tier.at_end.entries));
    let held = run.tiers.iter().map(|tier| {
        let share = ratio(tier.at_end.entries as f64, entries as f64) * 100.0;
        let gib = number(tier.at_end.bytes as f64 / GIB);
        format!("{} {} ({share:.0} %, {gib} GiB)", tier.role.name(), tier.at_end.entries)
    });
    format!(
        "Cache: hit rate {:.1} % ({} of {} lookups, {} reads failed)\nEntries: {}\n",
        touched.hit_rate() * 100.0,
        touched.hits,
        touched.lookups(),
        touched.failed_reads,
        held.collect::<Vec<_>>().join(", "),
    )
}

fn classes(classes: &[ClassSummary]) -> String {
    let mut table = framed(&[
        "Class",
        "served",
        "turned away",
        "unfinished",
        "mean ms",
        "P95 ms",
        "target ms",
        "kept",
        "met",
    ]);
    for class in classes {
        let spread = &class.end_to_end;
        let known = class.has_requests();
        table.add_row([
            class.class.name().to_owned(),
            class.served().to_string(),
            class.turned_away.to_string(),
            class.unfinished.to_string(),
            shown(spread, spread.mean),
            shown(spread, spread.p95),
            number(class.target.p95_ms),
            if known { format!("{:.1} %", class.compliance() * 100.0) } else { "N/A".to_owned() },
            if !known {
                "N/A"
            } else if class.met() {
                "✓"
            } else {
                "✗"
            }
            .to_owned(),
        ]);
    }
    format!("{table}\n")
}
