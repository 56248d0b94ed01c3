//! Reports and results of benchmarks: compared with themselves, merged, and on a page.

use serde_json::Value;
use wavetank::{Missing, Run};
use wavetank_report::compare::{Comparison, Limits, Side};
use wavetank_report::page::page;
use wavetank_report::render::comparison::{self, Scope};
use wavetank_report::render::html;
use wavetank_study::residual::Residuals;
use wavetank_study::sweep;

use super::{Entry, inputs};
use crate::said::{Met, refused};
use crate::scratch::Scratch;
use crate::texts;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "results",
    about: "reports and results: compare, report, bench merge, bench residual, sweep merge",
    samples: &[
        "crates/report/tests/samples/results",
        "crates/report/tests/samples/pages",
        "crates/fuzz/samples/results",
    ],
    seeds: || inputs(&["{}", "{}{}", "[]", r#"{"plan": null, "warnings": ["<img src=x>"]}"#]),
    changed: texts::changed,
    check,
    most_memory: 512 << 20,
};

/// What a name would have to write to become more than a name, and how often a page has it itself.
const TAGS: [(&str, usize); 6] =
    [("<script", 2), ("</script", 2), ("<img", 0), ("<iframe", 0), ("<object", 0), ("<!--", 0)];

fn check(bytes: &[u8]) -> Met {
    let file = Scratch::of("a=b.json", bytes);
    let compared = compared(&file);
    let Ok(report) = serde_json::from_slice::<Value>(bytes) else { return compared };
    let ways = [shown(&report), merged(&file), held_against_itself(&file, &report), swept(&report)];
    match compared {
        Met::Read(way) => Met::Read(format!("{way} {ways:?}")),
        Met::Refused(way) if ways.iter().any(Option::is_some) => Met::Read(format!("{way} {ways:?}")),
        refused => refused,
    }
}

/// A result is no better and no worse than itself, whatever it says.
fn compared(file: &Scratch) -> Met {
    let side = match Side::read(file.path()) {
        Ok(side) => side,
        Err(error) => return refused(&error, &file.place()),
    };
    let Ok(comparison) = Comparison::of(&side, &side) else { return Met::Refused("nothing".to_owned()) };
    for row in &comparison.rows {
        assert!(row.change() == 0.0 || !row.change().is_finite(), "{row:?}");
    }
    let limits = Limits::parse(&[], &["5%".to_owned()]).expect("a limit");
    let judged = limits.judge(&comparison).map(|judged| comparison::failures(&judged).len());
    for scope in [Scope::All, Scope::Headline] {
        assert!(!comparison::table(&comparison, scope).is_empty());
        assert!(!comparison::markdown(&comparison, scope).is_empty());
    }
    let rows = comparison.rows.len().checked_ilog2();
    Met::Read(format!("{} {rows:?} {:?} {}", side.format(), judged.ok(), comparison.json().is_object()))
}

/// On a page names stay names, and the same report gives the same page.
fn shown(report: &Value) -> Option<String> {
    let run = |name: &str| Run { name: name.to_owned(), report: report.clone() };
    let page = page("<b>title", &[run("one"), run("<i>two")]).ok()?;
    let written = || {
        let mut text = Vec::new();
        html::write(&page, &mut text).expect("memory takes every byte");
        String::from_utf8(text).expect("a page is text")
    };
    let text = written();
    for (tag, count) in TAGS {
        assert_eq!(text.matches(tag).count(), count, "{tag}");
    }
    assert!(!text.contains("NaN") || report.to_string().contains("NaN"), "a number that is none");
    assert!(text == written(), "the same page");
    Some(format!("{} parts", page.sections.len()))
}

fn merged(file: &Scratch) -> Option<String> {
    let merged = wavetank::merge(&[file.path().to_owned()], Missing::Noted);
    merged.ok().map(|merged| format!("merged {}", merged.passed()))
}

/// As if it had been simulated, held against the same as if it had been real.
fn held_against_itself(file: &Scratch, report: &Value) -> Option<String> {
    let on = |clock: &str| {
        let mut report = report.clone();
        *report.pointer_mut("/summary/clock")? = clock.into();
        Some(report)
    };
    let (simulated, real) = (on("simulated")?, on("wall")?);
    let residuals = Residuals::of((file.path(), &simulated), &[(file.path(), real)]).ok()?;
    assert!(!residuals.table().is_empty());
    Some(format!("residuals {}", residuals.passed()))
}

fn swept(report: &Value) -> Option<String> {
    let swept = sweep::merge(&[("a.json".to_owned(), report.clone())]).ok()?;
    Some(format!("swept {}", swept.table().lines().count()))
}
