//! `trace stats`: what a request trace holds, in one pass over its rows.

mod lengths;
mod seen;
mod span;
mod text;

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use wavetank_model::Result;
use wavetank_trace::requests::Source;
use wavetank_trace::{Asked, Survey};

use super::source::TraceArgs;
use lengths::Lengths;
use seen::{Found, Seen};
use span::{Counts, Spans};

pub use lengths::LengthStats;
pub use span::OverTime;

/// What a request trace holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceStats {
    /// What kind of report it is: `trace_stats`.
    pub kind: &'static str,
    /// The version that wrote it.
    pub version: &'static str,
    /// Its files.
    pub files: Vec<String>,
    /// A row of the request trace formats.
    pub format: &'static str,
    /// Requests.
    pub requests: u64,
    /// Things in it that are no requests.
    pub skipped: u64,
    /// Inputs cut to what their ids cover.
    pub clamped: u64,
    /// What whoever reads this should know: what was skipped and filled, and by which rule.
    pub warnings: Vec<String>,
    /// Its sessions.
    pub sessions: SessionStats,
    /// Times that a request names another one it waits for.
    pub edges: u64,
    /// Prompts, with what is known to stand before a turn's own words.
    pub input_tokens: LengthStats,
    /// Answers; requests that do not say theirs are not counted.
    pub output_tokens: LengthStats,
    /// How fast requests came; nothing where none has a time.
    pub rates: Option<RateStats>,
    /// Blocks of prompts.
    pub blocks: BlockStats,
    /// What a cache without an end would serve.
    pub reuse_bound: ReuseBound,
    /// The same over time.
    pub over_time: OverTime,
}

/// Sessions of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionStats {
    /// Those with a name.
    pub count: u64,
    /// Requests of none of them.
    pub single_requests: u64,
    /// Turns of a session, on average.
    pub turns_mean: f64,
    /// Turns of the longest.
    pub turns_max: u64,
}

/// How fast requests came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateStats {
    /// Requests with a time; others follow a turn after a pause, and are in no rate.
    pub timed_requests: u64,
    /// From the first to the last.
    pub duration_s: f64,
    /// Requests.
    pub requests_per_s: Rate,
    /// Tokens of prompts.
    pub input_tokens_per_s: Rate,
    /// Tokens of answers.
    pub output_tokens_per_s: Rate,
}

/// Something per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Over all of the trace; nothing where it takes no time.
    pub mean: Option<f64>,
    /// Over the span with the most.
    pub peak: f64,
}

/// Blocks of prompts, each known by its id and all ids before it in its prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BlockStats {
    /// Tokens of a block that is no prompt's last.
    pub tokens_per_block: u32,
    /// Blocks asked for, a prompt's last one included even if it is not full.
    pub references: u64,
    /// Different ones.
    pub unique: u64,
    /// One in so many was looked at; with one, numbers are exact and otherwise estimates.
    pub one_in: u64,
    /// The standard error of an estimate.
    pub unique_standard_error: f64,
}

/// What a cache without an end would serve, prompts asked one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReuseBound {
    /// Of the blocks asked for.
    pub block_hit_ratio: f64,
    /// Its standard error, from a sample.
    pub block_hit_ratio_standard_error: f64,
    /// Of the tokens of prompts.
    pub prompt_token_ratio: f64,
    /// Its standard error, from a sample.
    pub prompt_token_ratio_standard_error: f64,
}

/// Reads a trace once.
pub fn trace_stats(args: &TraceArgs) -> Result<TraceStats> {
    collect(args, seen::MOST)
}

/// The same, holding at most so many blocks.
fn collect(args: &TraceArgs, most_blocks: usize) -> Result<TraceStats> {
    let source = args.source()?;
    let mut prompts = args.prompts(&source)?;
    let mut collected = Collected::holding(most_blocks);
    collected.tokens_per_block = prompts.tokens_per_block();
    while let Some(asked) = prompts.advance()? {
        args.meter.count()?;
        collected.add(&asked);
    }
    Ok(collected.finish(&source, prompts.finish()?))
}

/// Counts as they grow.
struct Collected {
    tokens_per_block: u32,
    inputs: Lengths,
    outputs: Lengths,
    /// Turns of each session.
    turns: HashMap<u64, u32>,
    single_requests: u64,
    edges: u64,
    spans: Spans,
    seen: Seen,
    /// Tokens of prompts that are like no other.
    unshared_tokens: u64,
}

impl Collected {
    fn holding(most_blocks: usize) -> Self {
        Self {
            tokens_per_block: 0,
            inputs: Lengths::default(),
            outputs: Lengths::default(),
            turns: HashMap::new(),
            single_requests: 0,
            edges: 0,
            spans: Spans::default(),
            seen: Seen::at_most(most_blocks),
            unshared_tokens: 0,
        }
    }

    fn add(&mut self, asked: &Asked<'_>) {
        self.inputs.add(asked.input_tokens);
        asked.output_tokens.into_iter().for_each(|tokens| self.outputs.add(tokens));
        match asked.session {
            Some(session) => *self.turns.entry(session).or_default() += 1,
            None => self.single_requests += 1,
        }
        self.edges += asked.row.wait_for.len() as u64;
        let input_tokens = u64::from(asked.input_tokens);
        let new_tokens = if asked.is_shareable {
            self.seen.see(asked.blocks)
        } else {
            self.unshared_tokens += input_tokens;
            input_tokens
        };
        if let Some(start) = asked.row.start {
            let output_tokens = asked.output_tokens.unwrap_or_default().into();
            self.spans.add(start, Counts { requests: 1, input_tokens, output_tokens, new_tokens });
        }
    }

