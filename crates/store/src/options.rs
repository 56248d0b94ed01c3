//! The options of a backend or a wrapper: words by name, read as what they have to be.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use wavetank_model::{Error, Result};

/// A day; no clock ends within it.
const LONGEST_US: f64 = 86_400e6;

/// Options by name, as the user typed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// What was given for `name`.
    pub fn get(&self, name: &str) -> Option<&String> {
        self.0.get(name)
    }

    /// The option `name` as a `T`, if it was given.
    pub fn given<T: FromStr>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        let unread = |_| Error::usage(format!("option {name}: cannot read \"{text}\""));
        text.parse().map(Some).map_err(unread)
    }

    /// The option `name` as a `T`, or `default`.
    pub fn option<T: FromStr>(&self, name: &str, default: T) -> Result<T> {
        Ok(self.given(name)?.unwrap_or(default))
    }

    /// The option `name` as one of the `known` words; the first unless given.
    pub fn choice<T: Copy>(&self, name: &str, known: &[(&str, T)]) -> Result<T> {
        let word = self.get(name).map_or(known[0].0, String::as_str);
        let found = known.iter().find(|(other, _)| *other == word);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            Error::usage(format!("option {name}: unknown \"{word}\""))
                .hint(format!("known: {}", words.join(", ")))
        })
    }

    /// The option `name` as a number above zero, if it was given.
    pub fn above_zero(&self, name: &str) -> Result<Option<f64>> {
        match self.given::<f64>(name)? {
            Some(number) if !(number.is_finite() && number > 0.0) => {
                Err(Error::usage(format!("option {name}: must be above 0")))
            }
            given => Ok(given),
        }
    }

    /// The option `name` as a time in microseconds, a day at most; `usual` unless given.
    pub(crate) fn microseconds(&self, name: &str, usual: f64) -> Result<Duration> {
        let count = self.option(name, usual)?;
        match (0.0..=LONGEST_US).contains(&count) {
            true => Ok(Duration::from_secs_f64(count / 1e6)),
            false => Err(Error::usage(format!("option {name}: must be from 0 to {LONGEST_US}, a day"))),
        }
    }

    /// The option `name` as a probability; zero unless given.
    pub(crate) fn probability(&self, name: &str) -> Result<f64> {
        let chance = self.option(name, 0.0)?;
        match chance {
            0.0..=1.0 => Ok(chance),
            _ => Err(Error::usage(format!("option {name}: must be between 0 and 1"))),
        }
    }

    /// Refuses options that `kind`, a row with the options `known`, does not take.
    pub fn only(&self, kind: &str, known: &[(&str, &str)]) -> Result<()> {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let Some(unknown) = self.0.keys().find(|name| !names.contains(&name.as_str())) else { return Ok(()) };
        Err(Error::usage(format!("{kind} has no option \"{unknown}\"")).hint(if names.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("known: {}", names.join(", "))
        }))
    }
}

impl From<BTreeMap<String, String>> for Options {
    fn from(options: BTreeMap<String, String>) -> Self {
        Self(options)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Options {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(options: T) -> Self {
        Self(options.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_refused_with_its_name() {
        let options = Options::from_iter([("depth", "4"), ("gbps", "-1"), ("chance", "NaN")]);
        assert_eq!(options.option("depth", 1).unwrap(), 4);
        assert_eq!(options.option("block", 7).unwrap(), 7);
        let refusals = [
            options.option("gbps", 1_u32).unwrap_err(),
            options.above_zero("gbps").unwrap_err(),
            options.probability("chance").unwrap_err(),
            options.only("throttle", &[("gbps", ""), ("depth", "")]).unwrap_err(),
        ];
        let expected = [
            "option gbps: cannot read \"-1\"",
            "option gbps: must be above 0",
            "option chance: must be between 0 and 1",
            "throttle has no option \"chance\"",
        ];
        for (refusal, expected) in refusals.iter().zip(expected) {
            assert!(refusal.to_string().contains(expected), "{refusal}");
        }
    }

    /// Broken by: a time that has no end, which no clock can be added to, or nothing that is no number.
    #[test]
    fn times_are_a_day_at_most() {
        let read = |text: &str| {
            let options = Options::from_iter([("latency_us", text)]);
            options.microseconds("latency_us", 10.0)
        };
        assert_eq!(Options::default().microseconds("latency_us", 10.0).unwrap(), Duration::from_micros(10));
        assert_eq!(read("0").unwrap(), Duration::ZERO);
        assert_eq!(read("86400000000").unwrap(), Duration::from_secs(86_400));
        for text in ["-1", "86400000001", "1e19", "inf", "NaN"] {
            let refusal = read(text).unwrap_err().to_string();
            assert!(refusal.contains("option latency_us: must be from 0 to 86400000000, a day"), "{refusal}");
        }
    }
}
