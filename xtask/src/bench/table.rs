//! Results as Markdown: the costs, the ratios that matter, the counts of the reports.

use super::cases::Results;
use super::measure::Sample;
use super::outcome::Outcome;

const COSTS: &str = "\
| case | program | runs | requests | CPU s (least) | peak MB (most) | wall s (median) | requests/s |
|---|---|---:|---:|---:|---:|---:|---:|
";
const RATIOS: &str = "\
| ratio | CPU | peak memory | wall |
|---|---:|---:|---:|
";

/// Everything `bench` prints.
pub(super) fn results(results: &Results) -> String {
    let outcomes = &results.outcomes;
    let costs: String = outcomes.iter().map(cost).collect();
    let ratios: String = outcomes.iter().flat_map(|outcome| ratios(outcome, outcomes)).collect();
    let ratios = if ratios.is_empty() { ratios } else { format!("\n{RATIOS}{ratios}") };
    let counts: String = outcomes.iter().map(counts).collect();
    let notes: String = results.notes.iter().map(|note| format!("- {note}\n")).collect();
    format!("{COSTS}{costs}{ratios}\n{counts}{notes}")
}

fn cost(outcome: &Outcome) -> String {
    let Outcome { who, case, reps, cost, completed, .. } = outcome;
    let completed = completed.map_or_else(|| "–".to_owned(), |count| count.to_string());
    let rate = outcome.requests_per_s().map_or_else(|| "–".to_owned(), |rate| format!("{rate:.0}"));
    let Sample { cpu_s, wall_s, .. } = cost;
    let peak = bytes(cost) / 1e6;
    format!("| {case} | {who} | {reps} | {completed} | {cpu_s:.4} | {peak:.1} | {wall_s:.4} | {rate} |\n")
}

/// This case against the one it builds on, and the reference tool against us.
fn ratios(outcome: &Outcome, all: &[Outcome]) -> Vec<String> {
    let find = |who, case| all.iter().find(|other| other.who == who && other.case == case);
    let ours = all.first().map_or("", |first| first.who);
    let smaller = outcome.against.and_then(|case| find(outcome.who, case));
    let smaller = smaller.map(|below| ratio(&format!("{} / {}", outcome.case, below.case), outcome, below));
    let rival = find(ours, outcome.case).filter(|us| us.who != outcome.who);
    let rival = rival.map(|us| ratio(&format!("{} / {ours}: {}", outcome.who, us.case), outcome, us));
    smaller.into_iter().chain(rival).collect()
}

fn ratio(name: &str, above: &Outcome, below: &Outcome) -> String {
    let cpu = above.cost.cpu_s / below.cost.cpu_s;
    let peak = bytes(&above.cost) / bytes(&below.cost);
    let wall = above.cost.wall_s / below.cost.wall_s;
    format!("| {name} | {cpu:.2} | {peak:.2} | {wall:.2} |\n")
}

fn counts(outcome: &Outcome) -> String {
    let completed = outcome.completed.map_or_else(|| "none".to_owned(), |count| count.to_string());
    let passes = outcome.passes.as_ref().map_or_else(String::new, |passes| format!(", passes `{passes}`"));
    format!("- {} ({}): completed_requests {completed}{passes}\n", outcome.case, outcome.who)
}

#[allow(clippy::cast_precision_loss, reason = "the bytes of a process are far fewer than 2^52")]
fn bytes(cost: &Sample) -> f64 {
    cost.max_rss_bytes as f64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// A case, the same ten times over, and the reference tool on the first.
    pub(in crate::bench) fn three() -> Results {
        let outcome = |who, case, against, cost, passes| Outcome {
            who,
            case,
            against,
            command: format!("{who} '{case}'"),
            reps: 5,
            cost,
            completed: Some(1000),
            passes,
        };
        let cost = |cpu_s, max_rss_bytes| Sample { cpu_s, wall_s: cpu_s * 2.0, max_rss_bytes };
        let outcomes = vec![
            outcome("ours", "once", None, cost(0.125, 20_000_000), Some(json!({"total": 7}))),
            outcome("theirs", "once", None, cost(5.0, 500_000_000), None),
            outcome("ours", "tenfold", Some("once"), cost(1.5, 22_000_000), None),
        ];
        Results { outcomes, notes: vec!["a note".to_owned()] }
    }

    #[test]
    fn costs_ratios_counts_and_notes_are_shown() {
        let rows = "\
| once | ours | 5 | 1000 | 0.1250 | 20.0 | 0.2500 | 4000 |
| once | theirs | 5 | 1000 | 5.0000 | 500.0 | 10.0000 | 100 |
| tenfold | ours | 5 | 1000 | 1.5000 | 22.0 | 3.0000 | 333 |
";
        let shares = "\
| theirs / ours: once | 40.00 | 25.00 | 40.00 |
| tenfold / once | 12.00 | 1.10 | 12.00 |
";
        let lines = "\
- once (ours): completed_requests 1000, passes `{\"total\":7}`
- once (theirs): completed_requests 1000
- tenfold (ours): completed_requests 1000
- a note
";
        assert_eq!(results(&three()), format!("{COSTS}{rows}\n{RATIOS}{shares}\n{lines}"));
    }

    #[test]
    fn without_ratios_there_is_no_table_of_them() {
        let Results { mut outcomes, .. } = three();
        outcomes.truncate(1);
        assert!(!results(&Results { outcomes, notes: Vec::new() }).contains("ratio"));
    }
}
