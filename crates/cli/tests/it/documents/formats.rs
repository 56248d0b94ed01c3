//! docs/formats.md has every top-level field of what is written as JSON.

use serde_json::Value;

use super::{Page, code};
use crate::sandbox::Sandbox;
use crate::validate;

const PAGE: &str = "docs/formats.md";
const MEDIUM: &str = r#"{"name":"queued","gbps":2}"#;
const CALLS: &str = "bench --model tiny-1b --num-users 4 --duration 2 --gpu-mem-gb 0 --cpu-mem-gb 0.2 \
    --generation-mode fast --io-trace-log o.csv --trace-output calls.lct --output r.json";

/// Broken by: a field that came without a word on the page.
#[test]
fn every_field_is_on_the_page() {
    let page = Page::of(PAGE);
    let said = said(&page);
    let replay = "replay examples/conversation.jsonl --num-workers 2";
    let tiers =
        r#"--tier cpu=1GiB:32GB/s --extra-engine-args {"num_gpu_blocks":400,"kv_bytes_per_token":8192}"#;
    let examples = Sandbox::with_examples();
    examples
        .write("s.toml", "[base]\ntrace = \"examples/single_turn.jsonl\"\n[axes]\nnum_workers = [1, 2]\n");
    let search = "[sla]\np99_ttft_ms = 1e9\n[search]\ngoal = \"smallest_fleet\"\n";
    examples.write("f.toml", examples.read("s.toml") + search);
    let simulated = format!(
        "bench --model tiny-1b --num-users 4 --duration 2 --gpu-mem-gb 0 --cpu-mem-gb 0.2 \
         --storage-capacity-gb 1 --generation-mode none --simulate cpu={MEDIUM} --simulate disk={MEDIUM} \
         --output r.json"
    );
    let measured = validate::measured();
    let runs: [(&Sandbox, String); 9] = [
        (&examples, format!("{replay} --sla-ttft-ms 9 --advise --report-json r.json {tiers}")),
        (
            &examples,
            format!("{replay} --autoscale load --timing grid:llama31-8b-h200-tp1-bf16 --report-json r.json"),
        ),
        (&examples, format!("{replay} --seeds 2 --report-json r.json")),
        (&examples, "sweep s.toml -o r.json".to_owned()),
        (&examples, "sweep f.toml -o r.json".to_owned()),
        (&examples, simulated),
        (&examples, CALLS.to_owned()),
        (&examples, "trace replay calls.lct --output r.json".to_owned()),
        (&measured, "validate d --report-json r.json".to_owned()),
    ];
    for (sandbox, line) in &runs {
        let run = sandbox.run(line);
        assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
        check(&sandbox.report("r.json").json(), &said, line);
    }
}

/// Whether every field of a report is on the page.
pub(super) fn explains(report: &Value, what: &str) {
    let page = Page::of(PAGE);
    check(report, &said(&page), what);
}

/// What stands in backquotes in its tables.
fn said(page: &Page) -> Vec<&str> {
    page.rows().into_iter().flatten().flat_map(code).collect()
}

fn check(report: &Value, said: &[&str], what: &str) {
    let fields = report.as_object().expect("a report is an object").keys();
    let is_said = |field: &&String| !said.iter().any(|pattern| means(pattern, field));
    let missing: Vec<&String> = fields.filter(is_said).collect();
    assert!(missing.is_empty(), "{what}: {missing:?} are not in a table of {PAGE}");
}

/// Whether a name is meant; `*_ttft_ms` is every name that ends so.
fn means(pattern: &str, field: &str) -> bool {
    pattern.strip_prefix('*').map_or(pattern == field, |end| field.ends_with(end))
}
