//! `vllm bench serve --save-result` and the lines of `--append-result` (vllm/benchmarks/serve.py): seconds
//! for the duration and single requests, milliseconds for statistics, which have our names but for "e2el".
//!
//! Percentiles are interpolated between ranks there, deviations are of the population as ours.

mod details;

use serde_json::Value;
use wavetank_model::Result;

use super::{Entry, Object, Repeat, failures, number, required};
use details::{Answers, Details};

pub(super) const ENTRY: Entry = Entry {
    name: "vllm-serve",
    about: "vllm bench serve --save-result or --append-result",
    artifact: None,
    recognises: |result| {
        ["completed", "output_throughput", "total_token_throughput"]
            .iter()
            .all(|key| result.contains_key(*key))
    },
    read,
};

const NAMES: &[(&str, &str)] = &[
    ("completed", "completed_requests"),
    ("total_input_tokens", "total_input_tokens"),
    ("total_output_tokens", "total_output_tokens"),
    ("request_throughput", "request_throughput_rps"),
    ("output_throughput", "output_throughput_tok_s"),
    ("total_token_throughput", "total_throughput_tok_s"),
    // The key of releases that misspelt it.
    ("request_goodput:", "goodput_request_throughput_rps"),
    ("request_goodput", "goodput_request_throughput_rps"),
];

/// Distributions by their name and ours.
const TIMES: &[(&str, &str)] =
    &[("ttft_ms", "ttft_ms"), ("tpot_ms", "tpot_ms"), ("itl_ms", "itl_ms"), ("e2el_ms", "e2e_latency_ms")];

const STATISTICS: &[&str] = &["mean", "median", "std", "p75", "p90", "p95", "p99"];

/// What was asked for.
const PLAN: &[&str] = &[
    "backend",
    "model_id",
    "num_prompts",
    "request_rate",
    "burstiness",
    "max_concurrency",
    "ramp_up_strategy",
    "ramp_up_start_rps",
    "ramp_up_end_rps",
];

fn read(result: &Object) -> Result<Repeat> {
    let mut run = Repeat { plan: Some(plan(result)), ..Repeat::default() };
    run.take(result, NAMES)?;
    for (theirs, ours) in TIMES {
        times(result, theirs, ours, &mut run)?;
    }
    if let Some(seconds) = number(result, "duration")? {
        run.set("duration_ms", seconds * 1e3);
    }
    derived(&mut run);
    let completed = required(result, "completed")?;
    let failed = number(result, "failed")?;
    if let Some(failed) = failed {
        run.set("num_requests", completed + failed);
    }
    let mut errors = 0;
    match details::read(result, completed)? {
        Details::Absent => {}
        Details::Doubtful => run.remarks.push("single requests do not add up to \"completed\"".to_owned()),
        Details::Whole(answers) => {
            errors = answers.failed;
            add(&answers, &mut run);
        }
    }
    run.remarks.extend(failures(failed.unwrap_or(errors as f64)));
    Ok(run)
}

fn plan(result: &Object) -> Value {
    let asked = PLAN.iter().filter_map(|key| Some(((*key).to_owned(), result.get(*key)?.clone())));
    Value::Object(asked.collect())
}

/// Statistics of one distribution. Where nothing was measured all of them are zero: no streaming, no tokens.
fn times(result: &Object, theirs: &str, ours: &str, run: &mut Repeat) -> Result<()> {
    if number(result, &format!("mean_{theirs}"))? == Some(0.0) {
        return Ok(());
    }
    for statistic in STATISTICS {
        if let Some(value) = number(result, &format!("{statistic}_{theirs}"))? {
            run.set(&format!("{statistic}_{ours}"), value);
        }
    }
    Ok(())
}

/// What follows from totals.
fn derived(run: &mut Repeat) {
    let totals = ["total_input_tokens", "total_output_tokens", "duration_ms"].map(|key| run.value(key));
    if let [Some(input), Some(output), Some(duration)] = totals {
        run.set("processed_tokens", input + output);
        if duration > 0.0 {
            run.set("input_throughput_tok_s", input * 1e3 / duration);
        }
    }
}

/// Statistics of single requests that the result lacks.
fn add(answers: &Answers, run: &mut Repeat) {
    for (name, values) in answers.distributions() {
        for (statistic, value) in details::statistics(values) {
            run.metrics.entry(format!("{statistic}_{name}")).or_insert_with(|| vec![value]);
        }
    }
}
