//! The `kernels` row on tables worked out by hand, and on broken ones.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::*;

/// A profile whose times can be worked out by hand: a token costs 2 us in every layer, a sequence 3 us;
/// attention costs 1 us per thousand of (new tokens x context before and among them) and per thousand of
/// decoded KV tokens.
fn tables() -> [(&'static str, String); 4] {
    let mut attention = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n".to_owned();
    let (chunks, contexts, batches, lengths) = ([0, 16, 1024], [0, 16, 2048], [0, 1, 256], [16, 1024, 8192]);
    for chunk in chunks {
        for context in contexts {
            for batch in batches {
                for length in lengths {
                    let prefill = f64::from(chunk) * f64::from(context);
                    let time = 1.0 + (prefill + f64::from(batch) * f64::from(length)) / 1000.0;
                    let sound = (chunk > 0 || context == 0) && chunk + batch > 0;
                    if sound && (batch > 0 || length == 16) {
                        let length = if batch > 0 { length } else { 0 };
                        attention += &format!("{chunk},{context},{batch},{length},{time}\n");
                    }
                }
            }
        }
    }
    let dense: String = [1, 8, 64, 512, 2048]
        .iter()
        .map(|tokens| format!("qkv_proj,{tokens},{}\n", f64::from(*tokens) * 2.0))
        .collect();
    [
        ("attention", attention),
        ("dense", format!("layer,tokens,time_us\n{dense}")),
        ("per_sequence", "layer,sequences,time_us\nsampler,1,3\nsampler,256,768\n".to_owned()),
        ("skew", "regime,n,kp,kv_mean,t_mean_us,t_max_us,t_skew_us\npure,256,0,100,10,20,10\n".to_owned()),
    ]
}

/// Writes the tables, `changed` in place of the table of its name; the folder.
fn folder(changed: Option<(&str, &str)>) -> PathBuf {
    let folder = tempfile::tempdir().unwrap().keep();
    for (name, text) in tables() {
        let text = changed.filter(|change| change.0 == name).map_or(text, |change| change.1.to_owned());
        fs::write(folder.join(format!("{name}.csv")), text).unwrap();
    }
    folder
}

fn parameters(folder: &Path) -> Parameters {
    let value = json!({"path": folder.display().to_string(), "layers": 2, "hidden": 64, "max_num_seqs": 64});
    value.as_object().unwrap().clone()
}

pub(in super::super) fn example() -> Parameters {
    parameters(&folder(None))
}

fn build(changed: Option<(&str, &str)>) -> Result<Kernels> {
    Kernels::build(&parameters(&folder(changed)))
}

#[test]
fn a_pass_is_the_sum_of_its_kernels() {
    let kernels = build(None).unwrap();
    let decode = DecodeBatch { requests: 8, kv_tokens: 8000, capacity_tokens: 0, longest: 1000 };
    let mut ms = [0.0];
    kernels.decode_run_ms(decode, &mut ms);
    // Two layers of 8 tokens and of attention, 8 sequences, the host.
    let expected = 2.0 * 16.0 + 2.0 * (1.0 + 8.0) + 24.0 + 350.0;
    assert!((ms[0] * 1e3 - expected).abs() < 1e-6, "{} {expected}", ms[0] * 1e3);
    let chunks = &[Chunk::of_prompt(1000, 0)];
    let prefill = kernels.pass_ms(Pass { chunks, decode: DecodeBatch::default() }).prompt_ms;
    // Rounded up to 2048 tokens, too many for a captured graph.
    let expected = 2.0 * 4096.0 + 2.0 * 1.0 + 3.0 + 4350.0;
    assert!((prefill * 1e3 - expected).abs() < 1e-6, "{} {expected}", prefill * 1e3);
}

#[test]
fn captured_graphs_are_padded() {
    let kernels = build(None).unwrap();
    let padded = [1, 2, 3, 5, 9, 17, 128, 129].map(|tokens| kernels.padded(tokens));
    assert_eq!(padded, [1, 2, 4, 8, 16, 24, 128, 129]);
}

#[test]
fn bad_profiles_are_refused_with_the_line() {
    let dense = "layer,tokens,time_us\nqkv_proj,1,2\n";
    let message = |change: (&str, &str)| build(Some(change)).err().expect(change.1).to_string();
    for (table, rows, expected) in [
        ("dense", "qkv_proj,8,-1\n", "dense.csv:3: \"time_us\" is -1"),
        ("dense", "qkv_proj,1,5\n", "dense.csv:3: \"tokens\" does not rise"),
        ("dense", "qkv_proj,8\n", "dense.csv:3: 2 cells, the header has 3"),
        ("dense", "qkv_proj,8,fast\n", "dense.csv:3: \"time_us\" must be a number"),
        ("dense", "qkv_proj,8,9e9\n", "microseconds"),
        ("dense", "qkv_proj,8.5,1\n", "must be a whole number"),
        ("dense", "qkv_proj,4294967295,1\n", "dense.csv:3: \"tokens\" is 4294967295: no pass has more"),
    ] {
        let found = message((table, &format!("{dense}{rows}")));
        assert!(found.contains(expected), "{expected}: {found}");
    }
    let sequences = "layer,sequences,time_us\nsampler,1,3\nsampler,4294967295,768\n";
    assert!(message(("per_sequence", sequences)).contains("per_sequence.csv:3: \"sequences\" is 4294967295"));
    assert!(message(("dense", "layer,time_us\nqkv_proj,2\n")).contains("\"tokens\" is missing"));
    assert!(message(("skew", "")).contains("has no rows"));
    let quick = "layer,tokens,time_us\nqkv_proj,1,0.01\nqkv_proj,2048,4\n";
    assert!(message(("dense", quick)).contains("a pass of 2048 tokens takes 8.0 us without attention"));
    let holed: String = tables()[0]
        .1
        .lines()
        .filter(|line| !line.starts_with("16,16,1,16"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(message(("attention", &holed)).contains("there is no row for prefill_chunk 16, kv_prefill 16"));
    let missing = folder(None);
    fs::remove_file(missing.join("skew.csv")).unwrap();
    let error = Kernels::build(&parameters(&missing)).err().unwrap();
    assert!(error.to_string().contains("skew.csv or skew.csv.gz is missing"), "{error}");
}

/// Breaks when `cargo xtask profiles` drops a row that the model reads, or a parameter is not used.
#[test]
fn built_in_profiles_price_passes_like_their_folders() {
    let runs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/vllm-runs");
    if !runs.is_dir() {
        return;
    }
    for profile in kernel_profiles() {
        let named = Parameters::from_iter([("profile".to_owned(), Value::from(profile.name))]);
        let folder = runs.join(profile.name).join("profile").display().to_string();
        let mut full = profile.content.parameters.clone();
        full.insert("path".to_owned(), folder.into());
        let [small, whole] = [named, full].map(|parameters| Kernels::build(&parameters).unwrap());
        for tokens in [0, 1, 16, 100, 700, 2048, 5000] {
            for requests in [0, 1, 5, 64, 200] {
                for length in [20, 600, 3000, 20_000] {
                    let kv_tokens = u64::from(requests) * u64::from(length);
                    let decode = DecodeBatch { requests, kv_tokens, capacity_tokens: 0, longest: 2 * length };
                    let chunks = [Chunk::of_prompt(tokens, length / 3)];
                    let chunks = if tokens > 0 { &chunks[..] } else { &[] };
                    let [got, expected] =
                        [&small, &whole].map(|kernels| kernels.pass_ms(Pass { chunks, decode }).prompt_ms);
                    let off = (got / expected - 1.0).abs();
                    assert!(off < 1e-3, "{}: {tokens} {requests} {length}: {off}", profile.name);
                }
            }
        }
    }
}

#[test]
fn given_parameters_override_those_of_a_built_in_profile() {
    let build = |text: &str| Kernels::build(&serde_json::from_str(text).unwrap());
    let plain = build(r#"{"profile": "rtxpro6000-qwen3-32b-tp2"}"#).unwrap().config;
    assert_eq!((plain.layers, plain.tp, plain.max_num_seqs), (64, 2, 128));
    let given = build(r#"{"profile": "rtxpro6000-qwen3-32b-tp2", "tp": 1, "host": {"pass_us": 9}}"#).unwrap();
    assert_eq!((given.config.layers, given.config.tp, given.config.host.pass_us), (64, 1, 9.0));
    for (text, expected) in [
        (r#"{"profile": "rtx1"}"#, "unknown profile \"rtx1\""),
        (r#"{"profile": "rtx4090-llama-3.1-8b", "path": "d"}"#, "give \"profile\" or \"path\""),
        (r#"{"layers": 3}"#, "give \"profile\" or \"path\""),
        (r#"{"profile": "rtx4090-llama-3.1-8b", "experts": 8}"#, "no table \"moe\""),
    ] {
        let message = build(text).err().expect(text).to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}
