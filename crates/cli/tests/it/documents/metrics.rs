//! docs/metrics.md has every number of reports, tables and servers, and none that is not there.
//!
//! A name on the page may have a `*` in it: `*_ttft_ms` are all statistics of the time to first token.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::{Page, code};
use crate::mock::Mock;
use crate::sandbox::Sandbox;
use crate::serve_client::Server;
use crate::validate;

const PAGE: &str = "docs/metrics.md";
/// Parts of reports whose keys are no metrics: what was asked for, and what is listed by names of metrics.
const NO_METRICS: [&str; 5] = ["plan", "histograms", "agreement_by_number", "curves", "heat"];
/// A suite of seconds that takes longer hangs.
const SUITE_LIMIT: Duration = Duration::from_secs(180);
/// A name with this much besides `*` says what it stands for.
const LITERAL: usize = 4;

/// The numbers of a loop; the test that goes round holds them against its report.
const LOOP: [&str; 19] = [
    "absent",
    "deleted",
    "error",
    "failed",
    "given_up",
    "hits",
    "latest_start_ms",
    "left_out",
    "measured_count",
    "measured_ms",
    "misses",
    "played",
    "read_bytes",
    "refused",
    "seconds",
    "simulated_count",
    "simulated_ms",
    "written",
    "written_bytes",
];

/// What prints numbers, and the names it has for them.
struct Source {
    what: &'static str,
    names: BTreeSet<String>,
    /// Rows and columns of its tables.
    labels: BTreeSet<String>,
}

/// Broken by: a metric that came, went or was renamed without a word on the page.
#[test]
fn every_metric_is_on_the_page_and_nothing_else() {
    let page = Page::of(PAGE);
    let cells = page.rows().into_iter().flat_map(|row| row.into_iter().take(2));
    let listed: BTreeSet<&str> = cells.flat_map(code).filter(|name| is_name(name)).collect();
    let sources = [replay(), bench(), suite(), serve(), mock(), validated(), looped()];
    for Source { what, names, labels } in &sources {
        assert!(names.len() > 10, "{what}: {names:?}");
        let missing: Vec<&String> =
            names.iter().filter(|name| !listed.iter().any(|pattern| matches(pattern, name))).collect();
        assert!(missing.is_empty(), "{what}: {missing:?} are not in a table of {PAGE}");
        let missing: Vec<&String> = labels.iter().filter(|label| !page.text.contains(*label)).collect();
        assert!(missing.is_empty(), "{what}: rows or columns {missing:?} are not on {PAGE}");
    }
    let is_real =
        |pattern: &&&str| sources.iter().flat_map(|it| &it.names).any(|name| matches(pattern, name));
    let stale: Vec<&&str> = listed.iter().filter(|pattern| !is_real(pattern)).collect();
    assert!(stale.is_empty(), "{PAGE} has {stale:?}, which nothing prints");
}

/// Whether what stands in backquotes is the name of a number.
fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_*:".contains(c))
}

/// Whether a name is meant, by itself or with any text for each `*`.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let literal = pattern.chars().filter(|c| *c != '*').count();
    let Some(mut name) = name.strip_prefix(first).filter(|_| literal >= LITERAL) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part).filter(|at| *at > 0) else { return false };
        name = &name[at + part.len()..];
    }
    name.len() > last.len() && name.ends_with(last)
}

/// Every key of a report that has a number, a list of them, or a place for one.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        Value::Object(items) => {
            for (key, value) in items.iter().filter(|(key, _)| !NO_METRICS.contains(&key.as_str())) {
                found.extend(is_number(value).then(|| key.clone()));
                keys(value, found);
            }
        }
        _ => {}
    }
}

fn is_number(value: &Value) -> bool {
    match value {
        Value::Number(_) | Value::Bool(_) | Value::Null => true,
        Value::Array(items) => items.first().is_some_and(Value::is_number),
        Value::String(_) | Value::Object(_) => false,
    }
}

/// First cells of rows and all cells of headings, without units.
fn labels(printed: &str) -> BTreeSet<String> {
    let cells = printed.lines().flat_map(|line| match line.chars().next() {
        Some('│') => line.split('│').skip(1).take(1).collect::<Vec<_>>(),
        Some('┃') => line.split('┃').collect(),
        _ => Vec::new(),
    });
    let names = cells.map(|cell| cell.split(" (").next().unwrap_or_default().trim().to_owned());
    // Names of metrics are looked for as such.
    names.filter(|name| !name.is_empty() && !name.contains('_')).collect()
}

