//! What is on a page; a browser reads it in the command's tests.

use super::*;
use crate::figure::{Axis, Figure, Kind, Series};
use crate::page::{Cell, Section, Table};

const HOSTILE: &str = "</script><script>alert(1)</script>\"><img src=x onerror=alert(1)>\u{202e}";

fn page(name: &str) -> Page {
    let figure = Figure {
        id: format!("ttft {name}"),
        title: name.to_owned(),
        about: name.to_owned(),
        kind: Kind::Points,
        x: Axis::linear(name, name),
        y: Axis::names(name, vec![name.to_owned()]),
        series: vec![Series { notes: vec![name.to_owned()], ..Series::of(name, vec![(1.0, 2.0)]) }],
    };
    let table = Table {
        title: name.to_owned(),
        columns: vec![name.to_owned(), "ms".to_owned()],
        rows: vec![vec![Cell::Text(name.to_owned()), Cell::Number(12_031.5)]],
        of_figure: Some(figure.id.clone()),
    };
    let head = Head {
        name: name.to_owned(),
        kind: "replay",
        warnings: vec![name.to_owned()],
        plan: serde_json::json!({ name: name }),
    };
    let section = Section { title: name.to_owned(), tables: vec![table], figures: vec![figure] };
    Page { title: name.to_owned(), runs: vec![head], sections: vec![section] }
}

fn text(page: &Page) -> String {
    let mut out = Vec::new();
    write(page, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Broken by: one place that is not escaped.
#[test]
fn names_stay_names() {
    let (plain, hostile) = (text(&page("plain")), text(&page(HOSTILE)));
    let tags = |text: &str| text.matches("<script").count() + text.matches("<img").count();
    assert_eq!(tags(&hostile), tags(&plain));
    assert_eq!(tags(&plain), 2);
    assert!(!hostile.contains('\u{202e}'));
}

#[test]
fn the_same_page_is_the_same_file_and_names_nobody() {
    let text_of = || text(&page("run"));
    assert_eq!(text_of(), text_of());
    let page = text_of();
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http:") && !outside.contains("https:") && !outside.contains("url("));
    assert!(page.contains("<td class=\"n\">12,031.5</td>"), "{page}");
    assert!(page.contains("<table data-of=\"ttft-run\">") && page.contains("id=\"ttft-run\""));
}

/// Broken by: a page without a place for what runs warn of, or for their plans.
#[test]
fn warnings_come_first_and_plans_last() {
    let page = text(&page("run"));
    let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("no {what}"));
    assert!(at("class=\"warnings\"") < at("<table") && at("<table") < at("The plan of run"));
}
