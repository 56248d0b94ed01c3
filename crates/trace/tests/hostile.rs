//! Readers meet bytes they never saw: whatever comes, the answer is a workload or an error with its place.

use std::sync::Arc;

use proptest::prelude::*;
use wavetank_model::Workload;
use wavetank_trace::requests::{self, ReadOptions, Source};
use wavetank_trace::{Fill, Input, Options, Starts, calls};

const MOONCAKE: &str = r#"{"session_id":"a","timestamp":0,"input_length":6,"output_length":2,"hash_ids":[1,2]}
{"session_id":"a","delay":25.5,"input_tokens":9,"output_tokens":0,"hash_ids":[1,2,3],"priority":-1}
{"created_time":1e3,"output_length":3,"hash_ids":[18446744073709551615],"output_token_ids":[1,2,3]}
"#;

const BURSTGPT: &str = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens
1.5,a,0.1,GPT-4,20,2
2,,0.1,\"GPT, 4\",30,0
3,a,0.1,GPT-4,40,3.0
";

const SHAREGPT: &str = r#"[{"id":"a","conversations":[
{"from":"human","value":"one \u00e9"},{"from":"gpt","value":"two"},
{"from":"human","value":"three"},{"from":"gpt","value":"four"}]},
{"id":1},{"conversations":[{"from":"user","value":""},{"from":"assistant","value":"six"}]}]"#;

const CALLS: &str = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase
1794705271.796539,Write,61480960,Tier-0,conv_1,Prefill
1794705271.796719,Read,61480960,Tier-1,\"conv,1\",Decode
1794705271.796798,Delete,0,Tier-2,,Evict
";

const SAMPLES: [&str; 4] = [MOONCAKE, BURSTGPT, SHAREGPT, CALLS];

fn options(starts: Starts, clamp_input: bool) -> Options {
    let read = ReadOptions { tokens_per_id: Some(4), ..ReadOptions::default() };
    let fill = Fill { output: Some(3), ..Fill::default() };
    Options { read, clamp_input, keep_names: true, fill, ..Options::of(starts) }
}

/// Reads to the end, every turn of every session.
fn exhaust(workload: &mut dyn Workload) -> u64 {
    let mut requests = 0;
    while let Some(opening) = workload.open().expect("the first reading found no fault") {
        let mut request = opening.request;
        requests += 1;
        while request.think.is_some() {
            request = workload.follow_up(request.session, request.turn + 1).expect("announced");
            requests += 1;
        }
    }
    requests
}

fn read(bytes: &[u8], starts: Starts) -> Result<(), TestCaseError> {
    for format in requests::ALL {
        let input = Input::Bytes(Arc::from(bytes));
        match wavetank_trace::open(
            &Source::with(format.name, vec![input]).expect("a format"),
            &options(starts, true),
        ) {
            Ok(mut loaded) => {
                let announced = loaded.workload.requests();
                prop_assert_eq!(exhaust(loaded.workload.as_mut()), announced, "{}", format.name);
            }
            Err(error) => prop_assert!(error.to_string().starts_with("<memory>"), "{}", error),
        }
    }
    for format in calls::ALL {
        let read = calls::read(format.name, &Input::Bytes(Arc::from(bytes)));
        let fault = read.map(|calls| calls.filter_map(Result::err).last());
        if let Some(error) = fault.unwrap_or_else(Some) {
            prop_assert!(error.to_string().starts_with("<memory>"), "{}", error);
        }
    }
    Ok(())
}

#[test]
fn the_samples_are_sound() {
    let scheduled = Starts::Scheduled { speedup: 1.0 };
    for (format, sample, starts, requests) in [
        ("mooncake", MOONCAKE, scheduled, 3),
        ("burstgpt", BURSTGPT, scheduled, 2),
        ("sharegpt", SHAREGPT, Starts::Ignored, 3),
    ] {
        let input = Input::Bytes(Arc::from(sample.as_bytes()));
        let mut loaded =
            wavetank_trace::open(&Source::with(format, vec![input]).unwrap(), &options(starts, false))
                .unwrap();
        assert_eq!(exhaust(loaded.workload.as_mut()), requests, "{format}");
    }
    let calls = calls::read("mlperf-csv", &Input::Bytes(Arc::from(CALLS.as_bytes()))).unwrap();
    assert_eq!(calls.map(Result::unwrap).count(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes, Starts::Ignored)?;
    }

    #[test]
    fn damaged_rows(
        sample in 0..SAMPLES.len(),
        edits in proptest::collection::vec((0..400usize, any::<u8>(), 0u8..3), 1..6),
    ) {
        let mut bytes = SAMPLES[sample].as_bytes().to_vec();
        for (position, byte, kind) in edits {
            let position = position.min(bytes.len() - 1);
            match kind {
                0 => bytes[position] = byte,
                1 => bytes.insert(position, byte),
                _ => drop(bytes.remove(position)),
            }
        }
        read(&bytes, Starts::Ignored)?;
        read(&bytes, Starts::Scheduled { speedup: 2.0 })?;
    }

    #[test]
    fn damaged_values(field in 0..KEYS.len(), value in VALUE) {
        let key = KEYS[field];
        let start = if key == "timestamp" { "" } else { "\"timestamp\":1," };
        let row = format!("{{{start}\"hash_ids\":[1],\"output_length\":1,\"{key}\":{value}}}\n");
        read(row.as_bytes(), Starts::Scheduled { speedup: 1.0 })?;
    }
}

const KEYS: [&str; 7] =
    ["timestamp", "delay", "input_length", "priority", "strict_priority", "session_id", "output_token_ids"];

const VALUE: &str = "-?[0-9]{1,22}(\\.[0-9]{1,3})?(e[0-9]{1,3})?|null|\"x\"|\\[\\]";
