//! A simulated run as spans and as slices.
//!
//! Breaks when a request is missing or twice, a span lies outside of its parent, a number differs from the
//! report's, slices do not nest, or two runs of one plan differ.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use insta::assert_snapshot;
use serde_json::Value;

use crate::report::Report;
use crate::sandbox::{GOOD_ROW, Sandbox, examples};

const PAIR: &str = r#"--router-mode kv_router --num-decode-workers 2 --kv-link-gbps 20 --kv-link-scope pool
    --prefill-engine-args {"worker_type":"prefill","model":"Qwen3-8B","num_gpu_blocks":2000}
    --decode-engine-args {"worker_type":"decode","num_gpu_blocks":2000}"#;
const PAIR_SGLANG: &str = r#"--router-mode kv_router --num-prefill-workers 2
    --prefill-engine-args {"engine_type":"sglang","worker_type":"prefill"}
    --decode-engine-args {"engine_type":"sglang","worker_type":"decode"}"#;
/// Preemptions.
const TIGHT: &str = r#"--num-workers 2 --extra-engine-args {"num_gpu_blocks":300,"block_size":64}"#;

/// One span, without OTLP's wrapping.
struct Span {
    name: String,
    trace: String,
    id: String,
    parent: Option<String>,
    times: (u64, u64),
    attributes: BTreeMap<String, Value>,
    failure: Option<String>,
}

impl Span {
    fn of(json: &Value) -> Self {
        let text = |key: &str| json[key].as_str().map(str::to_owned);
        let time = |key: &str| json[key].as_str().expect("text").parse::<u64>().expect("a number");
        let attribute = |pair: &Value| {
            let (kind, value) = pair["value"].as_object().and_then(|value| value.iter().next()).expect("one");
            let value = match kind.as_str() {
                "intValue" => value.as_str().expect("text").parse::<i64>().expect("a number").into(),
                _ => value.clone(),
            };
            (pair["key"].as_str().expect("a name").to_owned(), value)
        };
        Self {
            name: text("name").expect("a name"),
            trace: text("traceId").filter(|id| id.len() == 32).expect("32 digits"),
            id: text("spanId").filter(|id| id.len() == 16).expect("16 digits"),
            parent: text("parentSpanId"),
            times: (time("startTimeUnixNano"), time("endTimeUnixNano")),
            attributes: json["attributes"].as_array().expect("a list").iter().map(attribute).collect(),
            failure: json["status"]["message"].as_str().map(str::to_owned),
        }
    }

    fn int(&self, name: &str) -> u64 {
        self.attributes[name].as_u64().unwrap_or_else(|| panic!("{name}: {:?}", self.attributes))
    }
}

fn spans(text: &str) -> Vec<Span> {
    let of_line = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let scopes = line["resourceSpans"][0]["scopeSpans"].as_array().expect("a list").clone();
        scopes.into_iter().flat_map(|scope| scope["spans"].as_array().expect("a list").clone()).collect()
    };
    text.lines().flat_map(|line| -> Vec<Value> { of_line(line) }).map(|span| Span::of(&span)).collect()
}

/// Every root, after its children were found inside of it.
fn roots(spans: &[Span]) -> Vec<&Span> {
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "ids are distinct");
    let roots: BTreeMap<&str, &Span> =
        spans.iter().filter(|span| span.parent.is_none()).map(|root| (root.id.as_str(), root)).collect();
    let traces: BTreeSet<&str> = roots.values().map(|root| root.trace.as_str()).collect();
    assert_eq!(traces.len(), roots.len(), "a trace per request");
    for child in spans.iter().filter(|span| span.parent.is_some()) {
        let root = roots[child.parent.as_deref().expect("filtered")];
        assert_eq!(child.trace, root.trace);
        let is_inside = root.times.0 <= child.times.0 && child.times.1 <= root.times.1;
        assert!(
            is_inside && child.times.0 <= child.times.1,
            "{} {:?} {:?}",
            child.name,
            child.times,
            root.times
        );
    }
    roots.into_values().collect()
}