    fn finish(self, source: &Source, survey: Survey) -> TraceStats {
        let found = self.seen.found();
        let (input_tokens, output_tokens) = (self.inputs.stats(), self.outputs.stats());
        let reuse_bound = self.reuse_bound(&found, input_tokens.sum);
        let mut warnings = survey.notes;
        let unsaid = survey.requests - output_tokens.count;
        if unsaid > 0 {
            warnings.push(format!("{unsaid} requests without an output length: they are not in its numbers"));
        }
        TraceStats {
            kind: "trace_stats",
            version: env!("CARGO_PKG_VERSION"),
            files: source.inputs.iter().map(wavetank_trace::Input::name).collect(),
            format: source.format.name,
            requests: survey.requests,
            skipped: survey.skipped,
            clamped: survey.clamped,
            warnings,
            sessions: self.sessions(),
            edges: self.edges,
            input_tokens,
            output_tokens,
            rates: self.rates(),
            blocks: self.blocks(&found),
            reuse_bound,
            over_time: self.spans.over_time(),
        }
    }

    fn sessions(&self) -> SessionStats {
        let count = self.turns.len() as u64;
        let turns: u64 = self.turns.values().map(|turns| u64::from(*turns)).sum();
        SessionStats {
            count,
            single_requests: self.single_requests,
            turns_mean: ratio(turns as f64, count as f64),
            turns_max: self.turns.values().copied().max().unwrap_or_default().into(),
        }
    }

    fn rates(&self) -> Option<RateStats> {
        let duration_s = self.spans.duration_s()?;
        let (total, over_time) = (self.spans.total(), self.spans.over_time());
        let rate = |total: u64, rates: &[f64]| Rate {
            mean: (duration_s > 0.0).then(|| total as f64 / duration_s),
            peak: rates.iter().copied().fold(0.0, f64::max),
        };
        Some(RateStats {
            timed_requests: total.requests,
            duration_s,
            requests_per_s: rate(total.requests, &over_time.requests_per_s),
            input_tokens_per_s: rate(total.input_tokens, &over_time.input_tokens_per_s),
            output_tokens_per_s: rate(total.output_tokens, &over_time.output_tokens_per_s),
        })
    }

    fn blocks(&self, found: &Found) -> BlockStats {
        BlockStats {
            tokens_per_block: self.tokens_per_block,
            references: found.references,
            unique: found.unique,
            one_in: found.one_in,
            unique_standard_error: found.unique_error,
        }
    }

    fn reuse_bound(&self, found: &Found, input_tokens: u64) -> ReuseBound {
        let blocks = found.references as f64;
        let new = (found.new_tokens + self.unshared_tokens).min(input_tokens);
        ReuseBound {
            block_hit_ratio: ratio((found.references - found.unique) as f64, blocks),
            block_hit_ratio_standard_error: ratio(found.unique_error, blocks),
            prompt_token_ratio: ratio((input_tokens - new) as f64, input_tokens as f64),
            prompt_token_ratio_standard_error: ratio(found.new_tokens_error, input_tokens as f64),
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl TraceStats {
    /// Everything as JSON.
    pub fn json(&self) -> Value {
        serde_json::to_value(self).expect("plain fields become JSON")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::TraceInput;
    use super::*;

    fn of(name: &str) -> Option<TraceArgs> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces").join(name);
        let files = vec![path.display().to_string()];
        let input = TraceInput { files, ..TraceInput::default() };
        path.exists().then_some(TraceArgs { input, ..TraceArgs::default() })
    }

    /// Broken by: a block known by its id alone or without those before it, a last block that is left out or
    /// counted with more tokens than the prompt has.
    #[test]
    fn known_totals_of_both_mooncake_traces() {
        let known = [
            ("mooncake_conversation.jsonl.gz", (12_031, 144_793_823, 4_122_048, 288_500, 182_790), 0.37362),
            ("mooncake_synthetic.jsonl.gz", (3_993, 61_194_628, 595_432, 121_877, 43_924), 0.65124),
        ];
        for (name, totals, tokens) in known {
            let Some(args) = of(name) else { return };
            let stats = trace_stats(&args).expect("a trace");
            let TraceStats { blocks, reuse_bound, .. } = &stats;
            let found = (
                stats.requests,
                stats.input_tokens.sum,
                stats.output_tokens.sum,
                blocks.references,
                blocks.unique,
            );
            assert_eq!(found, totals, "{name}");
            let hits = 1.0 - blocks.unique as f64 / blocks.references as f64;
            assert!((reuse_bound.block_hit_ratio - hits).abs() < 1e-12);
            assert!((reuse_bound.prompt_token_ratio - tokens).abs() < 1e-5, "{reuse_bound:?}");
            assert_eq!((blocks.one_in, blocks.unique_standard_error), (1, 0.0));
        }
    }

    /// Broken by: a sample that is not of blocks but of references, or an error that does not cover it.
    #[test]
    fn a_sample_of_the_conversation_says_about_the_same() {
        let Some(args) = of("mooncake_conversation.jsonl.gz") else { return };
        let (all, some) = (trace_stats(&args).unwrap(), collect(&args, 10_000).unwrap());
        assert!(some.blocks.one_in >= 16, "{:?}", some.blocks);
        let (bound, about) = (all.reuse_bound, some.reuse_bound);
        let off = (about.block_hit_ratio - bound.block_hit_ratio).abs();
        assert!(off < 0.05 * bound.block_hit_ratio, "{about:?}");
        assert!(off < 4.0 * about.block_hit_ratio_standard_error, "{about:?}");
        let off = (about.prompt_token_ratio - bound.prompt_token_ratio).abs();
        assert!(off < 0.05 * bound.prompt_token_ratio, "{about:?}");
        assert!(some.text().contains("estimated"), "{}", some.text());
        assert!(!all.text().contains("estimated"), "{}", all.text());
    }
}
