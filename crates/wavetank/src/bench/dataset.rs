//! A recording for the benchmark, from any trace format.

use wavetank_bench::{Arrivals, Feed, Recording};
use wavetank_model::Result;
use wavetank_trace::requests::{ReadOptions, Source, Texts, TokenCount};
use wavetank_trace::{Options, Starts};

use super::args::Tokenizer;
use super::plan::{BenchPlan, DatasetPlan};

/// What was read, and what its reader has to say.
pub(super) struct Dataset {
    pub(super) recording: Recording,
    pub(super) notes: Vec<String>,
}

/// Reads the recording of `plan`, if it has one.
pub(super) fn read(plan: &BenchPlan) -> Result<Option<Dataset>> {
    let Some(dataset) = &plan.dataset else { return Ok(None) };
    let source = Source::of(&dataset.files, Some(&dataset.format))?;
    let mut loaded = wavetank_trace::open(&source, &options(plan, dataset))?;
    let recording = Recording::of(loaded.workload.as_mut())?;
    let mut notes = loaded.survey.notes;
    if loaded.workload.dependencies().is_some() {
        let (requests, conversations) = (recording.requests(), recording.sessions());
        let how =
            "those that wait for each other one after the other, in an order that keeps what they wait for";
        notes.push(format!("{requests} requests are played as {conversations} conversations: {how}"));
    }
    Ok(Some(Dataset { recording, notes }))
}

fn options(plan: &BenchPlan, dataset: &DatasetPlan) -> Options {
    let timed = matches!(plan.run.feed, Feed::Recording { arrivals: Arrivals::Recorded { .. }, .. });
    let defaults = Texts::default();
    let texts = Texts {
        tokens: match dataset.tokenizer {
            Tokenizer::Tiktoken => TokenCount::Tokenizer,
            Tokenizer::Characters => TokenCount::Characters(dataset.chars_per_token),
        },
        max_conversations: dataset.max_conversations,
        context_tokens_max: dataset.context_tokens_max.unwrap_or(defaults.context_tokens_max),
        generate_tokens_max: dataset.generate_tokens_max.unwrap_or(defaults.generate_tokens_max),
    };
    // The speed-up is applied when the recording is played.
    let starts = if timed { Starts::Scheduled { speedup: 1.0 } } else { Starts::Ignored };
    let read = ReadOptions { tokens_per_id: dataset.tokens_per_id, texts, ..ReadOptions::default() };
    Options { read, ..Options::of(starts) }
}
