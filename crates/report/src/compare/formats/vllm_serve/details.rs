//! Single requests of `--save-detailed`: seconds to the first token, every gap after it, and in newer
//! releases to the end of the answer. Older ones leave that out: there an answer ends with its last token,
//! a little before the message that ends the stream.

use serde_json::Value;
use wavetank_model::{Error, Result};

use super::super::{Object, wrong};

/// What a result says of its requests, one by one.
pub(super) enum Details {
    /// Nothing.
    Absent,
    /// Not as many answers as it counts.
    Doubtful,
    /// All of them.
    Whole(Answers),
}

/// Times of the requests that were answered, in milliseconds.
#[derive(Default)]
pub(super) struct Answers {
    ttft: Vec<f64>,
    tpot: Vec<f64>,
    itl: Vec<f64>,
    e2e: Vec<f64>,
    /// Requests that were not.
    pub(super) failed: usize,
}

impl Answers {
    /// By our names.
    pub(super) fn distributions(&self) -> [(&'static str, &[f64]); 4] {
        [
            ("ttft_ms", &self.ttft),
            ("tpot_ms", &self.tpot),
            ("itl_ms", &self.itl),
            ("e2e_latency_ms", &self.e2e),
        ]
    }

    fn add(&mut self, ttft: f64, gaps: &[f64], end: Option<f64>, tokens: f64) {
        let end = end.unwrap_or_else(|| ttft + gaps.iter().sum::<f64>());
        self.ttft.push(ttft);
        self.e2e.push(end);
        self.itl.extend(gaps);
        if tokens > 1.0 {
            self.tpot.push((end - ttft) / (tokens - 1.0));
        }
    }
}

/// Single requests, if they are in `result` and `completed` of them were answered.
pub(super) fn read(result: &Object, completed: f64) -> Result<Details> {
    let lists = ["ttfts", "itls", "output_lens"].map(|key| result.get(key));
    let [Some(ttfts), Some(itls), Some(tokens)] = lists else { return Ok(Details::Absent) };
    let ttfts = milliseconds(ttfts, "ttfts")?;
    let tokens = numbers(tokens, "output_lens")?;
    let itls = list(itls, "itls")?;
    let ends = result.get("latencies").map(|ends| milliseconds(ends, "latencies")).transpose()?;
    let errors = result.get("errors").map(|errors| list(errors, "errors")).transpose()?;
    let ends_count = ends.as_ref().map_or(ttfts.len(), Vec::len);
    let errors_count = errors.map_or(ttfts.len(), <[Value]>::len);
    let counts = [
        ("itls", itls.len()),
        ("output_lens", tokens.len()),
        ("latencies", ends_count),
        ("errors", errors_count),
    ];
    if let Some((key, count)) = counts.iter().find(|(_, count)| *count != ttfts.len()) {
        return Err(Error::input(format!("\"{key}\" has {count} entries and \"ttfts\" {}", ttfts.len())));
    }
    let mut answers = Answers::default();
    for (at, gaps) in itls.iter().enumerate() {
        let is_answered = errors.map_or(tokens[at] > 0.0, |errors| errors[at] == "");
        if is_answered {
            let end = ends.as_ref().map(|ends| ends[at]);
            answers.add(ttfts[at], &milliseconds(gaps, "itls")?, end, tokens[at]);
        } else {
            answers.failed += 1;
        }
    }
    let is_whole = answers.ttft.len() as f64 == completed;
    Ok(if is_whole { Details::Whole(answers) } else { Details::Doubtful })
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v [Value]> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong(key, "a list"))
}

fn numbers(value: &Value, key: &str) -> Result<Vec<f64>> {
    let number = |value: &Value| value.as_f64().ok_or_else(|| wrong(key, "a list of numbers"));
    list(value, key)?.iter().map(number).collect()
}

fn milliseconds(seconds: &Value, key: &str) -> Result<Vec<f64>> {
    Ok(numbers(seconds, key)?.into_iter().map(|seconds| seconds * 1e3).collect())
}

/// What reports say of a distribution, percentiles interpolated as in the rest of the file; nothing where
/// nothing was measured.
pub(super) fn statistics(values: &[f64]) -> Vec<(&'static str, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    if max == 0.0 {
        return Vec::new();
    }
    let count = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / count;
    let variance = sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let percentile = |percent: f64| {
        let rank = (count - 1.0) * percent / 100.0;
        let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
        low + (high - low) * rank.fract()
    };
    vec![
        ("mean", mean),
        ("min", min),
        ("max", max),
        ("median", percentile(50.0)),
        ("p75", percentile(75.0)),
        ("p90", percentile(90.0)),
        ("p95", percentile(95.0)),
        ("p99", percentile(99.0)),
        ("std", variance.sqrt()),
    ]
}
