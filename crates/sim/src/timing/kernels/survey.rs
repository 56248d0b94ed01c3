//! What the tables of a kernel profile hold, and how sure they are.

use std::collections::BTreeMap;

use serde_json::Value;
use wavetank_model::Result;

use super::attention::Attention;
use super::{Source, expert_rows, skew};
use crate::survey::{Axis, Survey};
use crate::timing::Parameters;

/// The tables of a built-in profile, or of a folder. Errors are fractions of the value itself.
pub fn kernel_survey(place: &str) -> Result<Vec<Survey>> {
    let parameters = Parameters::from_iter([("profile".to_owned(), Value::from(place))]);
    let source = Source::of(&parameters)?;
    let mut surveys = Vec::from(Attention::read(&source.table("attention")?)?.survey());
    let dense = source.table("dense")?.by_layer("tokens")?;
    surveys.extend(dense.values().map(|points| of_steps(points)).reduce(Survey::and));
    surveys.extend(of_layers(
        "per sequence",
        "sequences",
        &source.table("per_sequence")?.by_layer("sequences")?,
    ));
    let batches = skew(&source.table("skew")?)?;
    let (points, parts): (Vec<u32>, Vec<Option<f64>>) =
        batches.into_iter().map(|(batch, part)| (batch, Some(part))).unzip();
    // A share of the way, not a time: it has no error of its own.
    let skewed = Survey::of("skew", vec![Axis::of("requests", &points)], &parts);
    surveys.push(Survey { errors: Vec::new(), ..skewed });
    if source.has("moe") {
        surveys.extend(of_experts(&expert_rows(&source.table("moe")?)?));
    }
    Ok(surveys)
}

fn of_points(table: &'static str, axis: &'static str, points: &[(u32, f64)]) -> Survey {
    let (points, values): (Vec<u32>, Vec<Option<f64>>) =
        points.iter().map(|&(at, us)| (at, Some(us))).unzip();
    Survey::of(table, vec![Axis::of(axis, &points)], &values)
}

/// Dense layers: a point that is left out takes the time of the next one.
fn of_steps(points: &[(u32, f64)]) -> Survey {
    let survey = of_points("dense", "tokens", points);
    let error = |pair: &[(u32, f64)]| (pair[0].1 > 0.0).then(|| (pair[1].1 / pair[0].1 - 1.0).abs());
    let mut errors: Vec<f64> = points.windows(2).filter_map(error).collect();
    errors.sort_by(f64::total_cmp);
    Survey { errors, ..survey }
}

fn of_layers(
    table: &'static str,
    axis: &'static str,
    layers: &BTreeMap<String, Vec<(u32, f64)>>,
) -> Option<Survey> {
    layers.values().map(|points| of_points(table, axis, points)).reduce(Survey::and)
}

/// Experts: left out along the experts in use only, since every token count has its own.
fn of_experts(rows: &[(u32, Vec<(u32, f64)>)]) -> Option<Survey> {
    let surveys = rows.iter().map(|(_, points)| of_points("experts", "experts in use", points));
    let mut survey = surveys.reduce(Survey::and)?;
    let tokens: Vec<u32> = rows.iter().map(|(tokens, _)| *tokens).collect();
    survey.axes.insert(0, Axis::of("tokens", &tokens));
    Some(survey)
}
