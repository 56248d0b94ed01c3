//! What a comparison has to keep: `--fail-if` and `--within`.

use wavetank_model::Result;

use super::Comparison;
use super::condition::Condition;
use super::tolerance::{Tolerance, Verdict};

/// Everything that was asked for.
#[derive(Clone, Debug)]
pub struct Limits {
    /// With the words they were given in.
    conditions: Vec<(String, Condition)>,
    tolerances: Vec<Tolerance>,
}

/// What became of them.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The conditions that hold and should not, as they were given.
    pub held: Vec<String>,
    /// What the tolerances make of it.
    pub verdict: Verdict,
}

impl Limits {
    /// Reads conditions of `--fail-if` and tolerances of `--within`.
    pub fn parse(fail_if: &[String], within: &[String]) -> Result<Self> {
        let condition = |text: &String| Ok((text.clone(), Condition::parse(text)?));
        Ok(Self {
            conditions: fail_if.iter().map(condition).collect::<Result<_>>()?,
            tolerances: within.iter().map(|text| Tolerance::parse(text)).collect::<Result<_>>()?,
        })
    }

    /// Holds `comparison` against them.
    pub fn judge(&self, comparison: &Comparison) -> Result<Judged> {
        let mut held = Vec::new();
        for (text, condition) in &self.conditions {
            if condition.holds(comparison)? {
                held.push(text.clone());
            }
        }
        Ok(Judged { held, verdict: Tolerance::judge(&self.tolerances, comparison)? })
    }
}
