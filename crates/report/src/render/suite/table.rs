//! The comparison on a terminal: how fast each scenario was, then where its entries and its time went.

use crate::render::suite::short;
use crate::render::table::framed;
use crate::statistics::ratio;
use crate::suite::{Figures, Row, SuiteSummary, TierFigures};

/// What is shown where there is nothing to show.
const NOTHING: &str = "-";
/// The tiers, as a cell lists their shares.
const ROLES: [&str; 3] = ["gpu", "cpu", "storage"];

/// Two tables, the bottlenecks in words, and what follows from the numbers.
pub fn table(suite: &SuiteSummary) -> String {
    [speed(suite), whereabouts(suite), reasons(suite), findings(suite)].concat()
}

fn speed(suite: &SuiteSummary) -> String {
    let columns = [
        &["Scenario", "users", "tok/s", "req/s", "E2E\nP50 s", "E2E\nP95 s", "E2E\nP99 s"][..],
        &["read\nGiB/s", "write\nGiB/s", "read\nP95 ms", "write\nP95 ms", "storage"],
    ]
    .concat();
    let mut table = framed(&columns);
    for row in &suite.rows {
        table.add_row(cells(row, columns.len(), speed_cells));
    }
    let quick = if suite.quick { "Speed (quick, not that of the machine)" } else { "Speed" };
    let storage = "storage GiB/s of everything, P95 at the device without pushed-down entries";
    format!("{quick}; {storage}\n{table}\n")
}

fn speed_cells(row: &Figures) -> Vec<String> {
    let seconds = |ms: f64| short(ms / 1000.0);
    let latency = row.end_to_end_ms.map(|spread| [spread.p50, spread.p95, spread.p99].map(seconds));
    let [p50, p95, p99] = latency.unwrap_or_else(|| [(); 3].map(|()| NOTHING.to_owned()));
    vec![
        row.users.to_string(),
        short(row.tokens_per_second),
        short(row.requests_per_second),
        p50,
        p95,
        p99,
        short(row.storage_read_gbps),
        short(row.storage_write_gbps),
        shown(row.device_read_p95_ms),
        shown(row.device_write_p95_ms),
        row.assessment.clone(),
    ]
}

fn whereabouts(suite: &SuiteSummary) -> String {
    let columns = [
        &["Scenario", "hits\n%", "queue\nmean s", "queue\nP95 s", "entries\n% g/c/s"][..],
        &["bytes\n% g/c/s", "read\n% g/c/s", "most time", "CV\n%", "warn"],
    ]
    .concat();
    let mut table = framed(&columns);
    for row in suite.rows.iter().filter(|row| row.figures().is_some()) {
        table.add_row(cells(row, columns.len(), whereabouts_cells));
    }
    if table.row_count() == 0 {
        return String::new();
    }
    let caption = "Where entries were in the end, what was read from where, what took the most time; shares \
                   of GPU/CPU/storage";
    format!("{caption}\n{table}\n")
}

fn whereabouts_cells(row: &Figures) -> Vec<String> {
    let wait = row.queue_wait_ms;
    vec![
        row.hit_rate.map_or_else(|| NOTHING.to_owned(), |rate| format!("{:.0}", rate * 100.0)),
        shown(wait.map(|wait| wait.mean / 1000.0)),
        shown(wait.map(|wait| wait.p95 / 1000.0)),
        shares(&row.tiers, |tier| tier.entries),
        shares(&row.tiers, |tier| tier.bytes),
        shares(&row.tiers, |tier| tier.read_bytes),
        format!("{} {:.0} %", row.bottleneck.part.replace('_', " "), row.bottleneck.share * 100.0),
        shown(row.trials.cv.map(|cv| cv * 100.0)),
        row.warnings.to_string(),
    ]
}

/// A row of numbers, or of nothing with the reason in one word at its end.
fn cells(row: &Row, columns: usize, numbers: fn(&Figures) -> Vec<String>) -> Vec<String> {
    let cells = row.figures().map(numbers).unwrap_or_else(|| {
        let mut cells = vec![NOTHING.to_owned(); columns - 2];
        cells.push(row.status.word().to_owned());
        cells
    });
    [row.name.clone()].into_iter().chain(cells).collect()
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), short)
}

/// How something is spread over the tiers, in percent; a tier that the scenario does not have has none.
fn shares(tiers: &[TierFigures], amount: fn(&TierFigures) -> u64) -> String {
    let total: u64 = tiers.iter().map(amount).sum();
    let share = |role: &str| match tiers.iter().find(|tier| tier.role == role) {
        Some(tier) if total > 0 => format!("{:.0}", ratio(amount(tier) as f64, total as f64) * 100.0),
        _ => NOTHING.to_owned(),
    };
    ROLES.map(share).join("/")
}

/// Why there are no numbers, what took the time, and what the autoscaler found.
fn reasons(suite: &SuiteSummary) -> String {
    let lines = suite.rows.iter().map(|row| {
        let scaling = row.figures().and_then(|figures| figures.scaling.as_ref());
        let scaling = scaling.map(|found| format!("  {}: {}\n", row.name, found.reason)).unwrap_or_default();
        let what = match row.figures() {
            Some(figures) if figures.modelled_gpu => {
                format!("{} (the GPU is modelled)", figures.bottleneck.sentence)
            }
            Some(figures) => figures.bottleneck.sentence.clone(),
            None => match row.status.why() {
                Some(why) => format!("{}: {why}", row.status.word()),
                None => row.status.word().to_owned(),
            },
        };
        format!("  {}: {what}\n{scaling}", row.name)
    });
    format!("Bottlenecks\n{}", lines.collect::<String>())
}

fn findings(suite: &SuiteSummary) -> String {
    let findings = suite.findings();
    if findings.is_empty() {
        return String::new();
    }
    let lines: String = findings.iter().map(|finding| format!("  {finding}\n")).collect();
    format!("What this says\n{lines}")
}
