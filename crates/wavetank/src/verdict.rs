//! Small checks of `plan`, each an error that names the flag.

use wavetank_model::{Error, Result};

/// Refuses a number outside 1 to `most`.
pub(crate) fn from_one_to(flag: &str, value: u32, most: u32) -> Result<u32> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::usage(format!("must be at least 1 and at most {most}, not {value}")).at(flag))
}

/// Refuses a number that is not above zero.
pub(crate) fn positive(flag: &str, value: u32) -> Result<u32> {
    if value == 0 { Err(Error::usage("must be at least 1").at(flag)) } else { Ok(value) }
}

/// Refuses what is not a finite number from 0 up.
pub(crate) fn not_negative(flag: &str, value: f64) -> Result<f64> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(Error::usage(format!("must be a finite number, 0 or more, not {value}")).at(flag))
}

/// Refuses what is not a finite number above 0.
pub(crate) fn above_zero(flag: &str, value: f64) -> Result<f64> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(Error::usage(format!("must be a finite number above 0, not {value}")).at(flag))
}

/// Refuses a ratio of speeds that no machine has: 0 (unscaled) and a millionth to a million are sound.
pub(crate) fn speed_ratio(flag: &str, value: f64) -> Result<f64> {
    if value == 0.0 || (1e-6..=1e6).contains(&value) {
        return Ok(value);
    }
    Err(Error::usage(format!("must be 0, or from 0.000001 to 1000000, not {value:e}")).at(flag))
}

/// Refuses what is not between 0 and 1.
pub(crate) fn fraction(flag: &str, value: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(Error::usage(format!("must be from 0 to 1, not {value}")).at(flag))
}
