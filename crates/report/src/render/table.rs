//! The summary table on standard output (spec/replay.md 1.4).

use comfy_table::{CellAlignment, ContentLineStyle, LineStyle, Table, TableStyle};
use serde_json::Value;

use crate::{Distribution, Summary};

/// Heavy rules around the heading, light ones below it.
const FRAME: TableStyle = TableStyle::new()
    .top_border(LineStyle::new('┏', '━', '┳', '┓'))
    .header_lines(ContentLineStyle::new('┃', '┃', '┃'))
    .header_separator(LineStyle::new('┡', '━', '╇', '┩'))
    .content_lines(ContentLineStyle::new('│', '│', '│'))
    .bottom_border(LineStyle::new('└', '─', '┴', '┘'));
const COLUMNS: [&str; 8] = ["Metric", "avg", "min", "max", "p99", "p90", "p75", "std"];

/// The table of a serving run.
pub fn serving(summary: &Summary) -> String {
    let mut table = framed(&COLUMNS);
    let distributions = [
        ("Time to First Token (ms)", &summary.ttft_ms),
        ("Time to Second Token (ms)", &summary.ttst_ms),
        ("Request Latency (ms)", &summary.e2e_ms),
        ("Inter Token Latency (ms)", &summary.itl_ms),
        ("Output Token Throughput Per User (tokens/sec/user)", &summary.rate_per_user),
    ];
    for (name, values) in distributions {
        table.add_row(cells(name, values));
    }
    let single = [
        ("Output Token Throughput (tokens/sec)", summary.output_tokens_per_second()),
        ("Request Throughput (requests/sec)", summary.requests_per_second()),
        ("Request Count (requests)", summary.counts.completed as f64),
    ];
    for (name, value) in single {
        let mut row = vec![name.to_owned(), number(value)];
        row.resize(COLUMNS.len(), "N/A".to_owned());
        table.add_row(row);
    }
    table.to_string()
}

/// Where the time to the first token went and how even the load was, in two lines.
pub fn bottleneck(summary: &Summary) -> String {
    let attribution = &summary.attribution;
    let parts = attribution.ttft_parts();
    let ttft: f64 = parts.iter().map(|(_, part)| part.mean).sum();
    let share = |mean: f64| if ttft > 0.0 { mean * 100.0 / ttft } else { 0.0 };
    let name = |key: &str| key.trim_end_matches("_ms").replace('_', " ");
    let described: Vec<String> = parts
        .into_iter()
        .filter(|(key, _)| attribution.has_part(key))
        .map(|(key, part)| format!("{} {} ms ({:.0} %)", name(key), number(part.mean), share(part.mean)))
        .collect();
    let mut text = format!("TTFT by part: {}\n", described.join(", "));
    if let Some((most, least)) = attribution.extremes() {
        let load = |id: usize| {
            let load = &attribution.workers[id];
            let busy = load.busy_share(attribution.span) * 100.0;
            format!("{busy:.0} % busy, {} requests", load.requests)
        };
        text += &match attribution.workers.len() {
            1 => format!("The worker: {}\n", load(most)),
            _ => format!("Busiest worker: {most} ({}), least busy: {least} ({})\n", load(most), load(least)),
        };
    }
    text
}

/// How far the usual metrics lie apart over seeds; nothing when there was one run only.
pub fn seeds(report: &Value) -> String {
    let (Some(seeds), metrics) = (report["seeds"]["values"].as_array(), &report["seeds"]["metrics"]) else {
        return String::new();
    };
    let mut table = framed(&["Over seeds", "mean", "min", "max", "spread %"]);
    for name in
        ["mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms", "mean_e2e_latency_ms", "output_throughput_tok_s"]
    {
        let [mean, min, max] = ["mean", "min", "max"].map(|key| metrics[name][key].as_f64().unwrap_or(0.0));
        let spread = if mean == 0.0 { 0.0 } else { (max - min) * 100.0 / mean };
        table.add_row([name.to_owned(), number(mean), number(min), number(max), number(spread)]);
    }
    format!("{} seeds; the table above is the first\n{table}\n", seeds.len())
}

/// A table whose first column is left-justified, the others right.
pub fn framed(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(FRAME).set_header(columns);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn cells(name: &str, values: &Distribution) -> Vec<String> {
    let Distribution { count, mean, min, max, p99, p90, p75, std, .. } = *values;
    let shown = |value| if count > 0 { number(value) } else { "N/A".to_owned() };
    let numbers = [mean, min, max, p99, p90, p75, std].map(shown);
    [name.to_owned()].into_iter().chain(numbers).collect()
}

/// Two decimals and thousands separators.
pub fn number(value: f64) -> String {
    let text = format!("{:.2}", value.abs());
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "00"));
    let mut grouped = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{grouped}.{decimals}")
}

/// Ratios and short times need more digits.
pub fn precise(value: f64) -> String {
    if value != 0.0 && value.abs() < 1.0 { format!("{value:.4}") } else { number(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(0.0), "0.00");
        assert_eq!(number(999.999), "1,000.00");
        assert_eq!(number(-1_234_567.891), "-1,234,567.89");
        assert_eq!(number(123.4), "123.40");
    }
}
