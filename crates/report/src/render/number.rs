//! Numbers as people read them: thousands apart, no more digits than help.

/// What stands where there is no number.
pub(crate) const NOTHING: &str = "–";

/// A number of a table or a sentence: whole numbers whole, others with about four digits.
pub(crate) fn grouped(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    if size >= 1e15 || (size < 1e-4 && size > 0.0) {
        return format!("{value:.3e}");
    }
    if value.fract() == 0.0 {
        return with_commas(&format!("{value:.0}"));
    }
    let decimals = if size >= 100.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        (3 - magnitude(size)).clamp(2, 8)
    };
    let text = format!("{value:.*}", usize::try_from(decimals).unwrap_or(2));
    with_commas(if size < 1.0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
}

/// The numbers of an axis, alike: the same power of thousand and as many decimals as `step` needs.
pub(crate) fn ticks(values: &[f64], step: f64) -> Vec<String> {
    let biggest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if biggest >= 1e15 || (biggest < 1e-3 && biggest > 0.0) {
        let digits = usize::try_from((magnitude(biggest) - magnitude(step)).clamp(0, 6)).unwrap_or(0);
        let text = |value: &f64| if *value == 0.0 { "0".to_owned() } else { format!("{value:.digits$e}") };
        return values.iter().map(text).collect();
    }
    let thousands = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, "")];
    let (unit, letter) = thousands.into_iter().find(|(unit, _)| biggest >= *unit).unwrap_or((1.0, ""));
    let decimals = usize::try_from((-magnitude(step / unit)).clamp(0, 6)).unwrap_or(0);
    let text = |value: &f64| {
        let text = with_commas(&format!("{:.decimals$}", value / unit));
        if *value == 0.0 { "0".to_owned() } else { text + letter }
    };
    values.iter().map(text).collect()
}

/// The power of ten that a number above zero begins with.
pub(crate) fn magnitude(value: f64) -> i32 {
    // A hair above: 0.001 is a little less than 1e-3.
    (value.log10() + 1e-9).floor().clamp(-400.0, 400.0) as i32
}

/// `digits` with a comma before every three of the whole part.
fn with_commas(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = sign.to_owned();
    for (place, digit) in whole.char_indices() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if out == "-0" && rest.is_empty() { "0".to_owned() } else { out + rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_are_clear() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (12_031.0, "12,031"),
            (-1_234_567.0, "-1,234,567"),
            (1234.56, "1,234.6"),
            (35.3, "35.30"),
            (0.7158, "0.7158"),
            (0.5, "0.5"),
            (0.001_234_56, "0.001235"),
            (1.5e-7, "1.500e-7"),
            (2e18, "2.000e18"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn an_axis_is_written_alike() {
        assert_eq!(ticks(&[0.0, 0.5, 1.0], 0.5), ["0", "0.5", "1.0"]);
        assert_eq!(ticks(&[0.0, 500_000.0, 1_000_000.0], 500_000.0), ["0", "0.5M", "1.0M"]);
        assert_eq!(ticks(&[0.0, 20_000.0], 20_000.0), ["0", "20,000"]);
        assert_eq!(ticks(&[2e-5, 4e-5], 2e-5), ["2e-5", "4e-5"]);
        assert_eq!(ticks(&[0.001, 0.002], 0.001), ["0.001", "0.002"]);
    }
}
