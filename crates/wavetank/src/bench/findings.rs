//! What is wrong with a plan, collected so that everything is reported at once.

use wavetank_model::{Error, ErrorKind, Result};

/// Everything found wrong so far, one line each.
#[derive(Debug, Default)]
pub(super) struct Findings {
    lines: Vec<String>,
}

impl Findings {
    /// Keeps the value, or notes the error.
    pub(super) fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.note(&error)).ok()
    }

    /// Notes an error: its place, what is wrong and its hint, in one line.
    pub(super) fn note(&mut self, error: &Error) {
        self.lines.push(error.to_string().replace("\nhint: ", " — hint: "));
    }

    /// Notes that the value of a flag is wrong.
    pub(super) fn wrong(&mut self, place: &str, what: impl AsRef<str>) {
        self.lines.push(format!("{place}: {}", what.as_ref()));
    }

    /// `value`, noted as wrong and replaced by the nearest sound one unless it is from `least` to `most`.
    pub(super) fn within(&mut self, place: &str, value: f64, least: f64, most: f64) -> f64 {
        if (least..=most).contains(&value) && value.is_finite() {
            return value;
        }
        if most.is_finite() {
            self.wrong(place, format!("must be from {least} to {most}, not {value}"));
        } else {
            self.wrong(place, format!("must be a finite number, {least} or more, not {value}"));
        }
        if value.is_nan() { least } else { value.clamp(least, most.min(f64::MAX)) }
    }

    /// `value`, noted as wrong and replaced by the nearest sound one unless it is from `least` to `most`.
    pub(super) fn count(&mut self, place: &str, value: u64, least: u64, most: u64) -> u64 {
        if !(least..=most).contains(&value) {
            self.wrong(place, format!("must be from {least} to {most}, not {value}"));
        }
        value.clamp(least, most)
    }

    /// Whether nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Takes what others found and is not known yet.
    pub(super) fn absorb(&mut self, others: Self) {
        for line in others.lines {
            if !self.lines.contains(&line) {
                self.lines.push(line);
            }
        }
    }

    /// The error that says all of it, unless nothing was found.
    pub(super) fn into_result(self, heading: &str) -> Result<()> {
        Error::of_all(ErrorKind::Usage, heading, &self.lines).map_or(Ok(()), Err)
    }
}
