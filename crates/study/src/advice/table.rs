//! Advice on a terminal.

use std::fmt::Write as _;

use wavetank_report::render::table::{framed, number, precise};

use super::Advice;
use super::effect::{Change, Verdict};
use super::resources::Side;
use super::row::Row;

impl Advice {
    /// The table and the lines below it.
    pub fn table(&self) -> String {
        let mut text = format!("\n{}\n{}\n", self.headline(), self.rows_table());
        for row in self.rows.iter().filter(|row| !row.why.is_empty()) {
            let _ = writeln!(text, "{}: {}", row.perturbation.what, row.why);
        }
        for untried in &self.untried {
            let _ = writeln!(text, "{}: not tried: {}", untried.what, untried.why);
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        if let Some(spread) = &self.spread {
            let width = number(spread.of_metric(self.goal.name));
            let _ = writeln!(
                text,
                "{} seeds of the plan as it is: {} differs by {width}",
                spread.count(),
                self.goal.plain_title()
            );
        }
        text
    }

    /// The one thing to know.
    fn headline(&self) -> String {
        let title = self.goal.plain_title();
        let best = self.rows.first().filter(|row| row.perturbation.side == Side::More);
        let said = |row: &Row| match row.verdict {
            Verdict::Serves => Some(row.why.clone()),
            Verdict::Helps => Some(format!("{title} {}", percent(self.change(row, self.goal.name)))),
            _ => None,
        };
        match best.and_then(|row| Some((&row.perturbation.what, said(row)?))) {
            Some((what, said)) => format!("Advice: {what}: {said}"),
            None => format!("Advice: more of nothing that was tried improves {title}"),
        }
    }

    fn change(&self, row: &Row, name: &str) -> Change {
        Change { before: self.base.of(name), after: row.run.of(name) }
    }

    fn rows_table(&self) -> String {
        let has_prices = self.asked.price.is_some();
        let mut columns = vec!["Change"];
        columns.extend(self.goals.iter().map(|goal| goal.title));
        columns.extend(has_prices.then_some(["USD/h", "USD/M output", "USD/h per %"]).into_iter().flatten());
        let mut table = framed(&columns);
        let mut now = vec!["as it is".to_owned()];
        now.extend(self.goals.iter().map(|goal| shown(self.base.of(goal.name))));
        if has_prices {
            now.extend([shown(self.base.usd_per_hour()), shown(self.base.usd_per_million()), String::new()]);
        }
        table.add_row(now);
        for row in &self.rows {
            let mut cells = vec![row.perturbation.what.clone()];
            cells.extend(self.goals.iter().map(|goal| percent(self.change(row, goal.name))));
            if has_prices {
                cells.extend(money(row));
            }
            table.add_row(cells);
        }
        table.to_string()
    }
}

fn money(row: &Row) -> [String; 3] {
    match &row.money {
        None => ["no price", "", ""].map(str::to_owned),
        Some(money) => [
            signed(money.usd_per_hour.absolute()),
            shown(money.usd_per_million.after),
            if money.usd_per_point.is_nan() { String::new() } else { shown(money.usd_per_point) },
        ],
    }
}

fn shown(value: f64) -> String {
    if value.is_finite() { precise(value) } else { "N/A".to_owned() }
}

fn signed(value: f64) -> String {
    if value > 0.0 { format!("+{}", precise(value)) } else { precise(value) }
}

/// `-18.0 %`.
fn percent(change: Change) -> String {
    let relative = change.relative() * 100.0;
    match relative.is_finite() {
        false => "N/A".to_owned(),
        true if change.is_none() => "0.0 %".to_owned(),
        true => format!("{relative:+.1} %"),
    }
}
