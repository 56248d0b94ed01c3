//! Comma-separated values (RFC 4180): a heading, a line per row; what has no value is empty.

use std::io::{self, Write};

use super::super::{Row, Swept, metric};
use super::{Entry, cell, metric_cell};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { extension: "csv", write };

fn write(swept: &Swept, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let first = ["point", "plan_hash"].into_iter().chain(swept.head.axes.iter().map(String::as_str));
    let metrics = metric::all().iter().map(|metric| metric.name.as_str());
    writer.write_record(first.chain(metrics).chain(["meets_sla", "pareto", "warnings"]))?;
    for row in &swept.rows {
        writer.write_record(cells(row))?;
    }
    writer.flush()
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.point.to_string(), row.plan_hash.clone()];
    cells.extend(row.values.iter().map(cell));
    cells.extend((0..row.metrics.len()).map(|at| metric_cell(row, at)));
    cells.push(row.meets_sla.map(|meets| meets.to_string()).unwrap_or_default());
    cells.push(row.is_on_front.to_string());
    cells.push(row.warnings.join("; "));
    cells
}
