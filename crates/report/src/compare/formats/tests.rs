//! Every row of the table: its samples, and what is left of them when they are damaged.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::compare::side::of_content;
use crate::compare::{Comparison, Side};
use crate::render::comparison::{Scope, table};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/results")
}

/// Every sample: the format it is of, by its name, and its path.
fn samples() -> Vec<(String, PathBuf)> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let named = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        (name.split('.').next().unwrap().replace('_', "-"), path)
    };
    paths.into_iter().map(named).collect()
}

fn sample(name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder().join(name)).unwrap()).unwrap()
}

/// Broken by: a row whose keys another format has too, a row without a sample.
#[test]
fn a_sample_is_of_its_format_alone() {
    for row in ALL {
        let own: Vec<_> = samples().into_iter().filter(|(format, _)| format == row.name).collect();
        assert!(!own.is_empty(), "{} has no sample", row.name);
    }
    for (format, path) in samples() {
        let text = fs::read_to_string(&path).unwrap();
        for result in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
            let result = result.unwrap();
            let object = result.as_object().unwrap();
            let found: Vec<_> =
                ALL.iter().filter(|row| (row.recognises)(object)).map(|row| row.name).collect();
            assert_eq!(found, [format.as_str()], "{}", path.display());
        }
    }
}

/// Broken by: a metric under another name, a unit that is not converted.
#[test]
fn what_samples_say() {
    let mut text = String::new();
    for (_, path) in samples() {
        let side = Side::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        writeln!(text, "{name}: {}, {} runs {:?}", side.format(), side.runs(), side.remarks()).unwrap();
        for metric in side.metrics() {
            writeln!(text, "  {metric} {:.4}", side.trials(metric).unwrap().mean()).unwrap();
        }
    }
    assert_snapshot!(text);
}

/// Broken by: a metric that reports do not have, which nothing is compared with.
#[test]
fn names_are_those_of_reports() {
    let known = Side::read(&folder().join("replay.json")).unwrap();
    // Goodput is in reports of runs with bounds, the last one is the check of storage reports alone.
    let others = ["goodput_completed_requests", "goodput_request_throughput_rps", "total_tokens_per_sec"];
    for (_, path) in samples() {
        let side = Side::read(&path).unwrap();
        for metric in side.metrics() {
            let is_known = known.trials(metric).is_some() || others.contains(&metric);
            assert!(is_known, "{}: {metric}", path.display());
        }
    }
}

/// Broken by: an error without the file's name, a file cut off that counts as one with less in it.
#[test]
fn damage_is_an_error_with_the_name_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.json");
    let refused = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        let error = Side::read(&path).unwrap_err().to_string();
        assert!(error.contains("damaged.json: "), "{error}");
        error
    };
    for (format, sample) in samples() {
        let content = fs::read(&sample).unwrap();
        let whole = content.trim_ascii_end();
        for cut in (1..whole.len()).step_by(97) {
            let error = refused(&whole[..whole.len() - cut]);
            // A file of several may end with one of them.
            assert!(error.contains("not valid JSON"), "{format} without {cut} bytes: {error}");
        }
    }
    assert!(refused(b"").contains("is empty"));
    assert!(refused(b"\xff\xfe{}").contains("not valid JSON"));
    for other in ["[]", "7", "{}", r#"{"a":1}"#] {
        let error = refused(other.as_bytes());
        for row in ALL {
            assert!(error.contains(row.name) && error.contains(row.about), "{error}");
        }
    }
}

/// Broken by: an index without a check, a wrong type that is taken for nothing.
#[test]
fn values_of_another_type_are_named_or_left_out() {
    let instead = [json!("7"), json!([1]), json!({"a": 1}), json!(null), json!(-1e308), json!([[], ["a"]])];
    for (format, path) in
        samples().into_iter().filter(|(_, path)| !path.ends_with("vllm_serve.appended.json"))
    {
        let whole = sample(path.file_name().unwrap().to_str().unwrap());
        for key in whole.as_object().unwrap().keys() {
            for value in &instead {
                let mut changed = whole.clone();
                changed[key] = value.clone();
                // Whatever comes of it, it is no panic, and a number that is a word is an error.
                let outcome = read(&changed);
                let is_number = whole[key].is_number() || whole[key].get("avg").is_some();
                let is_read = key.ends_with("throughput") || key == "completed" || key.starts_with("mean_");
                if format != "replay" && is_number && is_read && value.is_string() {
                    let error = outcome.unwrap_err().to_string();
                    assert!(error.contains(key.as_str()) || error.contains("not a result"), "{key}: {error}");
                }
            }
        }
    }
    let mut replay = sample("replay.json");
    replay["completed_requests"] = json!("500");
    assert!(read(&replay).unwrap_err().to_string().contains("\"completed_requests\" is not a number"));
}

