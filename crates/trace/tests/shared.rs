//! The samples of the shared data, where it lies beside the checkout: every row of them is read.

use std::path::PathBuf;
use std::sync::Arc;

use wavetank_model::Nanos;
use wavetank_trace::calls::{self, Call, Operation};
use wavetank_trace::requests::Source;
use wavetank_trace::{Input, Loaded, Options, Starts};

fn open(format: &str, input: Input, starts: Starts) -> wavetank_model::Result<Loaded> {
    wavetank_trace::open(&Source::with(format, vec![input]).unwrap(), &Options::of(starts))
}

fn trace(name: &str) -> Option<Input> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces").join(name);
    path.exists().then_some(Input::File(path))
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
