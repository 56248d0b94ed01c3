//! How long a pass takes: one file per timing model, one row each in [`ALL`].

mod fixed;
mod polynomial;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wavetank_model::{Described, Error, Result, find};

/// The prompt work of one pass, as batch means (rounded down, as the reference does).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefillBatch {
    /// Requests that compute prompt tokens.
    pub requests: u32,
    /// Mean of prompt tokens known after the pass.
    pub mean_context: u32,
    /// Mean of prompt tokens known before it.
    pub mean_prefix: u32,
}

impl PrefillBatch {
    /// New tokens as the means give them.
    pub fn fresh_tokens(&self) -> u64 {
        u64::from(self.requests) * u64::from(self.mean_context - self.mean_prefix)
    }
}

/// The decode work of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeBatch {
    /// Requests that decode.
    pub requests: u32,
    /// Sum of their lengths, the token sampled last included.
    pub kv_tokens: u64,
    /// Tokens the worker's cache can hold.
    pub capacity_tokens: u64,
}

/// A model of pass times. All times are finite and not negative.
pub trait Timing {
    /// Milliseconds of the prompt part of a pass.
    fn prefill_ms(&self, batch: PrefillBatch) -> f64;

    /// Milliseconds of the decode part of consecutive passes: pass `i` of the run has
    /// `i * requests` more KV tokens than `first`.
    fn decode_run_ms(&self, first: DecodeBatch, out: &mut [f64]);
}

/// What a row's own configuration is read from.
pub type Parameters = Map<String, Value>;

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// Builds the model from its parameters.
    pub build: fn(&Parameters) -> Result<Box<dyn Timing>>,
}

impl Described for Entry {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
}

/// Every timing model, alphabetical. `wavetank list timing` prints this table.
pub const ALL: &[Entry] = &[fixed::ENTRY, polynomial::ENTRY];

/// A row of [`ALL`] and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimingConfig {
    /// The row.
    pub name: String,
    /// What the row's own configuration takes.
    #[serde(flatten)]
    pub parameters: Parameters,
}

impl Default for TimingConfig {
    fn default() -> Self {
        Self { name: polynomial::ENTRY.name.to_owned(), parameters: Map::new() }
    }
}

impl TimingConfig {
    /// Builds the model.
    pub fn build(&self) -> Result<Box<dyn Timing>> {
        (find("timing model", ALL, &self.name)?.build)(&self.parameters)
    }
}

/// Reads the parameters of the row `name` into its own configuration type.
fn configure<'de, T: Deserialize<'de>>(name: &str, parameters: &Parameters) -> Result<T> {
    T::deserialize(Value::Object(parameters.clone()))
        .map_err(|error| Error::usage(format!("timing model \"{name}\": {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters for rows that cannot do without.
    fn example(entry: &Entry) -> Parameters {
        let text = match entry.name {
            "fixed" => r#"{"prefill_ms": 20.0, "decode_ms": 5.0}"#,
            _ => "{}",
        };
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_model_keeps_the_contract() {
        for entry in ALL {
            let model = (entry.build)(&example(entry)).unwrap();
            let mut run = [0.0; 7];
            for requests in [1, 3, 256] {
                let first = DecodeBatch { requests, kv_tokens: 1000, capacity_tokens: 1 << 20 };
                model.decode_run_ms(first, &mut run);
                for (i, &ms) in run.iter().enumerate() {
                    let mut one = [f64::NAN];
                    let kv_tokens = 1000 + i as u64 * u64::from(requests);
                    model.decode_run_ms(DecodeBatch { kv_tokens, ..first }, &mut one);
                    assert!(ms.is_finite() && ms >= 0.0, "{}", entry.name);
                    assert_eq!(one[0], ms, "{}: a run is the sum of its passes", entry.name);
                }
                let batch = PrefillBatch { requests, mean_context: 500, mean_prefix: 100 };
                assert!(model.prefill_ms(batch) >= 0.0 && model.prefill_ms(batch).is_finite());
            }
        }
    }

    #[test]
    fn unknown_parameters_are_refused() {
        for entry in ALL {
            let mut parameters = example(entry);
            parameters.insert("no_such_key".to_owned(), Value::from(1));
            let error = (entry.build)(&parameters).err().expect("refused").to_string();
            assert!(error.contains("no_such_key") && error.contains(entry.name), "{error}");
        }
    }
}
