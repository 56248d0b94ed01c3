//! Dates and times as files write them: `2023-11-16 18:17:03.9799600`, with `T` for the space and an offset
//! from UTC where there is one.

use std::fmt;

use crate::Moment;

const DAY_SECONDS: i64 = 86_400;

/// The moment that `text` names; without an offset it is in UTC.
pub(crate) fn moment(text: &str) -> Option<Moment> {
    let text = text.as_bytes();
    if text.len() < 19 || text[4] != b'-' || text[7] != b'-' || !matches!(text[10], b' ' | b'T' | b't') {
        return None;
    }
    let days = days(number(&text[..4])?, number(&text[5..7])?, number(&text[8..10])?)?;
    let seconds = time(&text[11..19])?;
    let (fraction, rest) = match text.get(19) {
        Some(b'.' | b',') => split_digits(&text[20..])?,
        _ => (0, &text[19..]),
    };
    let seconds = days * DAY_SECONDS + seconds - offset(rest)?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction).map(|nanos| Moment { nanos })
}

/// Seconds of a day in `18:17:03`.
fn time(text: &[u8]) -> Option<i64> {
    let (hour, minute, second) = (number(&text[..2])?, number(&text[3..5])?, number(&text[6..8])?);
    let is_time = text[2] == b':' && text[5] == b':' && hour < 24 && minute < 60 && second < 60;
    is_time.then_some((hour * 60 + minute) * 60 + second)
}

/// Nanoseconds of the digits behind a point, further ones cut, and what stands behind them.
fn split_digits(text: &[u8]) -> Option<(i64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let kept = length.min(9);
    let part = number(&text[..kept])?;
    Some((part * 10_i64.pow(9 - kept as u32), &text[length..]))
}

/// Seconds that `Z`, `+02:00`, `-0530` or nothing is ahead of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [] | [b'Z' | b'z'] => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        5 if digits[2] == b':' => (&digits[..2], &digits[3..]),
        4 => digits.split_at(2),
        _ => return None,
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

fn number(digits: &[u8]) -> Option<i64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// Days from 1970 to a date of the Gregorian calendar, by eras of 400 years that begin in March.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=longest).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// A moment in UTC, with seven digits behind the seconds and more where it has them.
pub(crate) struct Stamp(pub(crate) Moment);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) =
            (self.0.nanos.div_euclid(1_000_000_000), self.0.nanos.rem_euclid(1_000_000_000));
        let (days, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.")?;
        match nanos % 100 {
            0 => write!(f, "{:07}", nanos / 100),
            _ => write!(f, "{nanos:09}"),
        }
    }
}

/// The date so many days after the start of 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (text, seconds) in [
            ("1970-01-01 00:00:00", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2023-11-16 18:17:03.9799600", 1_700_158_623),
            ("2024-05-10 00:00:00.009930+00:00", 1_715_299_200),
            ("2024-05-10T02:00:00+02:00", 1_715_299_200),
            ("2024-05-09T18:30:00-0530", 1_715_299_200),
            ("1969-12-31 23:59:59", -1),
        ] {
            assert_eq!(moment(text).unwrap().nanos.div_euclid(1_000_000_000), seconds, "{text}");
        }
        assert_eq!(moment("2023-11-16 18:17:03.9799600").unwrap().nanos, 1_700_158_623_979_960_000);
    }

    /// Broken by: a day more or less in any month of any kind of year.
    #[test]
    fn what_is_written_is_what_was_read() {
        for day in (-100_000..100_000).step_by(37) {
            let at = Moment { nanos: day * DAY_SECONDS * 1_000_000_000 + 43_199_123_456_700 };
            let text = Stamp(at).to_string();
            assert_eq!(moment(&text), Some(at), "{text}");
        }
        let fine = Moment { nanos: 1 };
        assert_eq!(Stamp(fine).to_string(), "1970-01-01 00:00:00.000000001");
        for (text, days) in [("1900-03-01", 59), ("2100-03-01", 59), ("2000-03-01", 60), ("2024-03-01", 60)] {
            let at = |date: &str| moment(&format!("{date} 00:00:00")).unwrap().nanos;
            let year = at(&format!("{}-01-01", &text[..4]));
            assert_eq!((at(text) - year) / (DAY_SECONDS * 1_000_000_000), days, "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_nothing() {
        for text in [
            "",
            "2023-11-16",
            "2023-02-29 00:00:00",
            "2023-13-01 00:00:00",
            "2023-04-31 00:00:00",
            "2023-11-16 24:00:00",
            "2023-11-16 18:60:00",
            "2023-11-16 18:17:03.",
            "2023-11-16 18:17:03 ",
            "2023-11-16 18:17:03+1",
            "2023-11-16 18:17:03+25:00",
            "2023-11-1é 18:17:03",
            "+023-11-16 18:17:03",
            "9999-12-31 00:00:00",
            "0001-01-01 00:00:00",
        ] {
            assert_eq!(moment(text), None, "{text}");
        }
    }
}
