//! Spreadsheets of a finished report, so that they cannot say anything else than it does.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::Value;

use crate::render::workbook::{self, Field, Rows, lines, plain};

/// The columns of the product text, and where their values are. All other numbers follow under their own
/// names.
const COLUMNS: &[(&str, &str)] = &[
    ("Total Requests", "/total_requests"),
    ("Total Tokens", "/total_tokens"),
    ("Avg Throughput (tok/s)", "/avg_throughput_tokens_per_sec"),
    ("Storage Throughput (tok/s)", "/storage_throughput_tokens_per_sec"),
    ("Cache Hit Rate", "/cache_stats/cache_hit_rate"),
    ("E2E Latency P95 (ms)", "/end_to_end_latency_ms/p95"),
    ("Storage IO P95 (ms)", "/storage_io_latency_ms/p95"),
    ("Storage Assessment", "/cache_stats/storage_health/overall_status"),
];
const QOS: &str = "qos_metrics";

/// The report as a workbook: the summary in one row, then parameters, metrics and classes on their own.
/// `parameters` are those of the run under the names that their columns get.
pub fn xlsx(report: &Value, parameters: &[Field], out: &mut dyn Write) -> io::Result<()> {
    let (names, values) = summary_row(report, parameters).into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
    let sheets = vec![
        ("Summary", vec![names.into_iter().map(Value::from).collect(), values]),
        ("Run Parameters", lines(["Parameter", "Value"], parameters.to_vec())),
        ("Performance Metrics", lines(["Metric", "Value"], metrics(report))),
        ("QoS Metrics", classes(&report["summary"][QOS])),
    ];
    workbook::write(sheets, out)
}

/// The same on one sheet, below each other.
pub(in crate::render) fn whole(report: &Value, parameters: &[Field]) -> Rows {
    let blank = || [Vec::new()];
    lines(["Parameter", "Value"], parameters.to_vec())
        .into_iter()
        .chain(blank())
        .chain(lines(["Metric", "Value"], metrics(report)))
        .chain(blank())
        .chain(classes(&report["summary"][QOS]))
        .collect()
}

/// The summary in one row, below the names of its columns.
pub fn csv(report: &Value, parameters: &[Field], out: &mut dyn Write) -> io::Result<()> {
    let row = summary_row(report, parameters);
    let line = |cells: Vec<String>| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",");
    writeln!(out, "{}", line(row.iter().map(|(name, _)| name.clone()).collect()))?;
    writeln!(out, "{}", line(row.iter().map(|(_, value)| plain(value)).collect()))?;
    out.flush()
}

/// A line for each class under every name that one of them has.
fn classes(qos: &Value) -> Rows {
    let classes: Vec<(String, Vec<Field>)> =
        qos.as_object().into_iter().flatten().map(|(class, keys)| (class.clone(), scalars(keys))).collect();
    let names: BTreeSet<&String> =
        classes.iter().flat_map(|(_, fields)| fields).map(|(name, _)| name).collect();
    let heading =
        [Value::from("Class")].into_iter().chain(names.iter().map(|name| Value::from(name.as_str())));
    let row = |(class, fields): &(String, Vec<Field>)| {
        let value =
            |name: &&String| fields.iter().find(|(other, _)| other == *name).map(|(_, value)| value.clone());
        let values = names.iter().map(|name| value(name).unwrap_or(Value::Null));
        [Value::from(class.as_str())].into_iter().chain(values).collect()
    };
    [heading.collect()].into_iter().chain(classes.iter().map(row)).collect()
}

fn summary_row(report: &Value, parameters: &[Field]) -> Vec<Field> {
    let qos =
        scalars(&report["summary"][QOS]).into_iter().map(|(name, value)| (format!("{QOS}.{name}"), value));
    parameters.iter().cloned().chain(metrics(report)).chain(qos).collect()
}

/// Every number of the summary but those of the classes: first the columns people know.
fn metrics(report: &Value) -> Vec<Field> {
    let summary = &report["summary"];
    let known = COLUMNS.iter().map(|(name, pointer)| {
        ((*name).to_owned(), summary.pointer(pointer).cloned().unwrap_or(Value::Null))
    });
    let is_new = |name: &str| {
        let pointer = format!("/{}", name.replace('.', "/"));
        !name.starts_with(QOS) && COLUMNS.iter().all(|(_, known)| *known != pointer)
    };
    known.chain(scalars(summary).into_iter().filter(|(name, _)| is_new(name))).collect()
}

/// The numbers and yes-or-no answers in nested objects, named by their path.
fn scalars(value: &Value) -> Vec<Field> {
    let keys = value.as_object().into_iter().flatten();
    let fields = keys.flat_map(|(key, value)| match value {
        Value::Number(_) | Value::Bool(_) => vec![(key.clone(), value.clone())],
        Value::Object(_) => {
            scalars(value).into_iter().map(|(name, value)| (format!("{key}.{name}"), value)).collect()
        }
        _ => Vec::new(),
    });
    fields.collect()
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
