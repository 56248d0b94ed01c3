//! Two reports side by side: what changed, by how much, and whether it is more than the spread of repeats.

use serde_json::{Map, Value};
use wavetank_model::{Error, Result};

/// One side of a comparison: reports of one or more repeats.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Where it came from.
    pub name: String,
    reports: Vec<Map<String, Value>>,
}

/// The values of one metric over the repeats of a side.
#[derive(Clone, Debug, PartialEq)]
pub struct Trials(Vec<f64>);

impl Trials {
    /// Their mean.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Distance from the smallest to the largest.
    pub fn spread(&self) -> f64 {
        let (low, high) = self.0.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        });
        high - low
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Side {
    /// A side made of the reports in `named` texts.
    pub fn of(name: &str, named: &[(String, String)]) -> Result<Self> {
        let mut reports = Vec::new();
        for (place, text) in named {
            let json: Value = serde_json::from_str(text)
                .map_err(|error| Error::input(format!("not valid JSON: {error}")).at(place.clone()))?;
            // The reference's newer reports keep their numbers under "summary".
            let summary = match json {
                Value::Object(mut report) => match report.remove("summary") {
                    Some(Value::Object(summary)) => summary,
                    _ => report,
                },
                _ => Map::new(),
            };
            if !summary.get("completed_requests").is_some_and(Value::is_number) {
                return Err(Error::input("not a replay report: \"completed_requests\" is missing")
                    .at(place.clone())
                    .hint("name a file written with --report-json"));
            }
            reports.push(summary);
        }
        Ok(Self { name: name.to_owned(), reports })
    }

    /// The values of `metric`: of every repeat, or of every seed of a single report.
    pub fn trials(&self, metric: &str) -> Option<Trials> {
        let of_seeds = |report: &Map<String, Value>| -> Option<Vec<f64>> {
            let values = report.get("seeds")?.get("metrics")?.get(metric)?.get("values")?.as_array()?;
            Some(values.iter().filter_map(Value::as_f64).collect())
        };
        let mut all = Vec::new();
        for report in &self.reports {
            match of_seeds(report) {
                Some(values) => all.extend(values),
                None => all.extend(report.get(metric).and_then(Value::as_f64)),
            }
        }
        if all.is_empty() { None } else { Some(Trials(all)) }
    }

    fn metrics(&self) -> impl Iterator<Item = &String> {
        let first = self.reports.first().into_iter().flatten();
        first
            .filter(|(_, value)| value.is_number())
            .map(|(name, _)| name)
            .filter(|name| *name != "schema_version")
    }

    fn plan(&self) -> Option<&Value> {
        self.reports.first()?.get("plan")
    }
}

/// One metric of both sides.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its key in the report.
    pub metric: String,
    /// The first side.
    pub before: Trials,
    /// The second side.
    pub after: Trials,
}

impl Row {
    /// How much the mean changed.
    pub fn change(&self) -> f64 {
        self.after.mean() - self.before.mean()
    }

    /// The change relative to the first side; without a base there is none.
    pub fn relative(&self) -> Option<f64> {
        let before = self.before.mean();
        if before == 0.0 { None } else { Some(self.change() / before) }
    }

    /// Whether the change is no larger than the spread of repeats. Single runs have no spread to judge by.
    pub fn is_noise(&self) -> bool {
        let repeated = self.before.count() > 1 || self.after.count() > 1;
        repeated
            && self.change() != 0.0
            && self.change().abs() <= self.before.spread().max(self.after.spread())
    }
}

/// Two sides.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Metrics both sides have, by name.
    pub rows: Vec<Row>,
    /// What differs in the plans: the path, before and after.
    pub plan: Vec<(String, String, String)>,
}

impl Comparison {
    /// Compares two sides.
    pub fn of(before: &Side, after: &Side) -> Self {
        let row = |metric: &String| {
            let (before, after) = (before.trials(metric)?, after.trials(metric)?);
            Some(Row { metric: metric.clone(), before, after })
        };
        let mut plan = Vec::new();
        if let (Some(a), Some(b)) = (before.plan(), after.plan()) {
            differences("", a, b, &mut plan);
        }
        Self { rows: before.metrics().filter_map(row).collect(), plan }
    }

    /// The row of `metric`.
    pub fn row(&self, metric: &str) -> Result<&Row> {
        self.rows.iter().find(|row| row.metric == metric).ok_or_else(|| {
            Error::usage(format!("no metric \"{metric}\" in both reports"))
                .at("--fail-if")
                .hint("metrics are the numeric keys of a report, for example p99_ttft_ms")
        })
    }
}

/// Leaves of two JSON values that differ, with their paths.
fn differences(path: &str, before: &Value, after: &Value, into: &mut Vec<(String, String, String)>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let deeper = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let null = &Value::Null;
                differences(&deeper, a.get(key).unwrap_or(null), b.get(key).unwrap_or(null), into);
            }
        }
        _ if before != after => into.push((path.to_owned(), before.to_string(), after.to_string())),
        _ => {}
    }
}

/// A condition under which a comparison fails, such as `p99_ttft_ms > +5%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    metric: String,
    above: bool,
    inclusive: bool,
    bound: Bound,
}

/// What a condition holds against its metric.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// The value of the second side.
    Value(f64),
    /// The change, signed.
    Change(f64),
    /// The change relative to the first side, signed, as a fraction.
    Relative(f64),
}

