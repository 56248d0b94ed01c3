//! Searches in reports and in words.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use wavetank_report::render::table::{framed, precise};

use super::fleet;
use crate::sweep::bound::Bound;
use crate::sweep::finished::Finished;
use crate::sweep::metric;
use crate::sweep::point::Point;
use crate::sweep::spec::Spec;

/// What a point is held against.
pub(super) struct Fate<'a> {
    pub(super) bounds: &'a [Bound],
    pub(super) prefer: usize,
}

/// A point of a proof: what it is, the numbers that decide, and what they say.
pub(super) fn proof_row(spec: &Spec, point: &Point, finished: &Finished, fate: &Fate<'_>) -> Value {
    let complaints: Vec<String> =
        fate.bounds.iter().filter_map(|bound| bound.complaint(&finished.metrics)).collect();
    let verdict = if complaints.is_empty() { "meets".to_owned() } else { complaints.join(", ") };
    let shown = fleet::shown(fate.bounds, fate.prefer);
    let metrics: Map<String, Value> = shown
        .into_iter()
        .filter_map(|at| Some((metric::name(at).to_owned(), metric::value(at, finished.metrics[at])?)))
        .collect();
    json!({
        "point": point.number,
        "parameters": parameters(spec, point),
        "metrics": metrics,
        "meets": complaints.is_empty(),
        "verdict": verdict,
    })
}

/// The values of a point by the names of their axes.
pub(super) fn parameters(spec: &Spec, point: &Point) -> Value {
    let named = spec.axes.iter().zip(&point.values).filter(|(_, value)| !value.is_null());
    Value::Object(named.map(|(axis, value)| (axis.name.clone(), value.clone())).collect())
}

/// `num_workers = 4, router_mode = kv_router`.
fn pairs(parameters: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let object = parameters.as_object().into_iter().flatten();
    object.map(|(name, value)| format!("{name} = {}", plain(value))).collect::<Vec<_>>().join(", ")
}

/// A search on standard output.
pub(crate) fn words(search: &Value) -> String {
    let (runs, grid) = (&search["runs"], &search["grid"]);
    let mut text = match (&search["answer"], search["goal"].as_str()) {
        (Value::Null, _) => "Search: no point meets the SLA".to_owned(),
        (answer, Some("smallest_fleet")) => {
            format!("Search: the smallest fleet is {}, {} GPUs", pairs(&answer["parameters"]), search["gpus"])
        }
        (answer, _) => {
            let metric = search["metric"].as_str().unwrap_or_default();
            let value = number(&answer["value"]);
            format!("Search: the best is {}: {metric} {value}", pairs(&answer["parameters"]))
        }
    };
    // Runs of a part of the trace are not to be counted like others.
    let work = search["whole_runs"]
        .as_f64()
        .map_or(String::new(), |whole| format!(", as much work as {} whole ones,", precise(whole)));
    let _ = writeln!(text, "; {runs} runs{work} where all points are {grid}");
    for answer in search["answers"].as_array().into_iter().flatten() {
        let found = match &answer["answer"] {
            Value::Null => "none meets the SLA".to_owned(),
            found => format!("{}, {} GPUs", pairs(&found["parameters"]), answer["gpus"]),
        };
        let _ = writeln!(text, "  with {}: {found}", pairs(&answer["fixed"]));
    }
    if let Some(rungs) = search["rungs"].as_array() {
        text += &rung_table(rungs);
    }
    if let Some(proof) = search["proof"].as_array().filter(|proof| !proof.is_empty()) {
        text += &proof_table(proof);
    }
    text
}

fn proof_table(proof: &[Value]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in proof {
        names.extend(row["metrics"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()));
    }
    names.sort_unstable();
    names.dedup();
    let columns: Vec<&str> =
        ["point", "what"].into_iter().chain(names.iter().copied()).chain(["verdict"]).collect();
    let mut table = framed(&columns);
    for row in proof {
        let mut cells = vec![row["point"].to_string(), pairs(&row["parameters"])];
        cells.extend(names.iter().map(|name| number(&row["metrics"][name])));
        let verdict = if row["meets"] == true { "meets the SLA" } else { "misses" };
        cells.push(verdict.to_owned());
        table.add_row(cells);
    }
    format!("{table}\n")
}

fn rung_table(rungs: &[Value]) -> String {
    let mut table = framed(&["rung", "of the trace", "seeds", "tried", "meet", "kept", "best"]);
    for (at, rung) in rungs.iter().enumerate() {
        let text = |key: &str| rung[key].as_str().map_or_else(|| number(&rung[key]), str::to_owned);
        let mut cells = vec![(at + 1).to_string()];
        cells.extend(["part", "seeds", "tried", "meet", "kept", "best"].map(text));
        table.add_row(cells);
    }
    format!("{table}\n")
}

fn number(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if value.is_f64() => precise(number),
        Some(_) => value.to_string(),
        None => "-".to_owned(),
    }
}