proptest! {
    /// Whatever is in a file, it is read or refused, and what was read is compared.
    /// Broken by: an index without a check, arithmetic that wants more than there is.
    #[test]
    fn any_bytes_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, 0usize..12), 0..4),
    ) {
        let pieces =
            ["", "null", "[]", "{}", "0", "-1", "1e308", "\"\"", ",", "\u{7f}", "[[1e300],[]]", "true"];
        let samples = samples();
        let mut content = fs::read(&which.get(&samples).1).unwrap();
        for (place, length, piece) in changes {
            let start = place.index(content.len());
            let end = (start + length).min(content.len());
            content.splice(start..end, pieces[piece].bytes());
        }
        if let Ok(side) = of_content("any", &content) {
            let other = Side::read(&folder().join("vllm_serve.detailed.json")).unwrap();
            if let Ok(compared) = Comparison::of(&side, &other) {
                prop_assert!(compared.json()["rows"].is_array());
                prop_assert!(table(&compared, Scope::All).contains("vllm_serve"));
            }
        }
    }
}

/// Broken by: seconds taken for milliseconds, a unit nobody knows taken for ours.
#[test]
fn units_of_aiperf_are_heeded() {
    let mut export = sample("aiperf.json");
    let ttft = |export: &Value| read(export).unwrap().1.value("mean_ttft_ms").unwrap();
    let milliseconds = ttft(&export);
    for (unit, factor) in [("sec", 1e3), ("us", 1e-3), ("ns", 1e-6)] {
        export["time_to_first_token"]["unit"] = json!(unit);
        assert!((ttft(&export) / (milliseconds * factor) - 1.0).abs() < 1e-12, "{unit}");
    }
    export["time_to_first_token"]["unit"] = json!("hours");
    let error = read(&export).unwrap_err().to_string();
    assert!(error.contains("\"time_to_first_token\" is in the unit \"hours\""), "{error}");
    export["time_to_first_token"]["unit"] = json!("ms");
    export["was_cancelled"] = json!(true);
    export["error_request_count"] = json!({"unit": "requests", "avg": 2.0});
    assert_eq!(read(&export).unwrap().1.remarks, ["was cancelled", "2 requests failed"]);
}

/// Broken by: ranks instead of interpolation, a mean over another number of tokens, gaps left out.
#[test]
fn single_requests_of_vllm_give_its_own_statistics() {
    let whole = sample("vllm_serve.detailed.json");
    let told = read(&whole).unwrap().1;
    let mut bare = whole.clone();
    for statistic in ["mean", "median", "std", "p90", "p99"] {
        for name in ["ttft", "tpot", "itl"] {
            assert!(bare.as_object_mut().unwrap().remove(&format!("{statistic}_{name}_ms")).is_some());
        }
    }
    let computed = read(&bare).unwrap().1;
    for (metric, values) in &told.metrics {
        let found = computed.value(metric).unwrap();
        // Without "latencies" an answer ends with its last token, not with the stream.
        let allowed = if metric.ends_with("_tpot_ms") { 1e-3 } else { 1e-9 };
        assert!((found - values[0]).abs() <= allowed * values[0].abs(), "{metric}: {found} {}", values[0]);
    }
    assert_eq!(told.metrics.len(), computed.metrics.len());
}

/// Broken by: the end that newer releases tell left unread.
#[test]
fn answers_of_vllm_end_where_it_says() {
    let mut result = sample("vllm_serve.detailed.json");
    result["latencies"] = json!(vec![0.25; 8]);
    result["ttfts"] = json!(vec![0.02; 8]);
    result.as_object_mut().unwrap().remove("p90_tpot_ms");
    let run = read(&result).unwrap().1;
    assert_eq!(run.value("mean_e2e_latency_ms"), Some(250.0));
    assert!((run.value("p90_tpot_ms").unwrap() - 10.0).abs() < 1e-9, "230 ms for 23 tokens");
    result["latencies"] = json!([0.25]);
    let error = read(&result).unwrap_err().to_string();
    assert!(error.contains("\"latencies\" has 1 entries and \"ttfts\" 8"), "{error}");
}

/// Broken by: times of requests that failed, which are zero, counted as answers.
#[test]
fn requests_of_vllm_that_failed_are_left_out() {
    let mut result = sample("vllm_serve.detailed.json");
    let ttft = |result: &Value| read(result).unwrap().1.value("min_ttft_ms");
    let smallest = ttft(&result);
    result["ttfts"][3] = json!(0.0);
    result["itls"][3] = json!([]);
    result["output_lens"][3] = json!(0);
    result["errors"][3] = json!("Traceback");
    assert_eq!(ttft(&result), None, "eight completed, seven answers");
    let doubt = "single requests do not add up to \"completed\"";
    assert_eq!(read(&result).unwrap().1.remarks, [doubt]);
    result["completed"] = json!(7);
    assert!(ttft(&result) >= smallest);
    assert_eq!(read(&result).unwrap().1.remarks, ["1 requests failed"]);
    result["itls"] = json!([[0.1]]);
    let error = read(&result).unwrap_err().to_string();
    assert!(error.contains("\"itls\" has 1 entries and \"ttfts\" 8"), "{error}");
}

/// Broken by: zeros of an endpoint that does not stream compared as if they were measured.
#[test]
fn what_vllm_did_not_measure_is_no_metric() {
    let mut result = sample("vllm_serve.json");
    for key in ["mean_ttft_ms", "median_ttft_ms", "std_ttft_ms", "p99_ttft_ms"] {
        result[key] = json!(0.0);
    }
    let run = read(&result).unwrap().1;
    assert!(run.metrics.keys().all(|metric| !metric.contains("ttft")), "{:?}", run.metrics.keys());
    assert!(run.value("mean_tpot_ms").is_some());
}
