//! What tiers behind the GPU's memory did for a run, under the names that reports have.

use serde_json::{Map, Value, json};
use wavetank_model::Nanos;

use crate::Distribution;
use crate::statistics::ratio;

/// From how many tokens on it is faster to load them than to compute them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakEven {
    /// From the first block on.
    Always,
    /// Above so many.
    Above(u32),
    /// Up to so many.
    Below(u32),
    /// As many as there may be.
    Never,
}

impl BreakEven {
    /// The same, counted in blocks of so many tokens before.
    #[must_use]
    pub fn in_tokens(self, block_size: u32) -> Self {
        match self {
            Self::Above(blocks) => Self::Above(blocks * block_size),
            Self::Below(blocks) => Self::Below(blocks * block_size),
            other => other,
        }
    }

    /// In words, for the tier called `name`.
    pub fn sentence(self, name: &str) -> String {
        match self {
            Self::Always => format!("loading from {name} always beats recomputing"),
            Self::Above(tokens) => {
                format!("loading from {name} beats recomputing above {} tokens", grouped(tokens))
            }
            Self::Below(tokens) => {
                format!("loading from {name} beats recomputing up to {} tokens only", grouped(tokens))
            }
            Self::Never => format!("loading from {name} never beats recomputing"),
        }
    }

    fn json(self, name: &str) -> Value {
        let (kind, tokens) = match self {
            Self::Always => ("always", None),
            Self::Above(tokens) => ("above", Some(tokens)),
            Self::Below(tokens) => ("below", Some(tokens)),
            Self::Never => ("never", None),
        };
        json!({ "kind": kind, "tokens": tokens, "text": self.sentence(name) })
    }
}

fn grouped(tokens: u32) -> String {
    crate::render::table::number(f64::from(tokens)).trim_end_matches(".00").to_owned()
}

/// What a tier is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierShape {
    /// Its name.
    pub name: String,
    /// How much each copy holds.
    pub capacity_bytes: u64,
    /// How many there are: one for each worker, or one for all.
    pub copies: u32,
    /// From when on it is worth to load from it.
    pub break_even: BreakEven,
}

/// What one tier did.
#[derive(Clone, Debug)]
pub struct TierSummary {
    /// What it is.
    pub shape: TierShape,
    /// Loads that found something in it.
    pub loads: u64,
    /// Requests that loaded from it, each once.
    pub requests: u64,
    /// Tokens that were loaded from it, by requests that were admitted again too.
    pub hit_tokens: u64,
    /// The same in blocks.
    pub hit_blocks: u64,
    /// Prompt tokens of completed requests that came from it at their first admission.
    pub prompt_tokens: u64,
    /// Bytes that were read, and in how many transfers.
    pub bytes_read: u64,
    /// How many.
    pub reads: u64,
    /// Bytes that were written: computed, given up by what is above, or on their way from below.
    pub bytes_written: u64,
    /// How many.
    pub writes: u64,
    /// Blocks it gave up to make room.
    pub evicted_blocks: u64,
    /// Blocks that were not written to it, because no room could be made.
    pub dropped_blocks: u64,
    /// From asking to having all, over the loads that found something in it.
    pub load_wait_ms: Distribution,
    /// How long reads were under way.
    pub read_ms: Distribution,
    /// How long writes were.
    pub write_ms: Distribution,
    /// Time with at least one transfer under way, over all copies.
    pub busy: Nanos,
    /// What the timing model would have taken for what was loaded.
    pub saved_prefill_ms: f64,
}

impl TierSummary {
    /// The share of the time with a transfer under way.
    pub fn utilisation(&self, span: Nanos) -> f64 {
        ratio(self.busy.as_seconds(), span.as_seconds() * f64::from(self.shape.copies.max(1)))
    }

    /// Bytes both ways a second of busy time.
    pub fn bandwidth(&self) -> f64 {
        ratio((self.bytes_read + self.bytes_written) as f64, self.busy.as_seconds())
    }
}

/// What all tiers did.
#[derive(Clone, Debug)]
pub struct TiersSummary {
    /// Each of them, from the fastest.
    pub tiers: Vec<TierSummary>,
    /// Prompt tokens of completed requests found in the GPU's memory at their first admission.
    pub gpu_tokens: u64,
    /// Those found nowhere.
    pub computed_tokens: u64,
    /// From asking to having all, over all loads.
    pub load_wait_ms: Distribution,
    /// The time that utilisation is of.
    pub span: Nanos,
}

