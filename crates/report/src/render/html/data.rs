//! The points of a page's figures for its script.

use serde_json::{Map, Value, json};

use crate::figure::{Axis, Figure, Kind, Role};
use crate::render::markup::plain;
use crate::render::svg::{Plot, Size, Span};

/// Digits of a point: more than a picture shows.
const DIGITS: i32 = 6;

/// Figures by their ids.
pub(super) fn json<'f>(figures: impl Iterator<Item = (&'f Figure, &'f String)>) -> Value {
    Value::Object(figures.map(|(figure, id)| (id.clone(), one(figure))).collect::<Map<_, _>>())
}

fn one(figure: &Figure) -> Value {
    let plot = Plot::of(figure, Size::WIDE, 0.0);
    let kind = match figure.kind {
        Kind::Lines => "lines",
        Kind::Bars => "bars",
        Kind::Stacked => "stacked",
        Kind::Points => "points",
        Kind::Heat => "heat",
    };
    let series: Vec<Value> = figure
        .series
        .iter()
        .enumerate()
        .map(|(number, series)| {
            let points = plot.told(number);
            let mut told = json!({
                "name": plain(&series.name),
                "x": points.iter().map(|(x, _)| short(*x)).collect::<Vec<_>>(),
                "y": points.iter().map(|(_, y)| short(*y)).collect::<Vec<_>>(),
            });
            if series.role == Role::Guide {
                told["guide"] = json!(true);
            }
            if series.role == Role::Front {
                told["front"] = json!(true);
            }
            if figure.kind == Kind::Points && !series.notes.is_empty() {
                told["notes"] = series.notes.iter().map(|note| plain(note)).collect();
            }
            told
        })
        .collect();
    json!({ "kind": kind, "x": axis(&figure.x, &plot.x), "y": axis(&figure.y, &plot.y), "series": series })
}

fn axis(axis: &Axis, span: &Span) -> Value {
    let names: Vec<_> = axis.names.iter().map(|name| plain(name)).collect();
    json!({
        "label": plain(&axis.label), "unit": plain(&axis.unit), "names": names,
        "log": span.is_log(), "low": span.low, "high": span.high,
    })
}

/// A number with a few digits, nothing where there is none.
fn short(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value.fract() == 0.0 && value.abs() < 1e9 {
        return json!(value as i64);
    }
    let digits = usize::try_from(DIGITS - 1).unwrap_or(5);
    json!(format!("{value:.digits$e}").parse::<f64>().unwrap_or(value))
}
