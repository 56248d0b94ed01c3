//! Rows as columns, for formats that hold them so.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::{Row, Swept, metric};
use super::cell;

/// A column, one value or none for each row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// As in the heading of a table.
    pub name: String,
    /// Its values.
    pub cells: Cells,
}

/// The values of a column, all of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Cells {
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Any numbers.
    Real(Vec<Option<f64>>),
    /// Yes or no.
    Truth(Vec<Option<bool>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

impl Swept {
    /// The rows as columns: the point, its axes, every metric, what it is among others.
    pub fn columns(&self) -> Vec<Column> {
        let rows = &self.rows;
        let text = |of: &dyn Fn(&Row) -> String| Cells::Text(rows.iter().map(|row| Some(of(row))).collect());
        let named = |name: &str, cells: Cells| Column { name: name.to_owned(), cells };
        let mut columns = vec![
            named("point", Cells::Whole(rows.iter().map(|row| Some(row.point as i64)).collect())),
            named("plan_hash", text(&|row| row.plan_hash.clone())),
        ];
        for (at, name) in self.head.axes.iter().enumerate() {
            columns.push(named(name, axis(&rows.iter().map(|row| &row.values[at]).collect::<Vec<_>>())));
        }
        for (at, metric) in metric::all().iter().enumerate() {
            let values = rows.iter().map(|row| Some(row.metrics[at]).filter(|value| value.is_finite()));
            let cells = match metric.is_whole {
                true => Cells::Whole(values.map(|value| value.map(|value| value as i64)).collect()),
                false => Cells::Real(values.collect()),
            };
            columns.push(named(&metric.name, cells));
        }
        columns.push(named("meets_sla", Cells::Truth(rows.iter().map(|row| row.meets_sla).collect())));
        columns.push(named("pareto", Cells::Truth(rows.iter().map(|row| Some(row.is_on_front)).collect())));
        columns.push(named("warnings", text(&|row| row.warnings.join("; "))));
        columns
    }
}

/// Numbers where all are, else text.
fn axis(values: &[&Value]) -> Cells {
    let all = |is: &dyn Fn(&Value) -> bool| values.iter().all(|value| value.is_null() || is(value));
    if all(&Value::is_i64) {
        return Cells::Whole(values.iter().map(|value| value.as_i64()).collect());
    }
    if all(&Value::is_number) {
        return Cells::Real(values.iter().map(|value| value.as_f64()).collect());
    }
    if all(&Value::is_boolean) {
        return Cells::Truth(values.iter().map(|value| value.as_bool()).collect());
    }
    Cells::Text(values.iter().map(|value| (!value.is_null()).then(|| cell(value))).collect())
}