impl TiersSummary {
    /// Prompt tokens of completed requests.
    pub fn prompt_tokens(&self) -> u64 {
        self.gpu_tokens + self.computed_tokens + self.tiers.iter().map(|tier| tier.prompt_tokens).sum::<u64>()
    }

    /// Where prompt tokens came from, with the share of each.
    pub fn sources(&self) -> Vec<(&str, u64, f64)> {
        let tiers = self.tiers.iter().map(|tier| (tier.shape.name.as_str(), tier.prompt_tokens));
        let all = [("gpu", self.gpu_tokens)].into_iter().chain(tiers);
        let all = all.chain([("computed", self.computed_tokens)]);
        let whole = self.prompt_tokens() as f64;
        all.map(|(name, tokens)| (name, tokens, ratio(tokens as f64, whole))).collect()
    }

    /// As it stands in a report.
    pub fn json(&self) -> Value {
        let sources: Vec<Value> = self
            .sources()
            .into_iter()
            .map(|(name, tokens, share)| json!({ "name": name, "tokens": tokens, "share": share }))
            .collect();
        let saved: f64 = self.tiers.iter().map(|tier| tier.saved_prefill_ms).sum();
        json!({
            "prompt_tokens": sources,
            "load_wait_ms": spread(&self.load_wait_ms),
            "saved_prefill_ms": saved,
            "tiers": self.tiers.iter().map(|tier| self.tier_json(tier)).collect::<Vec<_>>(),
        })
    }

    fn tier_json(&self, tier: &TierSummary) -> Value {
        let TierShape { name, capacity_bytes, copies, break_even } = &tier.shape;
        json!({
            "name": name,
            "capacity_bytes": capacity_bytes,
            "copies": copies,
            "loads": tier.loads,
            "requests": tier.requests,
            "hit_tokens": tier.hit_tokens,
            "hit_blocks": tier.hit_blocks,
            "prompt_tokens": tier.prompt_tokens,
            "share_of_prompt_tokens": ratio(tier.prompt_tokens as f64, self.prompt_tokens() as f64),
            "bytes_read": tier.bytes_read,
            "reads": tier.reads,
            "bytes_written": tier.bytes_written,
            "writes": tier.writes,
            "evicted_blocks": tier.evicted_blocks,
            "dropped_blocks": tier.dropped_blocks,
            "load_wait_ms": spread(&tier.load_wait_ms),
            "read_ms": spread(&tier.read_ms),
            "write_ms": spread(&tier.write_ms),
            "busy_ms": tier.busy.as_ms(),
            "utilisation": tier.utilisation(self.span),
            "bandwidth_bytes_per_s": tier.bandwidth(),
            "saved_prefill_ms": tier.saved_prefill_ms,
            "break_even": break_even.json(name),
        })
    }
}

fn spread(values: &Distribution) -> Value {
    let Distribution { count, mean, median, p95, p99, max, .. } = *values;
    json!({ "count": count, "mean": mean, "p50": median, "p95": p95, "p99": p99, "max": max })
}

/// The numbers of the part of a report that tells of tiers, by names such as `tiers.disk.hit_tokens`.
pub(crate) fn metrics(part: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    let Some(part) = part.as_object() else { return found };
    for (key, value) in part {
        match value.as_array() {
            Some(items) => items.iter().for_each(|item| {
                let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
                let prefix = match key.as_str() {
                    "tiers" => format!("tiers.{name}"),
                    _ => format!("tiers.{key}.{name}"),
                };
                flatten(&prefix, item, &mut found);
            }),
            None => flatten(&format!("tiers.{key}"), value, &mut found),
        }
    }
    found
}

fn flatten(prefix: &str, value: &Value, into: &mut Map<String, Value>) {
    match value {
        Value::Number(_) => drop(into.insert(prefix.to_owned(), value.clone())),
        Value::Object(object) => {
            object.iter().for_each(|(key, value)| flatten(&format!("{prefix}.{key}"), value, into));
        }
        _ => {}
    }
}
