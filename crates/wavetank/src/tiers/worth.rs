//! What it is worth to load KV instead of computing it again, by the plan's own timing model and media.

use std::rc::Rc;

use wavetank_model::{Operation, Result};
use wavetank_report::BreakEven;
use wavetank_sim::media::Medium;
use wavetank_sim::timing::{Chunk, DecodeBatch, Pass, Timing};
use wavetank_sim::{EngineConfig, TierConfig, TierUnit, engines};

/// Longer prompts are not looked at.
const LONGEST: u32 = 1 << 20;
/// Blocks of an object.
const OBJECT_BLOCKS: u64 = 8;

/// Prices prompts that are computed alone.
pub(crate) struct Worth {
    timing: Rc<dyn Timing>,
    engine: EngineConfig,
}

impl Worth {
    /// By a timing model of its own, so that what is asked here does not count as simulated.
    pub(crate) fn of(engine: &EngineConfig) -> Result<Self> {
        Ok(Self { timing: engine.timing.build()?, engine: engine.clone() })
    }

    /// Milliseconds that a worker without anything else to do takes for `tokens` of a prompt behind
    /// `context`, in passes as long as its engine makes them.
    fn compute_ms(&self, tokens: u32, context: u32) -> f64 {
        let row = engines::entry(&self.engine.engine_type).ok();
        let longest = row.and_then(|row| (row.longest_pass)(&self.engine)).unwrap_or(u32::MAX).max(1);
        let (mut ms, mut done) = (0.0, 0);
        while done < tokens {
            let chunk = [Chunk::of_prompt((tokens - done).min(longest), context + done)];
            let time = self.timing.pass_ms(Pass { chunks: &chunk, decode: DecodeBatch::default() });
            ms += time.prompt_ms + time.decode_ms;
            done += chunk[0].tokens;
        }
        match self.engine.speedup_ratio {
            0.0 => ms,
            ratio => ms / ratio,
        }
    }

    /// What is saved by `loaded` tokens behind `found` ones of a prompt: the time from there to its end, less
    /// the time that what is left takes.
    pub(crate) fn saved_ms(&self, prompt: u32, found: u32, loaded: u32) -> f64 {
        let left = prompt.saturating_sub(found + loaded);
        let without = self.compute_ms(loaded + left, found);
        (without - self.compute_ms(left, found + loaded)).max(0.0)
    }

    /// From how many tokens on it is faster to load them from a tier that nobody else uses than to compute
    /// them; the block that a prompt ends with is computed in any case.
    pub(crate) fn break_even(&self, tier: &TierConfig) -> Result<BreakEven> {
        let medium = tier.medium.build(0)?;
        let block = self.engine.block_size;
        let capacity = self.engine.num_gpu_blocks.saturating_mul(block);
        let longest = self.engine.max_model_len.unwrap_or(capacity).min(capacity).min(LONGEST);
        let wins = |blocks: u32| {
            let tokens = blocks * block;
            self.load_ms(medium.as_ref(), tier.unit, blocks) < self.saved_ms(tokens + block, 0, tokens)
        };
        Ok(crossing((longest / block).max(1), wins).in_tokens(block))
    }

    /// Milliseconds of a load that meets nobody: objects are on their way together, as fast as the medium
    /// ever is.
    fn load_ms(&self, medium: &dyn Medium, unit: TierUnit, blocks: u32) -> f64 {
        let block = u64::from(self.engine.block_size) * u64::from(self.engine.transfer.kv_bytes_per_token);
        let bytes = u64::from(blocks) * block;
        let first = match unit {
            TierUnit::Batch => bytes,
            TierUnit::Object => bytes.min(OBJECT_BLOCKS * block),
        };
        let rest = (bytes - first) as f64 / medium.peak_bytes_per_second(Operation::Read, first) * 1000.0;
        medium.alone(Operation::Read, first).as_ms() + rest
    }
}

/// Where a comparison of so many blocks turns, from one block to `last`.
fn crossing(last: u32, wins: impl Fn(u32) -> bool) -> BreakEven {
    let mut steps = vec![1u32];
    while let Some(&step) = steps.last().filter(|step| **step < last) {
        steps.push((step + step.div_ceil(16)).min(last));
    }
    let ends_won = wins(last);
    // The last step that ends otherwise, and between it and the next the last block.
    let Some(at) = steps.iter().rposition(|&step| wins(step) != ends_won) else {
        return if ends_won { BreakEven::Always } else { BreakEven::Never };
    };
    let (mut low, mut high) = (steps[at], steps[at + 1]);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match wins(middle) == ends_won {
            true => high = middle,
            false => low = middle,
        }
    }
    if ends_won { BreakEven::Above(low) } else { BreakEven::Below(low) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wavetank_sim::timing::TimingConfig;

    use super::*;
    use crate::tiers::medium;

    fn tier(typed: &str, unit: TierUnit) -> TierConfig {
        TierConfig {
            name: "disk".to_owned(),
            capacity_bytes: 1 << 40,
            medium: medium::of_text(typed).unwrap(),
            scope: Default::default(),
            write: Default::default(),
            load: Default::default(),
            unit,
        }
    }

    fn engine(kv_bytes_per_token: u32) -> EngineConfig {
        let mut engine = EngineConfig { block_size: 16, ..EngineConfig::default() };
        engine.transfer.kv_bytes_per_token = kv_bytes_per_token;
        engine
    }

    /// The polynomial has 15.18 µs a token and a bit of its square; at 10 GB/s a token of 100,000 bytes
    /// takes 10 µs. Broken by: the start of a pass on one side only, or bytes for tokens.
    #[test]
    fn loading_wins_above_what_the_latency_costs() {
        let found =
            |typed: &str, unit| Worth::of(&engine(100_000)).unwrap().break_even(&tier(typed, unit)).unwrap();
        let saved = |n: f64| 15.18344 * n + 4.209989e-4 * ((n + 16.0).powi(2) - 256.0);
        let mut blocks = 1.0;
        while 1000.0 + 10.0 * blocks * 16.0 >= saved(blocks * 16.0) {
            blocks += 1.0;
        }
        let expected = BreakEven::Above((blocks as u32 - 1) * 16);
        assert_eq!(found("1ms+10GB/s", TierUnit::Batch), expected);
        assert_eq!(found("1ms+10GB/s", TierUnit::Object), expected);
        assert_eq!(found("10GB/s", TierUnit::Batch), BreakEven::Always);
        assert_eq!(found("1ms+1MB/s", TierUnit::Batch), BreakEven::Never);
    }

    /// Passes that take as long whatever is in them save nothing until there are fewer of them.
    #[test]
    fn what_costs_nothing_to_compute_is_not_worth_loading() {
        let parameters = json!({ "prefill_ms": 1.0, "decode_ms": 1.0 });
        let timing =
            TimingConfig { name: "fixed".to_owned(), parameters: parameters.as_object().unwrap().clone() };
        let worth = Worth::of(&EngineConfig { timing, ..engine(100) }).unwrap();
        assert_eq!(worth.saved_ms(1600, 0, 1584), 0.0);
        assert!(worth.saved_ms(20_000, 0, 16_000) > 0.0);
    }

    #[test]
    fn a_turn_is_found_to_the_block() {
        for turn in [1, 2, 17, 100, 999] {
            assert_eq!(crossing(1000, |blocks| blocks > turn), BreakEven::Above(turn));
            assert_eq!(crossing(1000, |blocks| blocks <= turn), BreakEven::Below(turn));
        }
        assert_eq!(crossing(1, |_| true), BreakEven::Always);
        assert_eq!(crossing(1000, |_| false), BreakEven::Never);
    }
}
