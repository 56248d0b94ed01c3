//! `--within`: how far the second side may be from the first, in either direction.

use wavetank_model::{Error, Result};

use super::{Comparison, Row};

/// What a tolerance without a metric is about, of those that both sides have.
pub const WATCHED: &[&str] = &[
    "request_throughput_rps",
    "output_throughput_tok_s",
    "total_throughput_tok_s",
    "total_tokens_per_sec",
    "mean_ttft_ms",
    "median_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "median_tpot_ms",
    "p99_tpot_ms",
];

const FLAG: &str = "--within";

/// How far a metric, or all that are watched, may be off.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tolerance {
    metric: Option<String>,
    percent: f64,
}

/// What tolerances make of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Metrics that were held against a tolerance.
    pub judged: Vec<String>,
    /// Those that are off.
    pub failures: Vec<Failure>,
}

/// A metric that is off.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Its name.
    pub metric: String,
    /// The first side.
    pub before: f64,
    /// The second side.
    pub after: f64,
    /// How far it is from the first, in percent of it, signed.
    pub off_percent: f64,
    /// How far it may be.
    pub allowed_percent: f64,
}

impl Tolerance {
    /// Reads `5%`, or `p99_ttft_ms 5%` for one metric; the sign may be left out.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("cannot read the tolerance \"{text}\""))
                .at(FLAG)
                .hint("for example '5%', or 'p99_ttft_ms 10%' for one metric")
        };
        let bound = text.trim();
        let bound = bound.strip_suffix('%').unwrap_or(bound).trim_end();
        let (metric, percent) = match bound.rsplit_once(char::is_whitespace) {
            Some((metric, percent)) => (Some(metric.trim_end().to_owned()), percent),
            None => (None, bound),
        };
        let percent = percent.parse::<f64>().ok().filter(|percent| percent.is_finite() && *percent >= 0.0);
        let is_word = |metric: &String| !metric.contains(char::is_whitespace);
        if !metric.iter().all(is_word) {
            return Err(wrong());
        }
        Ok(Self { metric, percent: percent.ok_or_else(wrong)? })
    }

    /// Holds `comparison` against all of `tolerances`. A metric's own one goes before that of all; one that
    /// finds nothing to judge is an error.
    pub(super) fn judge(tolerances: &[Self], comparison: &Comparison) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        for (at, tolerance) in tolerances.iter().enumerate() {
            if tolerances[..at].iter().any(|other| other.metric == tolerance.metric) {
                let metric = tolerance.metric.as_deref().unwrap_or("all metrics");
                return Err(Error::usage(format!("says twice how far {metric} may be off")).at(FLAG));
            }
            let rows = match &tolerance.metric {
                Some(metric) => vec![comparison.row(metric, FLAG)?],
                None => watched(comparison, tolerances)?,
            };
            for row in rows {
                verdict.judged.push(row.metric.clone());
                verdict.failures.extend(tolerance.failure(row));
            }
        }
        Ok(verdict)
    }

    /// What is wrong with `row`, if anything.
    fn failure(&self, row: &Row) -> Option<Failure> {
        let off_percent = match row.relative() {
            Some(relative) => relative * 100.0,
            None if row.change() == 0.0 => 0.0,
            // From nothing, any change is without bound.
            None => row.change().signum() * f64::INFINITY,
        };
        (off_percent.abs() > self.percent).then(|| Failure {
            metric: row.metric.clone(),
            before: row.before.mean(),
            after: row.after.mean(),
            off_percent,
            allowed_percent: self.percent,
        })
    }
}

/// What both sides have of [`WATCHED`] and has no tolerance of its own.
fn watched<'c>(comparison: &'c Comparison, tolerances: &[Tolerance]) -> Result<Vec<&'c Row>> {
    let in_both = |metric: &&str| comparison.rows.iter().find(|row| row.metric == *metric);
    let rows: Vec<&Row> = WATCHED.iter().filter_map(in_both).collect();
    if rows.is_empty() {
        return Err(Error::usage("there is nothing to judge: neither throughput, TTFT nor TPOT is in both")
            .at(FLAG)
            .hint(format!("it judges {}; name another metric, as in 'duration_ms 5%'", WATCHED.join(", "))));
    }
    let is_general = |row: &&Row| tolerances.iter().all(|other| other.metric.as_ref() != Some(&row.metric));
    Ok(rows.into_iter().filter(is_general).collect())
}
