//! Constant pass times, for tests and for reasoning about schedules alone.

use std::rc::Rc;

use serde::Deserialize;
use wavetank_model::{Error, Result};

use super::{DecodeBatch, Entry, Pass, PassTime, PrefillBatch, Pricing, Timing, configure, decode_part_ms};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "fixed",
    about: "every pass with prompt work adds prefill_ms, every pass with decode work decode_ms",
    pricing: Pricing::Parts,
    argument: None,
    reads: |_| None,
    build: |parameters| Ok(Rc::new(configure::<Fixed>(ENTRY.name, parameters)?.checked()?)),
};

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixed {
    prefill_ms: f64,
    decode_ms: f64,
}

/// No pass takes longer; a bound keeps the sum of passes inside the simulated clock.
const A_DAY_MS: f64 = 86_400_000.0;

impl Fixed {
    fn checked(self) -> Result<Self> {
        let sound = |ms: f64| (0.0..=A_DAY_MS).contains(&ms);
        if sound(self.prefill_ms) && sound(self.decode_ms) {
            return Ok(self);
        }
        Err(Error::usage("timing model \"fixed\": prefill_ms and decode_ms must be from 0 to a day"))
    }
}

impl Timing for Fixed {
    fn pass_ms(&self, pass: Pass<'_>) -> PassTime {
        let computes = PrefillBatch::of(pass.chunks).is_some_and(|batch| batch.fresh_tokens() > 0);
        PassTime {
            prompt_ms: if computes { self.prefill_ms } else { 0.0 },
            decode_ms: decode_part_ms(self, pass.decode),
        }
    }

    fn decode_run_ms(&self, _first: DecodeBatch, out: &mut [f64]) {
        out.fill(self.decode_ms);
    }
}
