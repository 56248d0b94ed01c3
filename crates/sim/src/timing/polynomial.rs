//! The reference's default: one polynomial in new prompt tokens, one in cache utilisation.
//!
//! The coefficients are the reference's (spec/engine.md 3.1). They carry no hardware identity: use a measured
//! model for decisions about real machines.

use std::rc::Rc;

use serde::Deserialize;

use super::{DecodeBatch, Entry, Pass, PassTime, PrefillBatch, Pricing, Timing, configure, decode_part_ms};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "polynomial",
    about: "the reference's default formulas: prefill by new tokens, decode by cache utilisation",
    pricing: Pricing::Parts,
    argument: None,
    reads: |_| None,
    build: |parameters| {
        configure::<Config>(ENTRY.name, parameters)?;
        Ok(Rc::new(Polynomial))
    },
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {}

struct Polynomial;

fn prefill_ms(fresh_tokens: u64) -> f64 {
    let tokens = fresh_tokens as f64;
    if tokens == 0.0 {
        return 0.0;
    }
    4.209_989e-7 * (tokens * tokens) + 1.518_344e-2 * tokens + 16.501_42
}

impl Timing for Polynomial {
    fn pass_ms(&self, pass: Pass<'_>) -> PassTime {
        let prompt_ms = PrefillBatch::of(pass.chunks).map_or(0.0, |batch| prefill_ms(batch.fresh_tokens()));
        PassTime { prompt_ms, decode_ms: decode_part_ms(self, pass.decode) }
    }

    fn decode_run_ms(&self, first: DecodeBatch, out: &mut [f64]) {
        let capacity = first.capacity_tokens as f64;
        let (start, growth) = (first.kv_tokens as f64, f64::from(first.requests));
        for (pass, ms) in out.iter_mut().enumerate() {
            let used = ((start + growth * f64::from(pass as u32)) / capacity).min(1.0);
            *ms = (-25.74 * (used * used) + 54.01 * used + 5.74).max(1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Chunk;

    fn prefill(tokens: u32) -> f64 {
        let chunks = &[Chunk::of_prompt(tokens, 0)];
        Polynomial.pass_ms(Pass { chunks, decode: DecodeBatch::default() }).prompt_ms
    }

    fn decode(kv_tokens: u64) -> f64 {
        let mut out = [0.0];
        Polynomial.decode_run_ms(
            DecodeBatch { requests: 1, kv_tokens, capacity_tokens: 1000, longest: 0 },
            &mut out,
        );
        out[0]
    }

    #[test]
    fn matches_the_published_points() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 5e-5, "{a} {b}");
        close(prefill(100), 18.0240);
        close(prefill(5000), 102.9436);
        close(prefill(8192), 169.1369);
        close(prefill(0), 0.0);
        close(decode(0), 5.74);
        close(decode(500), 26.31);
        close(decode(1000), 34.01);
        close(decode(5000), 34.01);
    }
}
