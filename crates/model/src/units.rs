//! Quantities with their unit in the type. Time in a simulation is a count of whole nanoseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in simulated time, or a span of it, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of every simulation.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(u64::MAX);

    /// Whether it is the start, or no span at all.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Rounds milliseconds to the nearest nanosecond, as [`Self::from_seconds`] of `ms / 1000`.
    pub fn from_ms(ms: f64) -> Self {
        Self::from_seconds(ms / 1000.0)
    }

    /// Rounds the exact binary value of `seconds` to the nearest nanosecond, negative values to zero.
    ///
    /// Scaling by 1e9 in floating point first would invent ties: 102.9435925 ms is ...593 ns, not ...592.
    pub fn from_seconds(seconds: f64) -> Self {
        let scaled = seconds * 1e9;
        let whole = scaled as u64;
        let fraction = scaled - whole as f64;
        if scaled < EXACT_BELOW && (fraction - 0.5).abs() > TIE_MARGIN {
            return Self(whole + u64::from(fraction > 0.5));
        }
        Self::from_seconds_exactly(seconds)
    }

    /// Milliseconds, as reports print them.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    #[cold]
    fn from_seconds_exactly(seconds: f64) -> Self {
        if seconds.is_nan() || seconds <= 0.0 {
            return Self::ZERO;
        }
        let nanos = Duration::try_from_secs_f64(seconds).map_or(u128::MAX, |d| d.as_nanos());
        Self(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Below 2^42 ns the product `seconds * 1e9` is within 2^-11 of the exact value, well inside `TIE_MARGIN`.
const EXACT_BELOW: f64 = 4_398_046_511_104.0;
const TIE_MARGIN: f64 = 1e-3;

impl Add for Nanos {
    type Output = Self;
    fn add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, span: Self) {
        *self = *self + span;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        debug_assert!(earlier <= self, "a span ends before it begins");
        self.since(earlier)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} ms", self.as_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_the_exact_binary_value() {
        // spec/engine.md 16.1 V1: 5000 prompt tokens under the default polynomial.
        let ms = 4.209_989e-7 * 5000.0 * 5000.0 + 1.518_344e-2 * 5000.0 + 16.501_42;
        assert_eq!(Nanos::from_ms(ms), Nanos(102_943_593));
        assert_eq!(Nanos::from_ms(18.023_974_0), Nanos(18_023_974));
    }

    #[test]
    fn fast_path_agrees_with_the_exact_one() {
        let mut x = 1u64;
        for _ in 0..200_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let ms = (x >> 24) as f64 / 1e7;
            assert_eq!(Nanos::from_ms(ms), Nanos::from_seconds_exactly(ms / 1000.0), "{ms}");
        }
    }

    #[test]
    fn strange_values_do_not_wrap() {
        assert_eq!(Nanos::from_ms(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_ms(f64::NAN), Nanos::ZERO);
        assert_eq!(Nanos::from_ms(f64::INFINITY), Nanos::MAX);
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
    }
}
