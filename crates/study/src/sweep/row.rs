//! A point and what came of it, as outputs show it.

use serde_json::{Map, Value, json};
use wavetank_model::{Error, Result};

use super::finished::Finished;
use super::metric;
use super::point::Point;

/// A row of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its place among all points of the spec.
    pub point: usize,
    /// Names what it depends on.
    pub plan_hash: String,
    /// A value for each axis; `null` is the base's.
    pub values: Vec<Value>,
    /// In the order of [`super::metrics`]; what has no value is no number.
    pub metrics: Vec<f64>,
    /// Whether all bounds are met, where there are any.
    pub meets_sla: Option<bool>,
    /// Whether no other row is better in all that is wanted.
    pub is_on_front: bool,
    /// What its run said.
    pub warnings: Vec<String>,
}

impl Row {
    /// Of a point that was run or found; what it is among others is not known yet.
    pub(crate) fn of(point: &Point, finished: &Finished) -> Self {
        Self {
            point: point.number,
            plan_hash: point.hash.clone(),
            values: point.values.clone(),
            metrics: finished.metrics.clone(),
            meets_sla: None,
            is_on_front: false,
            warnings: finished.warnings.clone(),
        }
    }

    /// As it stands in a report.
    pub fn json(&self, axes: &[String]) -> Value {
        let parameters: Map<String, Value> = axes.iter().cloned().zip(self.values.iter().cloned()).collect();
        json!({
            "point": self.point,
            "plan_hash": self.plan_hash,
            "parameters": parameters,
            "metrics": self.metrics_json(),
            "meets_sla": self.meets_sla,
            "pareto": self.is_on_front,
            "warnings": self.warnings,
        })
    }

    /// The metrics that have a value.
    pub(crate) fn metrics_json(&self) -> Value {
        let named = self.metrics.iter().enumerate();
        let named =
            named.filter_map(|(at, value)| Some((metric::name(at).to_owned(), metric::value(at, *value)?)));
        Value::Object(named.collect())
    }

    /// The same from a report.
    pub(crate) fn of_json(row: &Value, axes: &[String]) -> Result<Self> {
        let missing = |key: &str| Error::input(format!("a row has no \"{key}\""));
        let point = row.get("point").and_then(Value::as_u64).ok_or_else(|| missing("point"))?;
        let hash = row.get("plan_hash").and_then(Value::as_str).ok_or_else(|| missing("plan_hash"))?;
        let parameters = row.get("parameters").ok_or_else(|| missing("parameters"))?;
        let metrics = row.get("metrics").and_then(Value::as_object).ok_or_else(|| missing("metrics"))?;
        let mut values = vec![f64::NAN; metric::all().len()];
        for (name, value) in metrics {
            values[metric::find(name)?] = value.as_f64().unwrap_or(f64::NAN);
        }
        let warnings = row.get("warnings").and_then(Value::as_array).into_iter().flatten();
        Ok(Self {
            point: point as usize,
            plan_hash: hash.to_owned(),
            values: axes.iter().map(|axis| parameters.get(axis).cloned().unwrap_or(Value::Null)).collect(),
            metrics: values,
            meets_sla: row.get("meets_sla").and_then(Value::as_bool),
            is_on_front: false,
            warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }
}
