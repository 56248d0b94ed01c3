//! From numbers to places: the span of an axis and the ticks on it.

use crate::figure::Scale;
use crate::render::number;

/// Numbers beyond are at the edge; room enough that nothing overflows.
const LARGEST: f64 = 1e300;
/// Numbers nearer to zero are zero on a logarithmic axis.
const SMALLEST: f64 = 1e-290;
/// A span narrower than this part of its numbers has no digits left to tell its places apart.
const NARROWEST: f64 = 1e-9;

/// What an axis covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    scale: Scale,
    /// The ends: numbers, or powers of ten where the scale is logarithmic.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A place on an axis and what is written there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// From 0 to 1 along the axis.
    pub(crate) place: f64,
    pub(crate) text: String,
}

/// Where an axis begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// At zero: lengths are compared.
    Zero,
    /// At zero, unless the numbers are far from it.
    Near,
}

impl Span {
    /// The span of `values`; those that are no numbers are left out.
    pub(crate) fn of(values: impl Iterator<Item = f64>, scale: Scale, start: Start) -> Self {
        let known = values.filter(|value| value.is_finite()).filter_map(|value| power(value, scale));
        let (low, high) =
            known.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)));
        if low > high {
            return Self { scale, low: 0.0, high: 1.0 };
        }
        let (low, high) = match scale {
            Scale::Log => (low, high),
            Scale::Linear if start == Start::Zero => (low.min(0.0), high.max(0.0)),
            Scale::Linear if low > 0.0 && low <= 0.6 * high => (0.0, high),
            Scale::Linear if high < 0.0 && high >= 0.6 * low => (low, 0.0),
            Scale::Linear => (low, high),
        };
        let (low, high) = widened(low, high);
        Self { scale, low, high }
    }

    /// The places 0 to `count` - 1, each in the middle of its room.
    pub(crate) fn of_names(count: usize) -> Self {
        Self { scale: Scale::Linear, low: -0.5, high: count.max(1) as f64 - 0.5 }
    }

    /// With room on both sides, measured as the ends are.
    pub(crate) fn padded(self, room: f64) -> Self {
        Self { low: self.low - room, high: self.high + room, ..self }
    }

    /// With other ends, measured as these are.
    pub(crate) fn between(self, low: f64, high: f64) -> Self {
        Self { low, high, ..self }
    }

    /// Whether equal ratios are equally far.
    pub(crate) fn is_log(&self) -> bool {
        self.scale == Scale::Log
    }

    /// A number as the ends are measured, if it has a place.
    pub(crate) fn measure(&self, value: f64) -> Option<f64> {
        power(value, self.scale)
    }

    /// Where a number is, from 0 to 1; what has no place is at the lower edge.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let at = power(value, self.scale).unwrap_or(self.low);
        ((at - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// At most about `most` ticks at round numbers.
    pub(crate) fn ticks(&self, most: usize) -> Vec<Tick> {
        let most = most.max(2) as f64;
        match self.scale {
            Scale::Linear => self.linear_ticks(self.low, self.high, most),
            Scale::Log => {
                let ticks = self.decades(most);
                // About a decade has few round powers: round numbers then.
                if ticks.len() >= 3 { ticks } else { self.linear_ticks(ten(self.low), ten(self.high), most) }
            }
        }
    }

    fn linear_ticks(&self, low: f64, high: f64, most: f64) -> Vec<Tick> {
        let step = round_step((high - low) / most);
        let first = (low / step - 1e-9).ceil();
        let count = ((high / step + 1e-9).floor() - first).clamp(0.0, 2.0 * most + 2.0) as u32;
        let values: Vec<f64> = (0..=count).map(|number| (first + f64::from(number)) * step).collect();
        let texts = number::ticks(&values, step);
        values.iter().zip(texts).map(|(value, text)| Tick { place: self.place(*value), text }).collect()
    }

    /// Powers of ten; 2 and 5 times them where there is room, or 3 times where there is less.
    fn decades(&self, most: f64) -> Vec<Tick> {
        let decades = self.high - self.low;
        let stride = (decades / most).ceil().max(1.0);
        let parts = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0]];
        let fits = |parts: &&[f64]| decades * parts.len() as f64 <= most;
        let parts = parts.into_iter().find(fits).unwrap_or(&[1.0]);
        let first = (self.low.floor() / stride).floor() * stride;
        let count = ((self.high - first) / stride).floor().clamp(0.0, 4.0 * most) as u32;
        let powers = (0..=count).map(|number| ten(first + f64::from(number) * stride));
        let values = powers.flat_map(|power| parts.iter().map(move |part| part * power));
        let inside = values.filter(|value| {
            power(*value, Scale::Log).is_some_and(|at| at >= self.low - 1e-9 && at <= self.high + 1e-9)
        });
        let tick = |value: f64| {
            let text = number::ticks(&[value], value).pop().unwrap_or_default();
            Tick { place: self.place(value), text }
        };
        inside.map(tick).collect()
    }
}

