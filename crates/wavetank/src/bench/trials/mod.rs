//! Several runs of one plan: how many, what is done between them, and what they agree on.

mod agreement;
mod heat;
mod pause;

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use wavetank_model::Nanos;

pub(super) use agreement::Agreement;
pub(super) use heat::{Heat, Heating};
pub(super) use pause::{drop_page_cache, rest};

use super::draft::Draft;

/// Fewer trials say nothing about a spread, and never end by themselves (product text, "Trial Requirements").
pub(super) const FEWEST: u32 = 3;
/// Enough to publish (product text, "Trial Requirements").
pub(super) const TO_PUBLISH: u32 = 5;
/// `auto` never runs more, unless told to.
const MOST: u32 = 20;
/// `auto` ends when the confidence interval is this tight, in percent of the mean.
const TIGHT_PERCENT: f64 = 5.0;

/// How many trials were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialCount {
    /// This many.
    Number(u32),
    /// As many as it takes until they agree.
    Auto,
}

impl fmt::Display for TrialCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl FromStr for TrialCount {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        if word == "auto" {
            return Ok(Self::Auto);
        }
        let number = word.parse().map_err(|error: ParseIntError| format!("{error}; a number or auto"))?;
        Ok(Self::Number(number))
    }
}

/// How often a plan is run, and what is done between two times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialsPlan {
    /// At most so often.
    pub most: u32,
    /// Trials end when the 95 % confidence interval of the primary metric is within this part of its mean, in
    /// percent; all of them are run when absent.
    pub until_ci_percent: Option<f64>,
    /// The pause between two.
    pub cooldown: Nanos,
    /// Whether the kernel's page cache is emptied before each.
    pub drop_page_cache: bool,
}

/// What to make of so many trials that went to their end, if they are too few.
pub(super) fn advice(whole: u32, users: u32) -> Option<String> {
    if whole >= TO_PUBLISH {
        return None;
    }
    if whole >= FEWEST {
        return Some(format!(
            "{FEWEST} trials are the fewest to compare by; {TO_PUBLISH} or more to publish"
        ));
    }
    // The reference's spread between trials, by users (product text, "Trial Requirements").
    let spread = match users {
        ..50 => "52 %",
        50..=100 => "115-125 %",
        _ => "110-120 %",
    };
    let count = if whole == 1 { "1 trial says".to_owned() } else { format!("{whole} trials say") };
    Some(format!(
        "{count} nothing about the spread; the reference's runs of about so many users vary by {spread} \
         (CV): give --trials {FEWEST} to compare, {TO_PUBLISH} to publish"
    ))
}

impl Draft<'_> {
    /// How often it is run.
    pub(super) fn trials(&mut self) -> TrialsPlan {
        let (args, findings) = (self.args, &mut self.findings);
        let most = args.trials_max.unwrap_or(MOST);
        let most = findings.count("--trials-max", most.into(), FEWEST.into(), 1000) as u32;
        let tight = findings.within("--trials-ci", args.trials_ci.unwrap_or(TIGHT_PERCENT), 0.1, 100.0);
        // Ranks do not know of each other, so none of them may end its trials before the others.
        if args.trials == Some(TrialCount::Auto) && self.rank.is_some() {
            findings
                .wrong("--trials", "auto is not for several ranks, which have to run alike: give a number");
        }
        let cooldown = findings.within("--cooldown", args.cooldown.unwrap_or(0.0), 0.0, 86_400.0);
        let (most, until_ci_percent) = match args.trials.unwrap_or(TrialCount::Number(1)) {
            TrialCount::Number(number) => (findings.count("--trials", number.into(), 1, 1000) as u32, None),
            TrialCount::Auto => (most, Some(tight)),
        };
        TrialsPlan {
            most,
            until_ci_percent,
            cooldown: Nanos::from_seconds(cooldown),
            drop_page_cache: args.drop_page_cache,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_numbers_or_auto() {
        assert_eq!("auto".parse(), Ok(TrialCount::Auto));
        assert_eq!("7".parse(), Ok(TrialCount::Number(7)));
        assert!("several".parse::<TrialCount>().unwrap_err().ends_with("a number or auto"));
    }

    #[test]
    fn too_few_trials_are_said_to_be() {
        assert!(advice(1, 10).unwrap().contains("52 %"));
        assert!(advice(2, 200).unwrap().contains("110-120 %"));
        assert!(advice(FEWEST, 50).unwrap().contains("fewest"));
        assert_eq!(advice(TO_PUBLISH, 50), None);
    }
}
