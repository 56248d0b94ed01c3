//! What request traces hold: how long their prompts and answers are, how fast they come, what they share.

use serde_json::Value;

use super::{Cell, Entry, Run, Section, Table};
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::{items, number, numbers};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "trace_stats", is, sections };

fn is(report: &Value) -> bool {
    report.get("kind").and_then(Value::as_str) == Some("trace_stats")
}

fn sections(runs: &[&Run]) -> Vec<Section> {
    let lengths = [("input_tokens", "Prompts", "prompt"), ("output_tokens", "Answers", "answer")];
    let mut figures: Vec<Figure> = lengths.map(|lengths| distribution(runs, lengths)).into();
    figures.extend(OVER_TIME.map(|over_time| course(runs, over_time)));
    figures.retain(|figure| !figure.series.is_empty());
    vec![Section { title: "What traces hold".to_owned(), tables: vec![table(runs)], figures }]
}

/// Pointer and name.
const ROWS: [(&str, &str); 14] = [
    ("/requests", "Requests"),
    ("/skipped", "Skipped"),
    ("/sessions/count", "Sessions"),
    ("/sessions/turns_mean", "Turns of a session, mean"),
    ("/edges", "Edges of the graph"),
    ("/rates/duration_s", "Duration (s)"),
    ("/rates/requests_per_s/mean", "Requests per second, mean"),
    ("/rates/requests_per_s/peak", "Requests per second, peak"),
    ("/input_tokens/mean", "Prompt tokens, mean"),
    ("/output_tokens/mean", "Answer tokens, mean"),
    ("/blocks/references", "Blocks asked for"),
    ("/blocks/unique", "Unique blocks"),
    ("/reuse_bound/block_hit_ratio", "Blocks that an endless cache serves (share)"),
    ("/reuse_bound/prompt_token_ratio", "Prompt tokens that it serves (share)"),
];

fn table(runs: &[&Run]) -> Table {
    let row = |(pointer, name): (&str, &str)| {
        let numbers = runs.iter().map(|run| Cell::Number(number(&run.report, pointer)));
        std::iter::once(Cell::Text(name.to_owned())).chain(numbers).collect()
    };
    Table {
        title: "Totals".to_owned(),
        columns: std::iter::once("number".to_owned())
            .chain(runs.iter().map(|run| run.name.clone()))
            .collect(),
        rows: ROWS.map(row).into(),
        of_figure: None,
    }
}

/// The share of prompts or answers that is no longer.
fn distribution(runs: &[&Run], (key, title, name): (&str, &str, &str)) -> Figure {
    let series = runs.iter().filter_map(|run| {
        let points = items(&run.report, &format!("/{key}/distribution"));
        let points: Vec<_> = points.iter().map(|point| (number(point, "/0"), number(point, "/1"))).collect();
        (!points.is_empty()).then(|| Series::of(run.name.clone(), points))
    });
    Figure {
        id: format!("{name}-lengths"),
        title: format!("{title}: distribution of lengths"),
        about: format!("The share of requests whose {name} has no more tokens."),
        kind: Kind::Lines,
        x: Axis::log(name, "tokens"),
        y: Axis::linear("share of requests", ""),
        series: series.collect(),
    }
}

/// A number over time: key, id, title, what is said of it, axis.
struct OverTime {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    /// Key, and its name where there are several.
    keys: &'static [(&'static str, &'static str)],
    y: (&'static str, &'static str),
}

const OVER_TIME: [OverTime; 3] = [
    OverTime {
        id: "arrivals",
        title: "Arrivals over time",
        about: "Requests that came in each span of time, per second.",
        keys: &[("requests_per_s", "")],
        y: ("requests", "1/s"),
    },
    OverTime {
        id: "tokens",
        title: "Tokens over time",
        about: "Tokens of the prompts that came in each span of time and of their answers, per second.",
        keys: &[("input_tokens_per_s", "prompts"), ("output_tokens_per_s", "answers")],
        y: ("tokens", "1/s"),
    },
    OverTime {
        id: "reuse",
        title: "Reuse over time",
        about: "The share of prompt tokens in each span of time that prompts before them held.",
        keys: &[("reused_share", "")],
        y: ("share of prompt tokens", ""),
    },
];

fn course(runs: &[&Run], shown: OverTime) -> Figure {
    let mut series = Vec::new();
    for run in runs {
        let times = numbers(&run.report, "/over_time/from_s");
        for (key, what) in shown.keys.iter().filter(|_| !times.is_empty()) {
            let values = numbers(&run.report, &format!("/over_time/{key}"));
            let name = if what.is_empty() { run.name.clone() } else { format!("{} {what}", run.name) };
            series.push(Series::of(name, times.iter().copied().zip(values).collect()));
        }
    }
    Figure {
        id: shown.id.to_owned(),
        title: shown.title.to_owned(),
        about: shown.about.to_owned(),
        kind: Kind::Lines,
        x: Axis::linear("time", "s"),
        y: Axis::linear(shown.y.0, shown.y.1),
        series,
    }
}
