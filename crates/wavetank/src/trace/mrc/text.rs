//! Hit ratio against capacity, as a table and as CSV.

use std::fmt::Write as _;

use wavetank_cache::mrc::{Report, Row, Rule};
use wavetank_report::render::table::framed;

use super::super::text::Sheet;
use super::{CacheCurves, CurveUnit};

impl CacheCurves {
    /// What `trace mrc` prints.
    pub fn text(&self) -> String {
        let Report { totals, bound, .. } = &self.report;
        let mut sheet = Sheet::default();
        sheet.line("trace", self.files.join(", "));
        sheet.line("format", self.format);
        let (blocks, unit) = self.words();
        sheet.line(
            "accesses",
            format_args!(
                "{} requests for {} {blocks}, {} {unit}",
                totals.requests, totals.blocks, totals.weight
            ),
        );
        let about = if self.is_lru_sampled() { "about " } else { "" };
        sheet.line("unique", format_args!("{about}{} {blocks}", totals.distinct_blocks));
        sheet.line(
            "bound",
            format_args!(
                "{about}{:.2} % of {blocks}, {:.2} % of {unit}, with an endless cache",
                bound.block_hit_ratio * 100.0,
                bound.weight_hit_ratio * 100.0
            ),
        );
        let rule = match self.report.rule {
            Rule::Prefix => "prefix: served only if all before it in its prompt are",
            Rule::Each => "each: served wherever it stands",
        };
        sheet.line("rule", rule);
        self.warnings.iter().for_each(|warning| sheet.line("note", warning));
        let mut text = format!("{}\n{}\n", sheet.into_text(), self.table());
        self.say_samples(&mut text);
        self.say_knees(&mut text);
        text
    }

    /// What is counted, and what it weighs.
    fn words(&self) -> (&'static str, &'static str) {
        match self.unit {
            CurveUnit::Blocks { .. } => ("blocks", "tokens"),
            CurveUnit::Bytes => ("objects", "bytes"),
        }
    }

    fn is_lru_sampled(&self) -> bool {
        self.report.curves[0].rows.iter().any(|row| row.one_in > 1)
    }

    fn table(&self) -> String {
        let first = match self.unit {
            CurveUnit::Blocks { .. } => &["capacity (blocks)", "(tokens)"][..],
            CurveUnit::Bytes => &["capacity (bytes)"],
        };
        let named: Vec<String> =
            self.report.curves.iter().map(|curve| format!("{} %", curve.policy)).collect();
        let columns: Vec<&str> = first.iter().copied().chain(named.iter().map(String::as_str)).collect();
        let mut table = framed(&columns);
        for (place, row) in self.report.curves[0].rows.iter().enumerate() {
            let mut cells = vec![row.capacity.to_string()];
            if first.len() > 1 {
                cells.push(self.weight_of(row.capacity).to_string());
            }
            let ratio = |row: &Row| format!("{:.2}", row.block_hit_ratio * 100.0);
            cells.extend(self.report.curves.iter().map(|curve| ratio(&curve.rows[place])));
            table.add_row(cells);
        }
        table.to_string()
    }

    fn say_samples(&self, text: &mut String) {
        let rows = || self.report.curves.iter().flat_map(|curve| &curve.rows);
        let one_in = rows().map(|row| row.one_in).max().unwrap_or(1);
        if one_in > 1 {
            let _ = writeln!(text, "sampled: down to one block in {one_in}; --sample 1 looks at all");
        }
        if let Some(error) = rows().filter_map(|row| row.lru_error).map(f64::abs).reduce(f64::max) {
            let points = error * 100.0;
            let _ = writeln!(text, "the same samples of lru are off by at most {points:.2} points");
        }
    }

    fn say_knees(&self, text: &mut String) {
        let (_, unit) = self.words();
        let said = |capacity: u64| match self.unit {
            CurveUnit::Blocks { .. } => format!("{capacity} blocks ({} {unit})", self.weight_of(capacity)),
            CurveUnit::Bytes => format!("{capacity} bytes"),
        };
        for knee in &self.report.knees {
            let percent = knee.block_hit_ratio * 100.0;
            let _ = writeln!(text, "knee of lru: {percent:.2} % at {}", said(knee.capacity));
        }
        for enough in &self.report.enough {
            let percent = enough.share_of_bound * 100.0;
            let _ = writeln!(text, "{percent:.0} % of the bound: lru with {}", said(enough.capacity));
        }
    }

    /// One line for each policy and capacity.
    pub fn csv(&self) -> String {
        let (blocks, unit) = self.words();
        let capacity = match self.unit {
            CurveUnit::Blocks { .. } => "blocks",
            CurveUnit::Bytes => "bytes",
        };
        let head = "policy,capacity_";
        let mut text =
            format!("{head}{capacity},capacity_{unit},hit_ratio_{blocks},hit_ratio_{unit},one_in\n");
        if capacity == unit {
            text = format!("{head}{capacity},hit_ratio_{blocks},hit_ratio_{unit},one_in\n");
        }
        for curve in &self.report.curves {
            for row in &curve.rows {
                let Row { capacity: size, block_hit_ratio, weight_hit_ratio, one_in, .. } = row;
                let _ = write!(text, "{},{size},", curve.policy);
                if capacity != unit {
                    let _ = write!(text, "{},", self.weight_of(*size));
                }
                let _ = writeln!(text, "{block_hit_ratio},{weight_hit_ratio},{one_in}");
            }
        }
        text
    }
}