/// Numbers of spans that the report has too.
fn agree(spans: &[Span], report: &Report, line: &str) {
    let roots = roots(spans);
    let is_unfinished = |root: &&&Span| root.attributes.contains_key("unfinished");
    let unfinished = roots.iter().filter(is_unfinished).count() as u64;
    let rejected = roots.iter().filter(|root| root.failure.is_some()).count() as u64;
    assert_eq!(roots.len() as u64, report.count("/counts/arrived"), "{line}");
    assert_eq!(unfinished, report.count("/counts/in_flight"), "{line}");
    let ended: Vec<&&Span> =
        roots.iter().filter(|root| !is_unfinished(root) && root.failure.is_none()).collect();
    assert_eq!(ended.len() as u64, report.count("/completed_requests"), "{line}");
    assert_eq!(roots.len() as u64, unfinished + rejected + ended.len() as u64);
    let sum = |name: &str| ended.iter().map(|root| root.int(name)).sum::<u64>();
    assert_eq!(sum("requested_tokens"), report.count("/total_input_tokens"), "{line}");
    assert_eq!(sum("output_tokens"), report.count("/total_output_tokens"), "{line}");
    let json = report.json();
    let close = |key: &str, ours: f64| {
        let theirs = json[key].as_f64().unwrap_or_else(|| panic!("{key}"));
        assert!((ours - theirs).abs() <= 1e-6 * theirs.abs().max(1.0), "{line} {key}: {ours} {theirs}");
    };
    let (hit, asked) = (sum("hit_tokens") as f64, sum("requested_tokens") as f64);
    close("first_admission_prefix_cache_reused_ratio", hit / asked);
    close("mean_ttft_ms", sum("ttft_ns") as f64 / 1e6 / ended.len() as f64);
    let lasted: u64 = ended.iter().map(|root| root.times.1 - root.times.0).sum();
    close("mean_e2e_latency_ms", lasted as f64 / 1e6 / ended.len() as f64);
    for root in &ended {
        let rate = root.int("hit_tokens") as f64 / root.int("requested_tokens") as f64;
        let told = root.attributes["hit_rate"].as_f64().expect("a double");
        assert!((told - rate).abs() < 1e-12, "{told} {rate}");
    }
    let preempted = roots.iter().map(|root| root.int("preemptions")).sum::<u64>();
    assert_eq!(preempted, report.count("/counts/preemptions"), "{line}");
}

