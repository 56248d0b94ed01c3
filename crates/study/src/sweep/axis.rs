//! One thing that is varied, and the values it takes.

use std::collections::HashSet;

use rand::RngExt;
use serde_json::{Number, Value};
use wavetank_model::{Draw, Result};

use super::document::{Content, Document, Node, Section};

/// One thing that is varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// A flag of `wavetank replay` with underscores, or a path inside one that takes JSON.
    pub name: String,
    /// What it takes, in order; empty where any number of a range will do.
    pub values: Vec<Value>,
    /// The range that is drawn from, where no values are given.
    continuous: Option<Range>,
    /// Where it stands.
    pub(crate) place: String,
}

/// Numbers from one to another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    from: f64,
    to: f64,
    is_log: bool,
    /// Both ends are whole, so all of it is.
    is_whole: bool,
}

/// More values of one axis are a mistake.
const MOST_VALUES: u64 = 1_000_000;
const KEYS: [&str; 6] = ["count", "from", "scale", "step", "steps", "to"];

impl Axis {
    /// A column of a list of points.
    pub(crate) fn column(name: String, place: String) -> Self {
        Self { name, values: Vec::new(), continuous: None, place }
    }

    /// An axis as the file gives it.
    pub(crate) fn read(document: &Document, name: String, node: &Node) -> Result<Self> {
        let line = node.line;
        let (values, continuous) = match &node.content {
            Content::List(items) => (items.iter().map(Node::json).collect(), None),
            Content::Table(_) => ranged(&Section::of(document, &name, node))?,
            Content::Plain(value) => {
                let error =
                    document.wrong(line, format!("axis \"{name}\" must be a list or a range, not {value}"));
                return Err(error.hint(format!("write [{value}], or put it into [base]")));
            }
        };
        if values.is_empty() && continuous.is_none() {
            return Err(document
                .wrong(line, format!("axis \"{name}\" is empty"))
                .hint("give it a value at least, or leave it out"));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = values.iter().find(|value| !seen.insert(value.to_string())) {
            return Err(document.wrong(line, format!("axis \"{name}\" has {twice} twice")));
        }
        Ok(Self { name, values, continuous, place: document.place(line) })
    }

    /// Whether it has no values to go through one by one.
    pub(crate) fn is_continuous(&self) -> bool {
        self.continuous.is_some()
    }

    /// One of its values.
    pub(crate) fn draw(&self, draw: &mut Draw) -> Value {
        match &self.continuous {
            None => self.values[draw.random_range(0..self.values.len())].clone(),
            Some(range) => range.at(draw.random_range(0.0..=1.0)),
        }
    }
}

impl Range {
    /// The number at a share of the way.
    fn at(&self, share: f64) -> Value {
        let Self { from, to, .. } = *self;
        let number = match share {
            0.0 => from,
            1.0 => to,
            _ if self.is_log => (from.ln() + (to.ln() - from.ln()) * share).exp(),
            _ => from + (to - from) * share,
        };
        number_of(number, self.is_whole)
    }
}

fn number_of(number: f64, is_whole: bool) -> Value {
    match is_whole {
        true if number < 0.0 => Value::from(number.round() as i64),
        true => Value::from(number.round() as u64),
        false => Number::from_f64(number).map_or(Value::Null, Value::Number),
    }
}

type Values = (Vec<Value>, Option<Range>);

/// `{ from, to, steps, scale }`, `{ from, to, step }` or `{ from, count }`.
fn ranged(section: &Section<'_>) -> Result<Values> {
    section.only(&KEYS)?;
    let number = |key: &str| section.value(key, "a number", Value::as_f64);
    let wrong = |message: &str| section.document.wrong(section.line(), message);
    let from = number("from")?.ok_or_else(|| wrong("a range needs \"from\""))?;
    let is_log = section.word("scale", &["linear", "log"])? == Some("log");
    let (to, step) = (number("to")?, number("step")?);
    let (count, steps) = (section.whole("count")?, section.whole("steps")?);
    let whole = |key: &str| {
        section.node(key).is_none_or(|node| matches!(&node.json(), Value::Number(n) if !n.is_f64()))
    };
    let is_whole = whole("from") && whole("to") && whole("step");
    if step.is_some_and(|step| step <= 0.0) {
        return Err(wrong("\"step\" must be above 0"));
    }
    match (to, step, count, steps) {
        (None, _, Some(count), None) if !is_log => {
            let at = |n: u64| number_of(from + n as f64 * step.unwrap_or(1.0), is_whole);
            Ok((bounded(section, count)?.map(at).collect(), None))
        }
        (Some(to), None, None, _) if to >= from && (!is_log || from > 0.0) => {
            evenly(section, Range { from, to, is_log, is_whole }, steps)
        }
        (Some(to), Some(step), None, None) if to >= from && !is_log => {
            let count = (((to - from) / step + 1e-9).floor() as u64).saturating_add(1);
            let at = |n: u64| number_of(from + n as f64 * step, is_whole);
            Ok((bounded(section, count)?.map(at).collect(), None))
        }
        (Some(to), ..) if to < from => Err(wrong("\"to\" is below \"from\"")),
        (Some(_), ..) if is_log && from <= 0.0 => Err(wrong("a range with scale = \"log\" begins above 0")),
        _ => Err(wrong("a range is { from, to, steps, scale }, { from, to, step } or { from, count }")),
    }
}

/// Some values between two ends; without a number of them every whole number, or any number.
fn evenly(section: &Section<'_>, range: Range, steps: Option<u64>) -> Result<Values> {
    let steps = match steps {
        Some(steps) => steps,
        None if range.is_whole && !range.is_log => {
            let count = ((range.to - range.from) as u64).saturating_add(1);
            return Ok((
                bounded(section, count)?.map(|n| number_of(range.from + n as f64, true)).collect(),
                None,
            ));
        }
        None => return Ok((Vec::new(), Some(range))),
    };
    let last = steps.saturating_sub(1).max(1) as f64;
    let mut values: Vec<Value> = bounded(section, steps)?.map(|n| range.at(n as f64 / last)).collect();
    // Whole numbers of a narrow range fall together.
    values.dedup();
    Ok((values, None))
}

fn bounded(section: &Section<'_>, count: u64) -> Result<std::ops::Range<u64>> {
    if count > MOST_VALUES {
        let message = format!("{count} values of one axis: {MOST_VALUES} are the most");
        return Err(section.document.wrong(section.line(), message).hint("give \"steps\""));
    }
    Ok(0..count)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn axis(text: &str) -> Result<Axis> {
        let document = Document::parse(&format!("x = {text}"), "s.toml")?;
        let node = document.section().node("x").unwrap().clone();
        Axis::read(&document, "x".to_owned(), &node)
    }

    fn values(text: &str) -> Value {
        Value::Array(axis(text).unwrap().values)
    }

    #[test]
    fn ranges_are_lists_in_short() {
        assert_eq!(values("[1, 'a', true, { b = 2 }]"), json!([1, "a", true, { "b": 2 }]));
        assert_eq!(values("{ from = 1, to = 4 }"), json!([1, 2, 3, 4]));
        assert_eq!(values("{ from = 42, count = 3 }"), json!([42, 43, 44]));
        assert_eq!(values("{ from = 0, count = 3, step = 5 }"), json!([0, 5, 10]));
        assert_eq!(values("{ from = 0.5, to = 2, step = 0.5 }"), json!([0.5, 1.0, 1.5, 2.0]));
        assert_eq!(values("{ from = 0.0, to = 1.0, steps = 5 }"), json!([0.0, 0.25, 0.5, 0.75, 1.0]));
        let powers = json!([1024, 2048, 4096, 8192, 16384, 32768, 65536]);
        assert_eq!(values("{ from = 1024, to = 65536, steps = 7, scale = 'log' }"), powers);
        assert_eq!(
            values("{ from = 1, to = 3, steps = 9 }"),
            json!([1, 2, 3]),
            "whole numbers fall together"
        );
        assert!(axis("{ from = 0.5, to = 2.0 }").unwrap().is_continuous());
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (text, expected) in [
            ("[]", "s.toml:1: axis \"x\" is empty\nhint: "),
            ("4", "s.toml:1: axis \"x\" must be a list or a range, not 4\nhint: write [4]"),
            ("[1, 1]", "s.toml:1: axis \"x\" has 1 twice"),
            ("{ to = 3 }", "s.toml:1: a range needs \"from\""),
            ("{ from = 3, to = 1 }", "s.toml:1: \"to\" is below \"from\""),
            ("{ from = 3, count = 0 }", "s.toml:1: axis \"x\" is empty"),
            ("{ from = 3, stesp = 1 }", "s.toml:1: unknown field \"stesp\" in [x]\nhint: did you mean step"),
            ("{ from = 0, to = 8, steps = 3, scale = 'log' }", "s.toml:1: a range with scale = \"log\""),
            ("{ from = 1, to = 8, steps = 3, count = 2 }", "s.toml:1: a range is { from"),
            ("{ from = 1, to = 8, step = 0 }", "s.toml:1: \"step\" must be above 0"),
            ("{ from = 1, to = 80000000 }", "s.toml:1: 80000000 values of one axis"),
            ("{ from = 2, to = 9223372036854775807 }", "s.toml:1: 9223372036854775809 values of one axis"),
            ("{ from = 0, to = 1e300, step = 1e-300 }", "s.toml:1: 18446744073709551615 values of one axis"),
        ] {
            let message = axis(text).expect_err(text).to_string();
            assert!(message.starts_with(expected), "{text}: {message}");
        }
    }

    #[test]
    fn draws_stay_in_the_range() {
        let mut draw = wavetank_model::seeded(1, "test");
        let axis = axis("{ from = 2, to = 1000, scale = 'log' }").unwrap();
        let drawn: Vec<u64> = (0..200).map(|_| axis.draw(&mut draw).as_u64().unwrap()).collect();
        assert!(drawn.iter().all(|number| (2..=1000).contains(number)));
        let low = drawn.iter().filter(|number| **number < 45).count();
        assert!(
            (60..140).contains(&low),
            "half of a range in logarithms is below its geometric middle: {low}"
        );
    }
}
