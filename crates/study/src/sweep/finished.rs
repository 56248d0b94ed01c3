//! What a run of a point gave, and how it is written.

use serde::{Deserialize, Serialize};

use super::metric;

/// What a run of a point gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// In the order of [`metric::all`]; the derived ones are not there.
    #[serde(with = "numbers")]
    pub(crate) metrics: Vec<f64>,
    pub(crate) warnings: Vec<String>,
}

/// The numbers of a run as JSON: to the last bit, and `null` where there is none.
pub(crate) mod numbers {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::metric;

    pub(crate) fn serialize<S: Serializer>(metrics: &[f64], to: S) -> Result<S::Ok, S::Error> {
        let measured = &metrics[..metric::measured()];
        to.collect_seq(measured.iter().map(|value| Some(*value).filter(|value| value.is_finite())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        let read = Vec::<Option<f64>>::deserialize(from)?;
        if read.len() != metric::measured() {
            let message = format!("{} numbers, and a run has {}", read.len(), metric::measured());
            return Err(D::Error::custom(message));
        }
        let mut metrics: Vec<f64> = read.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        metrics.resize(metric::all().len(), f64::NAN);
        Ok(metrics)
    }
}
