//! What a point must keep to be good enough.

use serde_json::{Map, Value, json};
use wavetank_model::Result;

use super::document::Section;
use super::metric;

/// A metric and where it must stay, both ends inclusive.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    /// A number of [`metric::all`].
    pub(crate) metric: usize,
    pub(crate) least: Option<f64>,
    pub(crate) most: Option<f64>,
}

/// Requests that were given up; none may be unless the file says otherwise.
const REJECTED: &str = "counts.rejected";
/// Requests that had not ended, or not come.
const UNFINISHED: [&str; 2] = ["counts.in_flight", "counts.never_arrived"];

impl Bound {
    /// The bounds of a file: `metric = most`, or `metric = { min, max }`.
    pub(crate) fn read_all(section: Option<&Section<'_>>) -> Result<Vec<Self>> {
        let Some(section) = section else { return Ok(Vec::new()) };
        let mut bounds = Vec::new();
        for (name, node) in section.entries() {
            let metric = metric::find(name).map_err(|error| error.at(section.document.place(node.line)))?;
            let wrong = || {
                let message = format!("\"{name}\" must be a number, or {{ min = …, max = … }}");
                section.document.wrong(node.line, message)
            };
            let (least, most) = match node.json() {
                Value::Object(ends)
                    if ends.keys().all(|key| key == "min" || key == "max") && !ends.is_empty() =>
                {
                    let end = |key: &str| ends.get(key).map(|end| end.as_f64().ok_or_else(wrong)).transpose();
                    (end("min")?, end("max")?)
                }
                value => (None, Some(value.as_f64().ok_or_else(wrong)?)),
            };
            bounds.push(Self { metric, least, most });
        }
        if bounds.is_empty() {
            return Err(section.document.wrong(section.line(), "[sla] is empty").hint("p99_ttft_ms = 2000"));
        }
        if !bounds.iter().any(|bound| metric::name(bound.metric) == REJECTED) {
            bounds.push(Self { metric: metric::number(REJECTED), least: None, most: Some(0.0) });
        }
        bounds.extend(UNFINISHED.map(|name| Self {
            metric: metric::number(name),
            least: None,
            most: Some(0.0),
        }));
        Ok(bounds)
    }

    pub(crate) fn is_met(&self, metrics: &[f64]) -> bool {
        let value = metrics[self.metric];
        !value.is_nan()
            && self.least.is_none_or(|least| value >= least)
            && self.most.is_none_or(|most| value <= most)
    }

    /// By what factor it is missed; zero when it is met.
    pub(crate) fn miss(&self, metrics: &[f64]) -> f64 {
        let value = metrics[self.metric];
        if self.is_met(metrics) {
            return 0.0;
        }
        let beyond = self.most.filter(|most| value > *most).map(|most| (value - most) / most.abs().max(1e-9));
        let below =
            self.least.filter(|least| value < *least).map(|least| (least - value) / least.abs().max(1e-9));
        beyond.or(below).unwrap_or(f64::INFINITY)
    }

    /// `p99_ttft_ms 2310.5 > 2000`.
    pub(crate) fn complaint(&self, metrics: &[f64]) -> Option<String> {
        if self.is_met(metrics) {
            return None;
        }
        let (name, value) = (metric::name(self.metric), metrics[self.metric]);
        let beyond = self.most.filter(|most| value > *most).map(|most| format!("{name} {value:.6} > {most}"));
        let below =
            self.least.filter(|least| value < *least).map(|least| format!("{name} {value:.6} < {least}"));
        Some(beyond.or(below).unwrap_or_else(|| format!("{name} has no value")))
    }
}

/// Whether all are met; nothing where there are none.
pub(crate) fn all_met(bounds: &[Bound], metrics: &[f64]) -> Option<bool> {
    (!bounds.is_empty()).then(|| bounds.iter().all(|bound| bound.is_met(metrics)))
}

/// As they stand in a report.
pub(crate) fn json(bounds: &[Bound]) -> Value {
    let one = |bound: &Bound| {
        let ends = [("min", bound.least), ("max", bound.most)];
        let ends: Map<String, Value> =
            ends.into_iter().filter_map(|(key, end)| Some((key.to_owned(), json!(end?)))).collect();
        (metric::name(bound.metric).to_owned(), Value::Object(ends))
    };
    Value::Object(bounds.iter().map(one).collect())
}
