//! `--fail-if`: what must not hold of a comparison.

use wavetank_model::{Error, Result};

use super::Comparison;

/// A condition under which a comparison fails, such as `p99_ttft_ms > +5%`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
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
    pub(super) fn parse(text: &str) -> Result<Self> {
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
    pub(super) fn holds(&self, comparison: &Comparison) -> Result<bool> {
        let row = comparison.row(&self.metric, "--fail-if")?;
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