/// Slices nest, phases follow each other, counts are never negative and end with what is in flight.
fn drawn(text: &str, spans: &[Span], line: &str) {
    let trace: Value = serde_json::from_str(text).expect("JSON");
    let mut events: Vec<&Value> = trace["traceEvents"].as_array().expect("a list").iter().collect();
    let time = |event: &Value| event["ts"].as_f64().unwrap_or(0.0);
    events.sort_by(|one, other| time(one).total_cmp(&time(other)));
    let mut open: BTreeMap<(u64, &str), Vec<&str>> = BTreeMap::new();
    let mut load: BTreeMap<u64, (i64, i64)> = BTreeMap::new();
    let (mut named, mut seen, mut drawn) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for event in events {
        let pid = event["pid"].as_u64().expect("a process");
        let name = event["name"].as_str().expect("a name");
        let track = || (pid, event["id2"]["local"].as_str().expect("an id"));
        match event["ph"].as_str().expect("a phase") {
            "M" => {
                named.insert(pid);
            }
            "C" => {
                let count = |key: &str| event["args"][key].as_i64().expect("a number");
                let now = (count("running"), count("waiting"));
                assert!(now.0 >= 0 && now.1 >= 0, "{line}: {event}");
                load.insert(pid, now);
            }
            "b" => {
                let stack = open.entry(track()).or_default();
                assert_eq!(stack.is_empty(), name == "request", "{line}: {event}");
                assert!(stack.len() < 2, "{line}: {event}");
                stack.push(name);
                seen.insert(pid);
                if name == "request" {
                    drawn.insert(event["args"]["request"].as_u64().expect("its number"));
                }
            }
            "e" => assert_eq!(open.get_mut(&track()).and_then(Vec::pop), Some(name), "{line}: {event}"),
            other => panic!("{other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "{line}");
    assert_eq!(seen, named, "{line}");
    let admitted =
        spans.iter().filter(|span| span.parent.is_none() && span.attributes.contains_key("hit_rate"));
    assert!(admitted.map(|root| root.int("request")).all(|number| drawn.contains(&number)), "{line}");
    let all = spans.iter().filter(|span| span.parent.is_none());
    if all.clone().all(|root| !root.attributes.contains_key("unfinished")) {
        assert!(load.values().all(|left| *left == (0, 0)), "{line}: {load:?}");
    }
}

#[test]
fn traces_say_what_the_report_says() {
    let sandbox = Sandbox::with_examples();
    for example in examples() {
        for flags in [
            "--num-workers 3",
            "--replay-concurrency 8",
            TIGHT,
            PAIR,
            PAIR_SGLANG,
            "--max-sim-time-seconds 20",
        ] {
            let line = format!("{example} {flags} --otlp-file s.jsonl --perfetto p.json");
            let report = sandbox.replay(&line);
            let (text, slices) = (sandbox.read("s.jsonl"), sandbox.read("p.json"));
            let spans = spans(&text);
            agree(&spans, &report, &line);
            drawn(&slices, &spans, &line);
            sandbox.replay(&line);
            assert!(
                sandbox.read("s.jsonl") == text && sandbox.read("p.json") == slices,
                "{line}: twice the same"
            );
        }
    }
}

/// Broken by: a trace that takes part in the run it watches.
#[test]
fn a_run_that_is_written_is_the_same_run() {
    let sandbox = Sandbox::with_examples();
    let line = format!("examples/conversation.jsonl {TIGHT}");
    let plain = sandbox.replay(&line);
    assert!(plain.count("/counts/preemptions") > 0, "or this says little");
    let written = sandbox.replay(&format!("{line} --otlp-file s.jsonl --perfetto p.json"));
    assert_eq!(plain.without_wall(), written.without_wall());
}

/// Broken by: a phase that is missing, or a worker that is another's.
#[test]
fn a_disaggregated_request_has_its_handoff() {
    let sandbox = Sandbox::with_examples();
    sandbox.replay(&format!("examples/single_turn.jsonl {PAIR} --otlp-file s.jsonl"));
    let all = spans(&sandbox.read("s.jsonl"));
    let handoffs: Vec<&Span> = all.iter().filter(|span| span.name == "handoff").collect();
    assert_eq!(handoffs.len(), 500);
    for handoff in handoffs {
        let of_it = |name: &str| all.iter().find(|span| span.trace == handoff.trace && span.name == name);
        let (prefill, decode) = (of_it("prefill").expect("one"), of_it("decode").expect("one"));
        assert_eq!((prefill.times.1, decode.times.0), (handoff.times.0, handoff.times.1));
        assert_eq!((prefill.int("worker"), handoff.int("worker")), (0, 0));
        assert_eq!(decode.int("worker"), handoff.int("to_worker"));
        assert!(handoff.int("room_ns") + handoff.int("transfer_ns") <= handoff.times.1 - handoff.times.0);
    }
}

#[test]
fn one_request() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    sandbox.replay("trace.jsonl --otlp-file s.jsonl --perfetto p.json");
    let version = format!("\"{}\"", env!("CARGO_PKG_VERSION"));
    assert_snapshot!(
        sandbox.read("s.jsonl").replace(&version, "\"…\"").replace("{\"traceId", "\n{\"traceId")
    );
    assert_snapshot!(sandbox.read("p.json"));
}

#[test]
fn what_was_not_served_says_why() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    let line = r#"trace.jsonl --extra-engine-args {"num_gpu_blocks":1,"block_size":32} --otlp-file s.jsonl"#;
    sandbox.run(&format!("replay {line} --report-json r.json"));
    let all = spans(&sandbox.read("s.jsonl"));
    let [root] = roots(&all)[..] else { panic!("one") };
    assert_eq!(root.failure.as_deref(), Some("prompt_exceeds_num_gpu_blocks"));
    assert!(!root.attributes.contains_key("hit_rate"), "nothing was looked up");
}

#[test]
fn traces_are_compressed_when_their_name_says_so() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    sandbox.replay("trace.jsonl --otlp-file s.jsonl --perfetto p.json");
    sandbox.replay("trace.jsonl --otlp-file new/s.jsonl.zst --perfetto new/p.json.gz");
    let file = |name: &str| std::fs::File::open(sandbox.path(name)).expect("a file");
    let mut text = String::new();
    let mut decoder = zstd::Decoder::new(file("new/s.jsonl.zst")).expect("zstd");
    decoder.read_to_string(&mut text).expect("zstd");
    assert_eq!(text, sandbox.read("s.jsonl"));
    text.clear();
    flate2::read::GzDecoder::new(file("new/p.json.gz")).read_to_string(&mut text).expect("gzip");
    assert_eq!(text, sandbox.read("p.json"));
}

#[test]
fn traces_go_where_nothing_else_is() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    for (line, said) in [
        ("trace.jsonl --otlp-file x --perfetto x", "--perfetto x: is the same file as --otlp-file"),
        ("trace.jsonl --otlp-file trace.jsonl", "--otlp-file trace.jsonl: is the same file as the trace"),
        ("trace.jsonl --perfetto p.json --seeds 2", "--seeds: cannot be combined with --perfetto"),
        ("trace.jsonl --perfetto -", "--perfetto -: output goes to a file"),
        ("no.jsonl --perfetto p.json", "no.jsonl: cannot open: "),
    ] {
        let told = sandbox.refuse(line);
        assert!(told.starts_with(&format!("error: {said}")), "{line}: {told}");
    }
    let run = sandbox.run("replay trace.jsonl --otlp-file trace.jsonl/x");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.starts_with("error: trace.jsonl/x: cannot write: "), "{}", run.stderr);
}