/// A source of which commands print tables and write `r.json`, one after the other.
fn reports(what: &'static str, sandbox: &Sandbox, lines: &[&str]) -> Source {
    let (mut names, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for line in lines {
        let run = sandbox.run(line);
        assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
        seen.extend(labels(&run.stdout));
        keys(&sandbox.report("r.json").json(), &mut names);
    }
    Source { what, names, labels: seen }
}

fn replay() -> Source {
    let tiers = "replay examples/conversation.jsonl --num-workers 2 --tier cpu=1GiB:32GB/s --sla-ttft-ms 100 \
        --report-json r.json --extra-engine-args {\"num_gpu_blocks\":400,\"kv_bytes_per_token\":8192}";
    let scaled = "replay examples/conversation.jsonl --autoscale load --report-json r.json \
        --autoscale-config {\"max\":4,\"busy_up\":0.9,\"busy_down\":0.4}";
    let measured = "replay examples/conversation.jsonl --timing grid:llama31-8b-h200-tp1-bf16 --seeds 2 \
        --report-json r.json";
    let advised = "replay examples/single_turn.jsonl --advise --price gpu_hour=2.5 --report-json r.json";
    let live = "replay --input-tokens 64 --output-tokens 4 --request-count 5 --replay-mode online \
        --report-json r.json";
    let runs = [tiers, scaled, measured, advised, live];
    let mut source = reports("replay", &Sandbox::with_examples(), &runs);
    // What advice tries is another thing for every plan.
    source.labels.retain(|label| !label.ends_with("worker") && !label.ends_with("worker more"));
    source
}

fn bench() -> Source {
    let medium = r#"{"name":"queued","gbps":2}"#;
    let line = format!(
        "bench --model tiny-1b --num-users 8 --duration 5 --generation-mode none --gpu-mem-gb 0.2 \
         --gpu-tier sim --cpu-mem-gb 0.2 --storage-capacity-gb 2 --enable-rag --simulate gpu={medium} \
         --simulate cpu={medium} --simulate disk={medium} --output r.json"
    );
    let logged = "bench --model tiny-1b --num-users 8 --duration 5 --gpu-mem-gb 0 --cpu-mem-gb 0.2 \
        --generation-mode fast --io-trace-log operations.csv --output r.json";
    reports("bench", &Sandbox::on_disk(), &[&line, logged])
}

fn suite() -> Source {
    let sandbox = Sandbox::on_disk();
    sandbox.write("cache/other", "");
    let line =
        "bench suite --quick --gpu-tier sim --only cpu-storage,autoscale --cache-dir cache --output out";
    let run = sandbox.start(line, Stdio::null()).finish(SUITE_LIMIT);
    assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
    let summary = sandbox.report("out/summary.json").json();
    let mut names = BTreeSet::new();
    keys(&summary["scenarios"], &mut names);
    // On a busy machine a scenario may have served nothing: its percentiles are then one `null`.
    names.retain(|name| !["end_to_end_ms", "queue_wait_ms"].contains(&name.as_str()));
    let mut labels = labels(&run.stdout);
    labels.retain(|label| label != "autoscale" && label != "cpu-storage");
    Source { what: "bench suite", names, labels }
}

/// The names of a text of metrics.
fn exposed(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|rest| rest.split(' ').next()).map(str::to_owned).collect()
}

fn serve() -> Source {
    let sandbox = Sandbox::on_disk();
    let flags = "--l1-size-gb 0.05 --l2 direct:tier:1GiB --enable-tracing --otlp-file spans.jsonl \
        --trace-output calls.lct";
    std::fs::create_dir(sandbox.path("tier")).expect("a folder");
    let server = Server::start(&sandbox, flags);
    Source { what: "serve", names: exposed(&server.get("/metrics").text()), labels: BTreeSet::new() }
}

fn mock() -> Source {
    Source { what: "mock", names: exposed(&Mock::start("").get("/metrics")), labels: BTreeSet::new() }
}

fn validated() -> Source {
    reports("validate", &validate::measured(), &["validate d --report-json r.json"])
}

/// What a loop is known to report; going round takes a device.
fn looped() -> Source {
    let names = LOOP.iter().map(|name| (*name).to_owned()).collect();
    Source { what: "loop", names, labels: BTreeSet::new() }
}

/// Whether every number of a loop, and every row and column that it printed, is known.
pub(super) fn explains_loop(report: &Value, printed: &str) {
    let mut names = BTreeSet::new();
    for part in ["operations", "played", "residuals"] {
        keys(&report[part], &mut names);
    }
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), LOOP);
    let page = Page::of(PAGE);
    let missing: Vec<String> = labels(printed).into_iter().filter(|it| !page.text.contains(it)).collect();
    assert!(missing.is_empty(), "loop: rows or columns {missing:?} are not on {PAGE}");
}

#[test]
fn names_with_stars_stand_for_more() {
    assert!(matches("*_ttft_ms", "p99_ttft_ms") && matches("tier_*_read_*", "tier_cpu_read_x"));
    assert!(!matches("*_ttft_ms", "ttft_ms") && !matches("*", "anything") && !matches("a_*", "b_c"));
    assert!(matches("plain", "plain") && !matches("plain", "plainer"));
}
