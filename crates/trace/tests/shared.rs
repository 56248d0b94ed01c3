//! The samples of the shared data, where it lies beside the checkout: every row of them is read.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use wavetank_model::Nanos;
use wavetank_trace::calls::{self, Call, Operation};
use wavetank_trace::requests::{ReadOptions, Source};
use wavetank_trace::{Input, Loaded, Options, Row, Starts};

fn open(format: &str, input: Input, starts: Starts) -> wavetank_model::Result<Loaded> {
    wavetank_trace::open(&Source::with(format, vec![input]).expect("a format"), &Options::of(starts))
}

fn data(name: &str) -> Option<Input> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    path.exists().then_some(Input::File(path))
}

fn trace(name: &str) -> Option<Input> {
    data(&format!("traces/{name}"))
}

/// The rows of a file whose format is found out, and its notes.
fn rows(input: &Input, format: &str) -> (Vec<Row>, Vec<String>) {
    let Input::File(path) = input else { unreachable!("a trace is a file") };
    let source = Source::of(&[path.display().to_string()], None).expect("a known format");
    assert_eq!(source.format.name, format);
    let mut reader = source.open(&ReadOptions::default()).expect("a file");
    let (mut rows, mut row) = (Vec::new(), Row::default());
    while reader.read(&mut row).expect("a sound row") {
        rows.push(row.clone());
    }
    (rows, reader.findings().notes)
}

/// Requests, prompt tokens and generated tokens.
fn totals(rows: &[Row]) -> (usize, u64, u64) {
    let sum =
        |tokens: fn(&Row) -> Option<u32>| rows.iter().map(|row| u64::from(tokens(row).unwrap_or(0))).sum();
    (rows.len(), sum(|row| row.input_tokens), sum(|row| row.output_tokens))
}

/// Totals are those of the published files; the last row of each has no end of line behind it.
#[test]
fn azure() {
    let expected = [("code", (8_819, 18_059_974, 245_896)), ("conv", (19_366, 22_361_870, 4_088_665))];
    for (name, expected) in expected {
        let Some(input) = trace(&format!("AzureLLMInferenceTrace_{name}.csv.gz")) else { return };
        let (rows, notes) = rows(&input, "azure");
        assert_eq!(totals(&rows), expected);
        assert!(notes.is_empty() && rows.is_sorted_by_key(|row| row.start));
        let mut loaded = open("azure", input, Starts::Scheduled { speedup: 1.0 }).unwrap();
        assert_eq!(loaded.workload.requests(), expected.0 as u64);
        assert_eq!(loaded.workload.open().unwrap().unwrap().at, Nanos::ZERO);
    }
}

#[test]
fn mooncake() {
    let Some(input) = trace("mooncake_conversation.jsonl.gz") else { return };
    let (found, _) = rows(&input, "mooncake");
    assert_eq!(totals(&found), (12_031, 144_793_823, 4_122_048));
    let ids: HashSet<u64> = found.iter().flat_map(|row| row.ids.iter().copied()).collect();
    let references: usize = found.iter().map(|row| row.ids.len()).sum();
    assert_eq!((ids.len(), references), (182_790, 288_500));
    let Some(input) = trace("mooncake_synthetic.jsonl.gz") else { return };
    assert_eq!(rows(&input, "mooncake").0.len(), 3_993);
}

/// A run of an agent with three helpers: they wait for its second request, and its third for the one of them
/// that takes longest.
#[test]
fn agents() {
    let Some(input) = trace("dynamo_request_trace_pi.jsonl.gz") else { return };
    let (rows, _) = rows(&input, "dynamo");
    assert_eq!(rows.len(), 17);
    let of =
        |session: &str| rows.iter().filter(|row| row.session.as_deref().unwrap().ends_with(session)).count();
    assert_eq!([":root", "scout:0", "scout:1", "reviewer:2"].map(of), [6, 6, 3, 2]);
    let second = rows.iter().find(|row| row.input_tokens == Some(5688)).unwrap();
    let helpers = rows.iter().filter(|row| row.wait_for == [second.request.clone().unwrap()]);
    assert_eq!(helpers.count(), 3);
    let third = rows.iter().find(|row| row.input_tokens == Some(7024)).unwrap();
    assert_eq!(third.wait_for.len(), 4);
    assert_eq!(third.pause.unwrap().0 / 1_000_000, 4, "from the end of the tool to the request");
    let mut loaded = open("dynamo", input, Starts::Scheduled { speedup: 1.0 }).unwrap();
    assert!(loaded.workload.dependencies().is_some() && loaded.workload.requests() == 17);
    let roots = std::iter::from_fn(|| loaded.workload.open().unwrap()).count();
    assert_eq!(roots, 2, "all others wait for some request");
}

