//! Pictures are well-formed whatever is in them.

use proptest::prelude::*;
use resvg::usvg::roxmltree::{Document, Node};

use super::*;
use crate::figure::{Axis, Kind, Role, Scale, Series};
use crate::render::png;

fn figure(kind: Kind, series: Vec<Series>) -> Figure {
    Figure {
        id: "ttft".to_owned(),
        title: "Time to first token".to_owned(),
        about: "What users waited for.".to_owned(),
        kind,
        x: Axis::linear("at", "s"),
        y: Axis::linear("time", "ms"),
        series,
    }
}

fn paths(svg: &str, class: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let is = |node: &Node<'_, '_>| {
        node.tag_name().name() == "path"
            && node.attribute("class").is_some_and(|classes| classes.split(' ').any(|name| name == class))
    };
    let d = |node: Node<'_, '_>| node.attribute("d").unwrap().to_owned();
    document.descendants().filter(is).map(d).collect()
}

#[test]
fn a_small_picture_is_as_it_was() {
    let series = Series::of("P99", vec![(0.0, 10.0), (1.0, 30.0), (2.0, f64::NAN), (3.0, 20.0)]);
    let svg = file(&figure(Kind::Lines, vec![series]));
    let body: String = svg.split_inclusive('\n').filter(|line| !line.contains('{')).collect();
    insta::assert_snapshot!(body);
}

/// Broken by: a line drawn through what is no number.
#[test]
fn a_line_has_gaps() {
    let points = vec![
        (0.0, 1.0),
        (1.0, 2.0),
        (2.0, f64::NAN),
        (3.0, 2.0),
        (4.0, f64::INFINITY),
        (5.0, 1.0),
        (6.0, 1.0),
    ];
    let d = paths(&file(&figure(Kind::Lines, vec![Series::of("a", points)])), "s1").remove(1);
    assert_eq!(d.matches('M').count(), 3, "{d}");
    assert_eq!(d.matches("h.01").count(), 1, "{d}");
}

/// Broken by: bars that stand on the axis, not on each other.
#[test]
fn stacked_bars_stand_on_each_other() {
    let bars = |name: &str, y| Series::of(name, vec![(0.0, y), (1.0, y)]);
    let svg = file(&figure(Kind::Stacked, vec![bars("a", 30.0), bars("b", 10.0)]));
    let first = |class: &str| paths(&svg, class).pop().unwrap().split('z').next().unwrap().to_owned();
    let (low, high) = (first("f1"), first("f2"));
    let top = low.split('V').nth(1).unwrap().split('h').next().unwrap();
    let foot = high.split(' ').nth(1).unwrap().split('h').next().unwrap();
    assert_eq!(top, foot, "{low} {high}");
}

#[test]
fn a_long_series_is_drawn_by_its_extremes_and_says_so() {
    let points = (0..100_000).map(|at| (f64::from(at), f64::from(at % 977))).collect();
    let svg = file(&figure(Kind::Lines, vec![Series::of("a", points)]));
    assert!(svg.len() < 40_000, "{}", svg.len());
    assert!(svg.contains("points are drawn: the lowest and the highest"), "{svg:.900}");
}

/// Broken by: a front whose points are counted twice.
#[test]
fn points_of_a_front_are_counted_once() {
    let points = vec![(1.0, 1.0), (1.0, 1.0), (2.0, 3.0)];
    let front = Series { role: Role::Front, ..Series::of("front", vec![(1.0, 1.0)]) };
    let svg = file(&figure(Kind::Points, vec![Series::of("a", points), front]));
    assert!(svg.contains("2 of 3 points are drawn: one for each pixel"), "{svg:.900}");
}

#[test]
fn names_stay_names() {
    let name = "</script>\"><img src=x onerror=alert(1)>\u{202e}\u{1}";
    let mut hostile = figure(Kind::Points, vec![Series::of(name, vec![(1.0, 1.0)])]);
    hostile.title = name.to_owned();
    hostile.about = name.to_owned();
    hostile.id = name.to_owned();
    hostile.x = Axis::names(name, vec![name.to_owned(); 3]);
    let svg = file(&hostile);
    let document = Document::parse(&svg).unwrap();
    assert!(document.descendants().all(|node| !["img", "script"].contains(&node.tag_name().name())));
    assert!(!svg.contains('\u{202e}') && !svg.contains('\u{1}'));
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -1e4..1e4,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::MAX, f64::MIN, 1e-310]),
    ]
}

fn series() -> impl Strategy<Value = Series> {
    let role = prop::sample::select(vec![Role::Plain, Role::Front, Role::Guide]);
    (any::<String>(), prop::collection::vec((number(), number()), 0..40), role)
        .prop_map(|(name, points, role)| Series { role, ..Series::of(name, points) })
}

fn axis() -> impl Strategy<Value = Axis> {
    let scale = prop::sample::select(vec![Scale::Linear, Scale::Log]);
    (any::<String>(), any::<String>(), scale, prop::collection::vec(any::<String>(), 0..5))
        .prop_map(|(label, unit, scale, names)| Axis { label, unit, scale, names })
}

fn any_figure() -> impl Strategy<Value = Figure> {
    let kinds = vec![Kind::Lines, Kind::Bars, Kind::Stacked, Kind::Points, Kind::Heat];
    let words = [any::<String>(), any::<String>(), any::<String>()];
    (words, prop::sample::select(kinds), axis(), axis(), prop::collection::vec(series(), 0..12))
        .prop_map(|([id, title, about], kind, x, y, series)| Figure { id, title, about, kind, x, y, series })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Broken by: text that is not escaped, a number in a path that is none, a place outside the picture.
    #[test]
    fn every_figure_is_a_picture(figure in any_figure()) {
        for svg in [file(&figure), inline(&Plot::of(&figure, Size::NARROW, 0.0), "narrow", ["t", "d"])] {
            let broken = |error| TestCaseError::fail(format!("{error}: {svg}"));
            let document = Document::parse(&svg).map_err(broken)?;
            for node in document.descendants() {
                let places = ["d", "x", "y", "transform"];
                for attribute in node.attributes().filter(|it| places.contains(&it.name())) {
                    let text = attribute.value();
                    prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{}", text);
                    let numbers = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
                    for number in numbers.filter(|number| !number.is_empty()) {
                        let size: f64 = number.parse().map_err(|_| TestCaseError::fail(text.to_owned()))?;
                        prop_assert!(size <= 2000.0, "{}", text);
                    }
                }
            }
        }
        prop_assert!(png::tree(&light_file(&figure)).is_ok());
        prop_assert_eq!(file(&figure), file(&figure));
    }
}
