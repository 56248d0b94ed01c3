//! Readers meet bytes they never saw: whatever comes, the answer is a workload or an error with its place.

use std::sync::Arc;

use proptest::prelude::*;
use wavetank_model::Workload;
use wavetank_trace::{Input, Options, Starts, requests};

const SAMPLE: &str = r#"{"session_id":"a","timestamp":0,"input_length":6,"output_length":2,"hash_ids":[1,2]}
{"session_id":"a","delay":25.5,"input_tokens":9,"output_tokens":0,"hash_ids":[1,2,3],"priority":-1}
{"created_time":1e3,"output_length":3,"hash_ids":[18446744073709551615],"output_token_ids":[1,2,3]}
"#;

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
        let options = Options { tokens_per_id: 4, clamp_input: true, starts, keep_names: true };
        match requests::open(format.name, &Input::Bytes(Arc::from(bytes)), &options) {
            Ok(mut loaded) => {
                let announced = loaded.workload.requests();
                prop_assert_eq!(exhaust(loaded.workload.as_mut()), announced, "{}", format.name);
            }
            Err(error) => prop_assert!(error.to_string().starts_with("<memory>"), "{}", error),
        }
    }
    Ok(())
}

#[test]
fn the_sample_is_sound() {
    let (starts, keep_names) = (Starts::Scheduled { speedup: 1.0 }, true);
    let options = Options { tokens_per_id: 4, clamp_input: false, starts, keep_names };
    let mut loaded =
        requests::open("mooncake", &Input::Bytes(Arc::from(SAMPLE.as_bytes())), &options).unwrap();
    assert_eq!(exhaust(loaded.workload.as_mut()), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes, Starts::Ignored)?;
    }

    #[test]
    fn damaged_rows(edits in proptest::collection::vec((0..SAMPLE.len(), any::<u8>(), 0u8..3), 1..6)) {
        let mut bytes = SAMPLE.as_bytes().to_vec();
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
