//! From a model's milliseconds to the engine's nanoseconds: speed-up and rounding.

use std::rc::Rc;

use wavetank_model::Nanos;

use crate::EngineConfig;
use crate::timing::{DecodeBatch, Pass, Pricing, Timing};

/// A timing model with an engine's speed-up ratios applied, in the reference's rounding: each part of a pass
/// is rounded to nanoseconds, divided, and rounded again.
pub(crate) struct Pace {
    model: Rc<dyn Timing>,
    pricing: Pricing,
    prefill_ratio: f64,
    decode_ratio: f64,
}

impl Pace {
    /// The pace of `engine` by its timing model.
    pub(crate) fn of(engine: &EngineConfig, model: Rc<dyn Timing>) -> Self {
        Self {
            model,
            pricing: engine.timing.pricing().expect("the model was built"),
            prefill_ratio: divisor(engine.speedup_ratio),
            decode_ratio: divisor(engine.speedup_ratio * engine.decode_speedup_ratio),
        }
    }

    /// How the model prices.
    pub(crate) fn pricing(&self) -> Pricing {
        self.pricing
    }

    /// Time of a pass that computes chunks.
    pub(crate) fn pass(&self, pass: Pass<'_>) -> Nanos {
        let time = self.model.pass_ms(pass);
        scaled(time.prompt_ms, self.prefill_ratio) + scaled(time.decode_ms, self.decode_ratio)
    }

    /// Time of one step of ranks that wait for each other.
    pub(crate) fn lockstep(&self, ranks: &[Pass<'_>]) -> Nanos {
        scaled(self.model.lockstep_ms(ranks), self.prefill_ratio)
    }

    /// Time of the decode part of a pass.
    pub(crate) fn decode(&self, batch: DecodeBatch) -> Nanos {
        let mut ms = [0.0];
        self.model.decode_run_ms(batch, &mut ms);
        scaled(ms[0], self.decode_ratio)
    }

    /// Appends the times of `count` consecutive decode passes that begin with `first`.
    pub(crate) fn decode_run(&self, first: DecodeBatch, count: usize, out: &mut Vec<Nanos>) {
        let mut ms = [0.0; CHUNK];
        let mut done = 0;
        while done < count {
            let chunk = &mut ms[..CHUNK.min(count - done)];
            self.model.decode_run_ms(first.after(done as u32), chunk);
            out.extend(chunk.iter().map(|&ms| scaled(ms, self.decode_ratio)));
            done += chunk.len();
        }
    }
}

/// Passes priced per call of the model: enough to hide the call, small enough for the stack.
const CHUNK: usize = 64;

/// A ratio of zero means "unscaled", as in the reference.
fn divisor(ratio: f64) -> f64 {
    if ratio > 0.0 { ratio } else { 1.0 }
}

fn scaled(ms: f64, ratio: f64) -> Nanos {
    debug_assert!(ms.is_finite() && ms >= 0.0, "a timing model gave {ms} ms");
    let span = Nanos::from_ms(ms);
    if ratio == 1.0 { span } else { Nanos::from_seconds(span.as_seconds() / ratio) }
}
