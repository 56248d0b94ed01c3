//! One request as a trace tells it: what every format is read into and written from.

use std::fmt;

use wavetank_model::{Nanos, Priority};

/// A request. What a trace does not say is absent; what it needs then is filled by a rule that is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its name.
    pub request: Option<String>,
    /// The session it is a turn of; rows of one session stand in the order of its turns.
    pub session: Option<String>,
    /// When it came.
    pub start: Option<Moment>,
    /// Between the end of what it follows and itself.
    pub pause: Option<Nanos>,
    /// Names of requests that end before it comes.
    pub wait_for: Vec<String>,
    /// How long tools worked before it, besides the pause.
    pub tool_wait: Option<Nanos>,
    /// Prompt tokens; without it, all that the ids cover.
    pub input_tokens: Option<u32>,
    /// Tokens to generate.
    pub output_tokens: Option<u32>,
    /// Ids of the prompt's blocks; empty where the trace names none.
    pub ids: Vec<u64>,
    /// How a router may order it.
    pub priority: Priority,
    /// The class a router's policy knows it by.
    pub policy_class: Option<String>,
    /// What sort of request the trace calls it.
    pub kind: Option<String>,
    /// What a trace of agents tells besides.
    pub agent: Option<Box<AgentNotes>>,
}

/// What is kept of a request of agents from reading to writing; no run depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentNotes {
    /// Names of requests that it led to beside the one after it.
    pub branches: Vec<String>,
    /// Whether its prompt begins anew.
    pub prefix_reset: Option<bool>,
    /// What tools did before it, a JSON array.
    pub tool_events: Option<String>,
}

impl Row {
    /// Makes it empty; memory for ids is kept.
    pub fn clear(&mut self) {
        let mut ids = std::mem::take(&mut self.ids);
        ids.clear();
        *self = Self { ids, ..Self::default() };
    }
}

/// A point in the time of a trace, whose origin is the format's: the start of the recording, or of 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Nanoseconds from the origin.
    pub nanos: i64,
}

/// From here on neighbouring numbers of milliseconds are more than half a nanosecond apart.
const COARSE_MS: f64 = 4e9;

impl Moment {
    /// The nearest nanosecond; nothing where 64 bits do not hold it.
    pub fn from_ms(ms: f64) -> Option<Self> {
        if ms.fract() == 0.0 {
            // As an integer: a product of that size would be off by tens of nanoseconds.
            let whole = (ms.abs() < i64::MAX as f64).then_some(ms as i64)?;
            return whole.checked_mul(1_000_000).map(|nanos| Self { nanos });
        }
        if ms.abs() < COARSE_MS {
            return Some(Self { nanos: (ms * 1e6).round() as i64 });
        }
        // What was written is shorter than the binary number, and is what is meant.
        Self::from_decimal(&ms.to_string(), 6)
    }

    /// Seconds, as [`Self::from_ms`].
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        Self::from_decimal(&seconds.to_string(), 9)
    }

    /// A decimal number of units of ten to the `digits` nanoseconds, digits beyond the nanosecond cut.
    pub(crate) fn from_decimal(text: &str, digits: u32) -> Option<Self> {
        let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let scale = 10_i64.checked_pow(digits)?;
        let kept = &fraction[..fraction.len().min(digits as usize)];
        let part: i64 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
        let part = part * 10_i64.pow(digits - kept.len() as u32);
        let nanos = whole.parse::<i64>().ok()?.checked_mul(scale)?.checked_add(part)?;
        Some(Self { nanos: sign * nanos })
    }

    /// How long it is after `earlier`; nothing when it is not.
    pub fn since(self, earlier: Self) -> Option<Nanos> {
        u64::try_from(i128::from(self.nanos) - i128::from(earlier.nanos)).ok().map(Nanos)
    }

    /// Milliseconds, exactly.
    pub fn ms(self) -> Decimal {
        Decimal { nanos: self.nanos.into(), digits: 6 }
    }

    /// Seconds, exactly.
    pub fn seconds(self) -> Decimal {
        Decimal { nanos: self.nanos.into(), digits: 9 }
    }
}

/// A number of nanoseconds as it is written in a larger unit: without zeros behind the point.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    nanos: i128,
    digits: u32,
}

impl Decimal {
    /// A span in milliseconds, exactly.
    pub fn ms(span: Nanos) -> Self {
        Self { nanos: span.0.into(), digits: 6 }
    }

    /// A span in seconds, exactly.
    pub fn seconds(span: Nanos) -> Self {
        Self { nanos: span.0.into(), digits: 9 }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, scale) = (self.nanos.unsigned_abs(), 10_u128.pow(self.digits));
        let sign = if self.nanos < 0 { "-" } else { "" };
        let (whole, part) = (size / scale, size % scale);
        if part == 0 {
            return write!(f, "{sign}{whole}");
        }
        let digits = format!("{part:0width$}", width = self.digits as usize);
        write!(f, "{sign}{whole}.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_was_read() {
        for text in [
            "0",
            "27482",
            "0.1",
            "-5.25",
            "1779163048815",
            "1779163048815.123",
            "0.000001",
            "1700158623979.96",
        ] {
            let ms: f64 = text.parse().unwrap();
            assert_eq!(Moment::from_ms(ms).unwrap().ms().to_string(), text);
            assert_eq!(Moment::from_decimal(text, 6).unwrap().ms().to_string(), text);
        }
        assert_eq!(Moment::from_seconds(1_794_705_271.796_539).unwrap().nanos, 1_794_705_271_796_539_000);
        assert_eq!(Decimal::seconds(Nanos(1_500_000_000)).to_string(), "1.5");
    }

    #[test]
    fn what_does_not_fit_is_nothing() {
        for ms in [f64::NAN, f64::INFINITY, 1e13, -1e13] {
            assert_eq!(Moment::from_ms(ms), None, "{ms}");
        }
        for text in ["", ".", "1e5", "x", "1.2.3", "99999999999999999999"] {
            assert_eq!(Moment::from_decimal(text, 6), None, "{text}");
        }
        assert_eq!(Moment { nanos: 1 }.since(Moment { nanos: 2 }), None);
    }
}
