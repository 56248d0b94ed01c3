//! Advice as it stands in a report.

use serde_json::{Map, Value, json};

use super::effect::{Change, Measured};
use super::row::{Money, Row};
use super::{Advice, Untried};

impl Advice {
    /// The section `advice` of a report.
    pub fn json(&self) -> Value {
        let mut advice = json!({
            "goal": self.goal.name,
            "base": self.as_it_is(),
            "rows": self.rows.iter().map(|row| self.row(row)).collect::<Vec<_>>(),
            "untried": self.untried.iter().map(Untried::json).collect::<Vec<_>>(),
            "notes": self.notes,
            "partial": self.is_partial,
        });
        if let Some(spread) = &self.spread {
            advice["chance"] = spread.json();
        }
        if let Some(price) = &self.asked.price {
            advice["price"] = json!(price);
        }
        advice
    }

    fn as_it_is(&self) -> Value {
        let metrics: Map<String, Value> =
            self.goals.iter().map(|goal| (goal.name.to_owned(), finite(self.base.of(goal.name)))).collect();
        let mut base = json!({ "metrics": metrics });
        if self.asked.price.is_some() {
            base["usd_per_hour"] = finite(self.base.usd_per_hour());
            base["cost_usd_per_million_output_tokens"] = finite(self.base.usd_per_million());
        }
        base
    }

    fn row(&self, row: &Row) -> Value {
        let metric = |name: &str| change(Change { before: self.base.of(name), after: row.run.of(name) });
        let metrics: Map<String, Value> =
            self.goals.iter().map(|goal| (goal.name.to_owned(), metric(goal.name))).collect();
        let perturbation = &row.perturbation;
        let mut json = json!({
            "resource": perturbation.resource.name,
            "side": perturbation.side.name(),
            "pool": perturbation.pool.name(),
            "what": perturbation.what,
            "amount": perturbation.amount,
            "unit": perturbation.unit,
            "verdict": row.verdict.name(),
            "why": row.why,
            "gain_percent": finite(row.gain),
            "metrics": metrics,
            "counts": counts(&row.run),
        });
        if let Some(tier) = &perturbation.tier {
            json["tier"] = json!(tier);
        }
        if self.asked.price.is_some() {
            json["money"] = row.money.as_ref().map_or(Value::Null, Money::json);
        }
        json
    }
}

fn counts(run: &Measured) -> Value {
    let count = |name: &str| json!(run.of(&format!("counts.{name}")) as u64);
    let names = ["completed", "preemptions", "rejected"];
    Value::Object(names.map(|name| (name.to_owned(), count(name))).into_iter().collect())
}

fn change(change: Change) -> Value {
    json!({
        "value": finite(change.after),
        "change": finite(change.absolute()),
        "relative": finite(change.relative()),
    })
}

/// Nothing where there is no number.
fn finite(number: f64) -> Value {
    if number.is_finite() { json!(number) } else { Value::Null }
}

impl Money {
    fn json(&self) -> Value {
        json!({
            "usd_per_hour": change(self.usd_per_hour),
            "cost_usd_per_million_output_tokens": change(self.usd_per_million),
            "usd_per_hour_per_point": finite(self.usd_per_point),
        })
    }
}

impl Untried {
    fn json(&self) -> Value {
        json!({ "what": self.what, "why": self.why })
    }
}