#[test]
fn chains_of_spans() {
    for (name, calls, roots) in
        [("simple_chain", 3, 1), ("prefix_sharing_example", 7, 4), ("multi_agent_research", 12, 1)]
    {
        let Some(input) = data(&format!("otel-requests/{name}.json")) else { return };
        let (rows, notes) = rows(&input, "otel");
        assert_eq!(rows.len(), calls, "{name}");
        assert_eq!(rows.iter().filter(|row| row.wait_for.is_empty()).count(), roots, "{name}: {notes:?}");
        assert!(notes[0].ends_with("texts counted by tiktoken cl100k_base"));
        let mut loaded = open("otel", input, Starts::Scheduled { speedup: 1.0 }).unwrap();
        let opened = std::iter::from_fn(|| loaded.workload.open().unwrap()).count();
        assert_eq!((loaded.workload.requests(), opened), (calls as u64, roots), "{name}");
    }
    let Some(input) = data("otel-requests/multi_agent_research.json") else { return };
    let (rows, _) = rows(&input, "otel");
    let synthesis = rows.iter().find(|row| row.request.as_deref() == Some("span_005_synthesis")).unwrap();
    assert_eq!(synthesis.wait_for, ["span_002_market_agent", "span_003_env_agent", "span_004_tech_agent"]);
    assert_eq!(synthesis.pause, Some(Nanos(1_000_000_000)));
}

#[test]
fn storage_calls() {
    let Some(input) = trace("mlperf_iotrace_three_tier.csv.gz") else { return };
    let calls = calls::read("mlperf-csv", &input).unwrap().map(|call| match call.unwrap() {
        Call::Tier(call) => call,
        Call::Storage(_) => unreachable!("no such rows"),
    });
    let calls: Vec<_> = calls.collect();
    assert_eq!(calls.len(), 10_163);
    let writes =
        |tier| calls.iter().filter(|call| call.operation == Operation::Write && call.tier == tier).count();
    assert_eq!([writes(0), writes(1), writes(2)], [932, 304, 237]);
    assert_eq!(calls[0].at, Nanos::ZERO);
    assert!(calls.is_sorted_by_key(|call| call.at));
}

#[test]
fn bursts() {
    let Some(input) = trace("burstgpt_small.csv") else { return };
    let starts = Starts::Scheduled { speedup: 1.0 };
    // Line 122 is there to be wrong.
    let error = open("burstgpt", input.clone(), starts).err().unwrap().to_string();
    assert!(error.contains("burstgpt_small.csv:122: \"Timestamp\" is \"bad\""), "{error}");
    let Input::File(path) = input else { unreachable!("a trace is a file") };
    let text = std::fs::read_to_string(path).unwrap().replace("bad,x,y,z,0,", "");
    let input = Input::Bytes(Arc::from(text.as_bytes()));
    let loaded = open("burstgpt", input, starts).unwrap();
    assert_eq!((loaded.survey.requests, loaded.survey.skipped), (121, 0));
}

#[test]
fn conversations() {
    let Some(input) = trace("sharegpt_small.json.gz") else { return };
    let loaded = open("sharegpt", input, Starts::Ignored).unwrap();
    assert_eq!(loaded.survey.requests, 145, "{:?}", loaded.survey);
    assert!(loaded.survey.notes[0].starts_with("41 conversations with 145 turns"));
}