impl Condition {
    /// Reads `METRIC > BOUND` (or `<`, `>=`, `<=`). A bound with a sign is a change, with `%` a relative one,
    /// without a sign the value itself.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("cannot read the condition \"{text}\""))
                .at("--fail-if")
                .hint("for example 'p99_ttft_ms > +5%', 'mean_itl_ms > +0.2' or 'completed_requests < 1000'")
        };
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (metric, rest) = (text[..at].trim(), &text[at..]);
        let above = rest.starts_with('>');
        let inclusive = rest[1..].starts_with('=');
        let bound = rest[1 + usize::from(inclusive)..].trim();
        let signed = bound.starts_with(['+', '-']);
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite()).ok_or_else(wrong);
        let bound = match bound.strip_suffix('%') {
            Some(percent) => Bound::Relative(number(percent)? / 100.0),
            None if signed => Bound::Change(number(bound)?),
            None => Bound::Value(number(bound)?),
        };
        if metric.is_empty() {
            return Err(wrong());
        }
        Ok(Self { metric: metric.to_owned(), above, inclusive, bound })
    }

    /// Whether it holds; an unknown metric is an error.
    pub fn holds(&self, comparison: &Comparison) -> Result<bool> {
        let row = comparison.row(&self.metric)?;
        let (value, bound) = match self.bound {
            Bound::Value(bound) => (row.after.mean(), bound),
            Bound::Change(bound) => (row.change(), bound),
            // From nothing, any change is without bound.
            Bound::Relative(bound) => match row.relative() {
                Some(relative) => (relative, bound),
                None if row.change() == 0.0 => (0.0, bound),
                None => (row.change().signum() * f64::INFINITY, bound),
            },
        };
        Ok(match (self.above, self.inclusive) {
            (true, true) => value >= bound,
            (true, false) => value > bound,
            (false, true) => value <= bound,
            (false, false) => value < bound,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(reports: &[&str]) -> Side {
        let named: Vec<_> = reports.iter().map(|text| ("r.json".to_owned(), (*text).to_owned())).collect();
        Side::of("side", &named).unwrap()
    }

    fn compared() -> Comparison {
        let before = side(&[r#"{"completed_requests":10,"p99_ttft_ms":100.0,"zero":0,"still_zero":0,
            "plan":{"simulation":{"router_mode":"round_robin","seed":42}}}"#]);
        let after = side(&[r#"{"completed_requests":10,"p99_ttft_ms":106.0,"zero":1,"still_zero":0,
            "plan":{"simulation":{"router_mode":"kv_router","seed":42}}}"#]);
        Comparison::of(&before, &after)
    }

    #[test]
    fn rows_and_plans_are_compared() {
        let comparison = compared();
        let row = comparison.row("p99_ttft_ms").unwrap();
        assert_eq!((row.change(), row.relative()), (6.0, Some(0.06)));
        assert_eq!(comparison.row("zero").unwrap().relative(), None);
        let changed =
            ("simulation.router_mode".to_owned(), "\"round_robin\"".to_owned(), "\"kv_router\"".to_owned());
        assert_eq!(comparison.plan, [changed]);
    }

    #[test]
    fn conditions_hold_or_not() {
        let holds = |text: &str| Condition::parse(text).unwrap().holds(&compared()).unwrap();
        assert!(holds("p99_ttft_ms > +5%"));
        assert!(!holds("p99_ttft_ms > +6%"));
        assert!(holds("p99_ttft_ms >= +6%"));
        assert!(holds("p99_ttft_ms>+5.9"));
        assert!(!holds("p99_ttft_ms > +6"));
        assert!(holds("p99_ttft_ms > 105"));
        assert!(!holds("p99_ttft_ms < -1%"));
        assert!(holds("completed_requests <= 10"));
        assert!(holds("zero > +5%"), "anything is more than nothing");
        assert!(!holds("still_zero >= +5%"), "nothing is not more than nothing");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["p99_ttft_ms", "> 5", "p99_ttft_ms > x", "p99_ttft_ms > NaN", "p99_ttft_ms > %"] {
            assert!(Condition::parse(text).unwrap_err().to_string().contains("--fail-if"), "{text}");
        }
        let unknown = Condition::parse("p98_ttft_ms > 5").unwrap().holds(&compared());
        assert!(unknown.unwrap_err().to_string().contains("no metric \"p98_ttft_ms\""));
        let named = [("x.json".to_owned(), "{\"a\":1}".to_owned())];
        assert!(Side::of("x", &named).unwrap_err().to_string().contains("not a replay report"));
    }

    #[test]
    fn a_change_within_the_spread_is_noise() {
        let report = |ms: f64| format!(r#"{{"completed_requests":1,"mean_ttft_ms":{ms}}}"#);
        let of = |values: &[f64]| {
            let texts: Vec<String> = values.iter().map(|&ms| report(ms)).collect();
            side(&texts.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let noise =
            |a: &[f64], b: &[f64]| Comparison::of(&of(a), &of(b)).row("mean_ttft_ms").unwrap().is_noise();
        assert!(noise(&[10.0, 12.0], &[11.5, 12.5]));
        assert!(!noise(&[10.0, 10.5], &[11.5, 12.0]));
        assert!(!noise(&[10.0], &[10.1]), "one run each says nothing about noise");
    }

    #[test]
    fn seeds_are_repeats() {
        let text = r#"{"completed_requests":1,"mean_ttft_ms":1.0,
            "seeds":{"metrics":{"mean_ttft_ms":{"values":[1.0,3.0]}}}}"#;
        let trials = side(&[text]).trials("mean_ttft_ms").unwrap();
        assert_eq!((trials.count(), trials.mean(), trials.spread()), (2, 2.0, 2.0));
    }
}
