//! The body of a request, field by field: what is wrong is said with the name of its field.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fault::Fault;

type Result<T> = std::result::Result<T, Fault>;

/// A JSON object whose values are read when they are asked for.
#[derive(Debug)]
pub(super) struct Fields<'b>(BTreeMap<String, &'b RawValue>);

impl<'b> Fields<'b> {
    /// The fields of `body`; those that are null are not there.
    pub(super) fn of(body: &'b [u8]) -> Result<Self> {
        let fields: BTreeMap<String, &'b RawValue> = serde_json::from_slice(body)
            .map_err(|error| Fault::bad(format!("the body is no JSON object: {error}")))?;
        Ok(Self(fields.into_iter().filter(|(_, value)| value.get() != "null").collect()))
    }

    /// A field as it was sent.
    pub(super) fn raw(&self, name: &str) -> Option<&'b RawValue> {
        self.0.get(name).copied()
    }

    /// A field, if it is there.
    pub(super) fn optional<T: Deserialize<'b>>(&self, name: &str) -> Result<Option<T>> {
        let Some(value) = self.raw(name) else { return Ok(None) };
        let wrong = |error: serde_json::Error| Fault::of_field(name, format!("`{name}` is wrong: {error}"));
        serde_json::from_str(value.get()).map(Some).map_err(wrong)
    }

    /// A field that has to be there.
    pub(super) fn required<T: Deserialize<'b>>(&self, name: &str) -> Result<T> {
        self.optional(name)?.ok_or_else(|| Fault::of_field(name, format!("`{name}` is missing")))
    }

    /// A field that is no unless it says yes.
    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.optional(name)?.unwrap_or(false))
    }

    /// A whole number; 16.0 is one too.
    pub(super) fn whole(&self, name: &str) -> Result<Option<i64>> {
        let Some(number) = self.optional::<serde_json::Number>(name)? else { return Ok(None) };
        let rounded = || number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 9e15);
        let whole = number.as_i64().or_else(|| rounded().map(|value| value as i64));
        whole.map(Some).ok_or_else(|| Fault::of_field(name, format!("`{name}` must be a whole number")))
    }

    /// A whole number from `least` on.
    pub(super) fn count(&self, name: &str, least: u32) -> Result<Option<u32>> {
        let Some(number) = self.whole(name)? else { return Ok(None) };
        // What is more than all is all.
        match u32::try_from(number.min(i64::from(u32::MAX))) {
            Ok(count) if count >= least => Ok(Some(count)),
            _ => Err(Fault::of_field(name, format!("`{name}` must be at least {least}, got {number}"))),
        }
    }

    /// Refuses a number that is not in `range`, as its name says.
    pub(super) fn check_number(&self, name: &str, range: Range) -> Result<()> {
        match self.optional::<f64>(name)? {
            Some(number) if !range.holds(number) => {
                let (least, most) = (range.least, range.most);
                let wrong = match range.least_is_in {
                    true => format!("`{name}` must be from {least} to {most}, got {number}"),
                    false => format!("`{name}` must be above {least} and at most {most}, got {number}"),
                };
                Err(Fault::of_field(name, wrong))
            }
            _ => Ok(()),
        }
    }
}

/// What a number may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    least: f64,
    most: f64,
    least_is_in: bool,
}

impl Range {
    /// Both ends belong to it.
    pub(super) const fn from_to(least: f64, most: f64) -> Self {
        Self { least, most, least_is_in: true }
    }

    /// The lower end does not.
    pub(super) const fn above_to(least: f64, most: f64) -> Self {
        Self { least, most, least_is_in: false }
    }

    fn holds(self, number: f64) -> bool {
        (self.least < number || self.least_is_in && self.least == number) && number <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a wrong type that passes, or one that is not said with its name.
    #[test]
    fn what_is_wrong_has_a_name() {
        let body = br#"{"a": 1.5, "b": 16.0, "c": null, "d": "x", "e": -3, "f": true}"#;
        let fields = Fields::of(body).unwrap();
        assert!(fields.whole("a").unwrap_err().json().contains(r#""param":"a""#));
        assert_eq!(fields.whole("b"), Ok(Some(16)));
        assert_eq!(fields.count("c", 1), Ok(None));
        assert!(fields.whole("d").unwrap_err().json().contains("`d` is wrong"));
        assert!(fields.count("e", 0).unwrap_err().json().contains("at least 0, got -3"));
        assert_eq!(fields.flag("f"), Ok(true));
        assert!(fields.flag("b").is_err());
        assert!(fields.required::<String>("c").unwrap_err().json().contains("missing"));
        for body in [&b"[1]"[..], b"{", b"", b"{\"a\": \"\xff\"}"] {
            assert!(Fields::of(body).unwrap_err().json().contains("no JSON object"));
        }
    }

    /// Broken by: an end of a range that belongs to it and does not, or not a number.
    #[test]
    fn ranges_have_ends() {
        let fields = Fields::of(br#"{"p": 0.0, "t": 0, "m": 1}"#).unwrap();
        assert!(fields.check_number("p", Range::above_to(0.0, 1.0)).is_err());
        assert!(fields.check_number("t", Range::from_to(0.0, 2.0)).is_ok());
        assert!(fields.check_number("m", Range::above_to(0.0, 1.0)).is_ok());
        assert!(fields.check_number("m", Range::from_to(0.0, 0.5)).is_err());
    }
}
