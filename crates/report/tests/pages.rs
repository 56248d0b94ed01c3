//! Every kind of page with every name in its report turned into one that would like to be more.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use serde_json::Value;
use wavetank_report::page::{self, Run};
use wavetank_report::render::html;

const HOSTILE: &str = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)><!--\u{202e}";

fn samples() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/pages");
    let paths = fs::read_dir(folder).expect("samples").map(|entry| entry.expect("a file").path());
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON"))
    };
    let mut samples: Vec<(String, Value)> = paths.map(read).collect();
    samples.sort_by(|one, other| one.0.cmp(&other.0));
    samples
}

/// A page of two runs; none where it is no report any more.
fn shown(name: &str, report: &Value) -> Option<String> {
    let run = |name: &str| Run { name: name.to_owned(), report: report.clone() };
    let page = page::page(name, &[run(name), run(&format!("{name} again"))]).ok()?;
    let mut text = Vec::new();
    html::write(&page, &mut text).expect("memory takes every byte");
    Some(String::from_utf8(text).expect("a page is text"))
}

/// What a browser would take for more than text.
fn tags(page: &str) -> [usize; 4] {
    ["<script", "</script", "<img", "<!--"].map(|tag| page.matches(tag).count())
}

/// How many texts and names of fields there are in a value.
fn count(value: &Value) -> usize {
    match value {
        Value::String(_) => 1,
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(|value| 1 + count(value)).sum(),
        _ => 0,
    }
}

/// The text, or what it becomes if it is the one that is counted down to.
fn spelled<'t>(text: &'t str, left: &mut usize) -> &'t str {
    *left = left.wrapping_sub(1);
    if *left == usize::MAX { HOSTILE } else { text }
}

/// The value with its text or name number `left` changed.
fn changed(value: &Value, left: &mut usize) -> Value {
    match value {
        Value::String(text) => Value::from(spelled(text, left)),
        Value::Array(items) => Value::Array(items.iter().map(|item| changed(item, left)).collect()),
        Value::Object(fields) => {
            let mut all = serde_json::Map::new();
            for (name, value) in fields {
                all.insert(spelled(name, left).to_owned(), changed(value, left));
            }
            Value::Object(all)
        }
        other => other.clone(),
    }
}

/// Broken by: one place of one page that is not escaped, or a kind of page without a sample.
#[test]
fn names_stay_names_on_every_page() {
    let samples = samples();
    let kind = |report: &Value| page::ALL.iter().position(|entry| (entry.is)(report)).unwrap();
    let mut kinds: Vec<usize> = samples.iter().map(|(_, report)| kind(report)).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, (0..page::ALL.len()).collect::<Vec<_>>(), "a sample of each kind");
    for (name, report) in &samples {
        let plain = shown(name, report).unwrap();
        assert_eq!(tags(&plain), [2, 2, 0, 0], "{name}");
        assert_eq!(tags(&shown(HOSTILE, report).unwrap()), [2, 2, 0, 0], "{name}");
        for number in 0..count(report) {
            let mut left = number;
            let hostile = changed(report, &mut left);
            let Some(page) = shown(name, &hostile) else { continue };
            assert_eq!(tags(&page), [2, 2, 0, 0], "{name}: text {number}");
            assert!(!page.contains('\u{202e}'), "{name}: text {number} turns the page round");
        }
    }
}
