//! The price of a worker in blocks (spec/replay.md 6.2); lower is better.

use super::KvConfig;

/// A worker as a candidate for one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Prompt tokens of the request.
    pub(super) input_tokens: u32,
    /// Leading blocks of the prompt in the worker's cache.
    pub(super) matched_blocks: u32,
    /// Blocks behind those that the worker's first tier has.
    pub(super) host_blocks: u32,
    /// The same of its other tiers.
    pub(super) disk_blocks: u32,
    /// Prompt tokens in flight on the worker.
    pub(super) prefill_tokens: u64,
    /// The same on the worker that has least.
    pub(super) least_prefill_tokens: u64,
    /// Distinct prompt blocks of its requests.
    pub(super) active_blocks: u32,
    /// Blocks this request would add to them.
    pub(super) additional_blocks: u32,
    /// Its requests.
    pub(super) active_requests: u32,
}

impl Candidate {
    pub(super) fn cost(&self, config: &KvConfig, block_size: u32) -> f64 {
        let block = f64::from(block_size);
        let cached = u64::from(self.matched_blocks) * u64::from(block_size);
        let uncached = u64::from(self.input_tokens).saturating_sub(cached);
        let prompt_tokens = match config.router_track_prefill_tokens {
            true => (self.prefill_tokens + uncached + cached) as f64,
            false => 0.0,
        };
        let credit =
            config.overlap_score_credit * self.fading(config, block) * f64::from(self.matched_blocks)
                + config.host_cache_hit_weight * f64::from(self.host_blocks)
                + config.disk_cache_hit_weight * f64::from(self.disk_blocks);
        let prefill = config.prefill_load_scale * (prompt_tokens / block - credit).max(0.0);
        let decode = f64::from(self.active_blocks + self.additional_blocks);
        prefill + decode + config.decode_active_request_weight * f64::from(self.active_requests)
    }

    /// What is left of the credit on a worker with more prompt work than the least, relative to this prompt.
    fn fading(&self, config: &KvConfig, block: f64) -> f64 {
        if !config.router_track_prefill_tokens || config.overlap_score_credit_decay <= 0.0 {
            return 1.0;
        }
        let excess_blocks = (self.prefill_tokens - self.least_prefill_tokens) as f64 / block;
        let prompt_blocks = (f64::from(self.input_tokens) / block).ceil();
        1.0 / (1.0 + config.overlap_score_credit_decay * excess_blocks / prompt_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K6: Candidate = Candidate {
        input_tokens: 64,
        matched_blocks: 6,
        host_blocks: 0,
        disk_blocks: 0,
        prefill_tokens: 16,
        least_prefill_tokens: 16,
        active_blocks: 2,
        additional_blocks: 3,
        active_requests: 0,
    };

    #[test]
    fn k6_the_formula() {
        let config = KvConfig { prefill_load_scale: 2.0, ..KvConfig::default() };
        assert_eq!(K6.cost(&config, 16), 7.0);
        let untracked = KvConfig { router_track_prefill_tokens: false, ..config };
        assert_eq!(K6.cost(&untracked, 16), 5.0);
    }

    #[test]
    fn what_tiers_have_is_worth_less() {
        let (config, long) = (KvConfig::default(), Candidate { input_tokens: 640, ..K6 });
        let saved = |host_blocks, disk_blocks| {
            let behind = Candidate { matched_blocks: 2, host_blocks, disk_blocks, ..long };
            long.cost(&config, 16) - behind.cost(&config, 16)
        };
        assert_eq!((saved(4, 0), saved(0, 4), saved(2, 2)), (-1.0, -3.0, -2.0));
        let blind = KvConfig { host_cache_hit_weight: 0.0, ..config.clone() };
        let with = |config: &KvConfig| Candidate { host_blocks: 4, ..long }.cost(config, 16);
        assert!(with(&blind) > with(&config));
    }

    #[test]
    fn k6_requests_in_flight() {
        let idle = Candidate { input_tokens: 16, matched_blocks: 1, prefill_tokens: 0, ..K6 };
        let busy = Candidate { active_blocks: 100, additional_blocks: 0, active_requests: 4, ..idle };
        let weighted = |weight| KvConfig { decode_active_request_weight: weight, ..KvConfig::default() };
        assert_eq!(busy.cost(&weighted(32.0), 16), 228.0);
        assert_eq!(busy.cost(&weighted(0.0), 16), 100.0);
    }

    #[test]
    fn k7_credit_fades_on_loaded_workers() {
        let cold = Candidate {
            input_tokens: 64,
            matched_blocks: 0,
            host_blocks: 0,
            disk_blocks: 0,
            prefill_tokens: 0,
            least_prefill_tokens: 0,
            active_blocks: 0,
            additional_blocks: 4,
            active_requests: 0,
        };
        let warm = Candidate { matched_blocks: 4, prefill_tokens: 48, additional_blocks: 4, ..cold };
        let cheaper = |decay| {
            let config = KvConfig { overlap_score_credit_decay: decay, ..KvConfig::default() };
            warm.cost(&config, 16) < cold.cost(&config, 16)
        };
        assert!(!cheaper(1.0), "the idle cold worker wins");
        assert!(cheaper(0.0), "the warm worker wins");
    }
}
