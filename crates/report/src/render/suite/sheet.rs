//! The suite as a workbook: a row per scenario first, then the machine, then a sheet per scenario.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::render::storage::whole_sheet;
use crate::render::workbook::{self, Field, Rows, lines};
use crate::suite::{Figures, Row, SuiteSummary};

/// The full results of one scenario.
pub struct SuiteSheet {
    /// Its name.
    pub name: String,
    /// Its report.
    pub report: Value,
    /// Its parameters, under the names that their lines get.
    pub parameters: Vec<Field>,
}

/// Writes the workbook; `machine` is what the suite ran on, and `sheets` are of scenarios that ended.
pub fn xlsx(
    suite: &SuiteSummary,
    machine: Vec<Field>,
    sheets: &[SuiteSheet],
    out: &mut dyn Write,
) -> io::Result<()> {
    let scenario = |row: &Row| match sheets.iter().find(|sheet| sheet.name == row.name) {
        Some(sheet) => whole_sheet(&sheet.report, &sheet.parameters),
        None => {
            let fields = [("Status", row.status.word()), ("Reason", row.status.why().unwrap_or_default())];
            let fields = fields.map(|(name, value)| (name.to_owned(), Value::from(value)));
            lines([row.title.as_str(), ""], fields.to_vec())
        }
    };
    let mut all = vec![("Summary", rows(suite)), ("Machine", lines(["What", "Value"], machine))];
    all.extend(suite.rows.iter().map(|row| (row.name.as_str(), scenario(row))));
    workbook::write(all, out)
}

/// A column's name, and its value in a row with numbers.
type Column = (&'static str, fn(&Figures) -> Value);

const COLUMNS: &[Column] = &[
    ("Model", |row| json!(row.model)),
    ("GPU Modelled", |row| json!(row.modelled_gpu)),
    ("Users", |row| json!(row.users)),
    ("Memory Bytes", |row| json!(row.memory_bytes)),
    ("Measured (s)", |row| json!(row.seconds)),
    ("Requests", |row| json!(row.requests)),
    ("Throughput (tok/s)", |row| json!(row.tokens_per_second)),
    ("Requests per Second", |row| json!(row.requests_per_second)),
    ("E2E Latency P50 (ms)", |row| json!(row.end_to_end_ms.map(|spread| spread.p50))),
    ("E2E Latency P95 (ms)", |row| json!(row.end_to_end_ms.map(|spread| spread.p95))),
    ("E2E Latency P99 (ms)", |row| json!(row.end_to_end_ms.map(|spread| spread.p99))),
    ("Queue Wait Mean (ms)", |row| json!(row.queue_wait_ms.map(|wait| wait.mean))),
    ("Queue Wait P95 (ms)", |row| json!(row.queue_wait_ms.map(|wait| wait.p95))),
    ("Storage Read (GiB/s)", |row| json!(row.storage_read_gbps)),
    ("Storage Write (GiB/s)", |row| json!(row.storage_write_gbps)),
    ("Device Read P95 (ms)", |row| json!(row.device_read_p95_ms)),
    ("Device Write P95 (ms)", |row| json!(row.device_write_p95_ms)),
    ("Cache Hit Rate", |row| json!(row.hit_rate)),
    ("GPU Entries", |row| tier(row, "gpu", |tier| tier.entries)),
    ("CPU Entries", |row| tier(row, "cpu", |tier| tier.entries)),
    ("Storage Entries", |row| tier(row, "storage", |tier| tier.entries)),
    ("GPU Bytes", |row| tier(row, "gpu", |tier| tier.bytes)),
    ("CPU Bytes", |row| tier(row, "cpu", |tier| tier.bytes)),
    ("Storage Bytes", |row| tier(row, "storage", |tier| tier.bytes)),
    ("GPU Bytes Read", |row| tier(row, "gpu", |tier| tier.read_bytes)),
    ("CPU Bytes Read", |row| tier(row, "cpu", |tier| tier.read_bytes)),
    ("Storage Bytes Read", |row| tier(row, "storage", |tier| tier.read_bytes)),
    ("Bottleneck", |row| json!(row.bottleneck.sentence)),
    ("Storage Assessment", |row| json!(row.assessment)),
    ("Users Within Target", |row| json!(row.scaling.as_ref().map(|found| found.users_within_target))),
    ("Peak Users", |row| json!(row.scaling.as_ref().map(|found| found.peak_users))),
    ("Peak Throughput (tok/s)", |row| json!(row.scaling.as_ref().map(|found| found.peak_tokens_per_second))),
    ("Trials", |row| json!(row.trials.run)),
    ("Trials' Metric", |row| json!(row.trials.metric)),
    ("Median of Trials", |row| json!(row.trials.median)),
    ("CV of Trials", |row| json!(row.trials.cv)),
    ("Warnings", |row| json!(row.warnings)),
];

fn tier(row: &Figures, role: &str, value: fn(&crate::suite::TierFigures) -> u64) -> Value {
    json!(row.tiers.iter().find(|tier| tier.role == role).map(value))
}

fn rows(suite: &SuiteSummary) -> Rows {
    let heading = ["Scenario", "Status", "Reason"].into_iter().chain(COLUMNS.iter().map(|(name, _)| *name));
    let row = |row: &Row| {
        let status = [json!(row.name), json!(row.status.word()), json!(row.status.why())];
        let numbers = row.figures().into_iter().flat_map(|row| COLUMNS.iter().map(|(_, value)| value(row)));
        status.into_iter().chain(numbers).collect()
    };
    let quick = "quick: these numbers say that it works, and nothing about this machine";
    let quick = suite.quick.then(|| vec![json!(quick)]);
    [heading.map(Value::from).collect()].into_iter().chain(suite.rows.iter().map(row)).chain(quick).collect()
}