/// A number as its scale measures it.
fn power(value: f64, scale: Scale) -> Option<f64> {
    match scale {
        Scale::Linear => value.is_finite().then(|| value.clamp(-LARGEST, LARGEST)),
        Scale::Log => (value.is_finite() && value > SMALLEST).then(|| value.min(LARGEST).log10()),
    }
}

fn ten(power: f64) -> f64 {
    10_f64.powf(power)
}

/// A span that has room between its ends.
fn widened(low: f64, high: f64) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    if size < SMALLEST {
        return (0.0, 1.0);
    }
    if high - low > size * NARROWEST {
        return (low, high);
    }
    (low - size * 0.1, high + size * 0.1)
}

/// The next larger of 1, 2 and 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = ten(f64::from(number::magnitude(step)));
    let parts = [1.0, 2.0, 5.0, 10.0];
    parts.into_iter().map(|part| part * power).find(|round| *round >= step * (1.0 - 1e-9)).unwrap_or(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(values: &[f64], scale: Scale) -> Span {
        Span::of(values.iter().copied(), scale, Start::Near)
    }

    fn texts(span: &Span, most: usize) -> Vec<String> {
        span.ticks(most).into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn ticks_are_at_round_numbers() {
        assert_eq!(texts(&span(&[3.0, 47.0], Scale::Linear), 5), ["0", "10", "20", "30", "40"]);
        assert_eq!(texts(&span(&[980.0, 1010.0], Scale::Linear), 4), ["980", "990", "1,000", "1,010"]);
        assert_eq!(texts(&span(&[-3.0, 3.0], Scale::Linear), 4), ["-2", "0", "2"]);
        assert_eq!(texts(&span(&[0.5, 3000.0], Scale::Log), 6), ["1", "10", "100", "1,000"]);
        assert_eq!(texts(&span(&[1.0, 20.0], Scale::Log), 6), ["1", "2", "5", "10", "20"]);
        assert_eq!(texts(&span(&[125.0, 11_164.0], Scale::Log), 5), ["300", "1,000", "3,000", "10,000"]);
        assert_eq!(texts(&span(&[31.0, 42.0], Scale::Log), 4), ["35", "40"]);
        assert_eq!(texts(&span(&[16.0, 95.0], Scale::Log), 6), ["20", "40", "60", "80"]);
    }

    #[test]
    fn one_number_nothing_and_zero_have_an_axis() {
        for values in [&[][..], &[0.0], &[5.0], &[-5.0], &[1e-310], &[f64::MAX], &[f64::NAN, f64::INFINITY]] {
            for scale in [Scale::Linear, Scale::Log] {
                let span = span(values, scale);
                assert!(span.high > span.low, "{values:?} {span:?}");
                assert!(values.iter().all(|value| (0.0..=1.0).contains(&span.place(*value))), "{span:?}");
            }
        }
    }

    #[test]
    fn bars_begin_at_zero_and_what_is_not_above_zero_is_at_the_edge_of_a_log_axis() {
        let bars = Span::of([90.0, 100.0].into_iter(), Scale::Linear, Start::Zero);
        assert_eq!((bars.low, bars.high), (0.0, 100.0));
        let log = span(&[0.0, -1.0, 10.0, 1000.0], Scale::Log);
        assert_eq!((log.place(0.0), log.place(100.0), log.place(1000.0)), (0.0, 0.5, 1.0));
    }
}
