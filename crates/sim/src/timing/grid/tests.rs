//! Profiles are reproduced as closely as METHODOLOGY.md says, and bad ones are refused with their line.
//!
//! Breaks when a term is dropped from a pass, an axis is read the wrong way round, or a check is lost.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::timing::TimingConfig;

/// A directory beside the repository, where there is one.
fn grids() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/timing/aic-grids");
    path.is_dir().then_some(path)
}

fn built(profile: Option<&str>, path: Option<String>) -> Grid {
    Config { profile: profile.map(str::to_owned), path, host_ms: Some(0.0) }.build().unwrap()
}

/// The time of a row of a grid.
fn priced(timing: &dyn Timing, shape: [u32; 5]) -> f64 {
    let [prompts, tokens, context, requests, length] = shape;
    let chunks: Vec<Chunk> =
        (0..prompts).map(|i| Chunk::of_prompt((tokens + i) / prompts, context)).collect();
    let kv_tokens = u64::from(requests) * u64::from(length);
    let decode = DecodeBatch { requests, kv_tokens, capacity_tokens: 1 << 24, longest: length };
    let time = timing.pass_ms(Pass { chunks: &chunks, decode });
    time.prompt_ms + time.decode_ms
}

/// Median and 90th percentile of the relative errors over the rows of one kind.
fn errors(timing: &dyn Timing, csv: &str, kind: &str) -> (f64, f64) {
    let mut found: Vec<f64> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|row| row[0] == kind)
        .map(|row| {
            let shape = std::array::from_fn(|i| row[i + 1].parse().unwrap());
            (priced(timing, shape) / row[6].parse::<f64>().unwrap() - 1.0).abs()
        })
        .collect();
    found.sort_by(f64::total_cmp);
    (found[found.len() / 2], found[found.len() * 9 / 10])
}

/// A profile, the grid it comes from, and what METHODOLOGY.md calls it.
const SOURCES: [[&str; 3]; 7] = [
    ["llama31-70b-h200-tp4-bf16", "llama31_70b_bf16_h200_vllm_tp4", "70B TP4 bf16"],
    ["llama31-70b-h200-tp8-bf16", "llama31_70b_bf16_h200_vllm_tp8", "70B TP8 bf16"],
    ["llama31-8b-h200-tp1-bf16", "llama31_8b_bf16_h200_vllm_tp1", "8B TP1 bf16"],
    ["llama31-70b-h200-tp4-fp8", "llama31_70b_fp8_h200_vllm_tp4", "70B TP4 fp8"],
    ["llama31-70b-h200-tp8-fp8", "llama31_70b_fp8_h200_vllm_tp8", "70B TP8 fp8"],
    ["llama31-8b-h200-tp1-fp8", "llama31_8b_fp8_h200_vllm_tp1", "8B TP1 fp8"],
    ["llama31-8b-h200-tp1-fp8-kv-bf16", "llama31_8b_fp8gemm_bf16kv_h200_vllm_tp1", "8B TP1 fp8, KV in bf16"],
];

const KINDS: [&str; 3] = ["prefill", "decode", "mixed"];

/// METHODOLOGY.md has all of them, wherever its lines are broken.
fn assert_published(sentences: &[String]) {
    println!("{}", sentences.join("\n"));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../METHODOLOGY.md");
    let page = std::fs::read_to_string(page).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in sentences {
        assert!(page.contains(sentence), "METHODOLOGY.md says otherwise than\n{sentence}");
    }
}

#[test]
fn built_in_profiles_reproduce_their_grids() {
    let Some(grids) = grids() else { return };
    let line = |[name, file, title]: [&str; 3]| {
        let csv = std::fs::read_to_string(grids.join(format!("{file}.csv"))).unwrap();
        let grid = built(Some(name), None);
        let cells = KINDS.map(|kind| {
            let (median, p90) = errors(&grid, &csv, kind);
            format!("{:.2} / {:.1} %", 100.0 * median, 100.0 * p90)
        });
        format!("| {title} | {} |", cells.join(" | "))
    };
    assert_published(&SOURCES.map(line));
}

#[test]
fn passes_as_a_csv_reproduce_themselves() {
    let Some(grids) = grids() else { return };
    let mut most = [(0.0f64, 0.0f64); 3];
    for [_, file, _] in SOURCES {
        let path = grids.join(format!("{file}.csv"));
        let csv = std::fs::read_to_string(&path).unwrap();
        let grid = built(None, Some(path.display().to_string()));
        for (kind, most) in KINDS.into_iter().zip(&mut most) {
            let (median, p90) = errors(&grid, &csv, kind);
            *most = (most.0.max(100.0 * median), most.1.max(100.0 * p90));
        }
    }
    let [prefill, decode, mixed] = most;
    assert_published(&[format!(
        "medians of at most {:.1} % (prefill), {:.1} % (decode) and {:.1} % (mixed), P90 of at most {:.1}, \
         {:.1} and {:.1} %",
        prefill.0, decode.0, mixed.0, prefill.1, decode.1, mixed.1
    )]);
}

/// The roofline of what a profile was measured on.
fn roofline(name: &str) -> Value {
    let content = &super::profiles().iter().find(|built_in| built_in.name == name).unwrap().profile;
    json!({ "name": "roofline", "model": content.model, "gpu": content.gpu, "tp": content.tp, "host_ms": 0.0,
        "weight_dtype": content.weight_dtype, "kv_dtype": content.kv_dtype })
}

#[test]
fn a_roofline_is_as_far_from_the_grids_as_published() {
    let Some(grids) = grids() else { return };
    let mut medians = Vec::new();
    for [name, file, _] in SOURCES {
        let csv = std::fs::read_to_string(grids.join(format!("{file}.csv"))).unwrap();
        let timing = serde_json::from_value::<TimingConfig>(roofline(name)).unwrap().build().unwrap();
        medians.extend(KINDS.map(|kind| 100.0 * errors(&*timing, &csv, kind).0));
    }
    medians.sort_by(f64::total_cmp);
    let (least, most) = (medians[0], medians[medians.len() - 1]);
    assert_published(&[format!("median error there {least:.1} to {most:.1} %")]);
}

const HEADER: &str = "kind,prefill_batch,prefill_tokens,prefill_context,decode_batch,decode_context,ms";

/// A sound file: two sizes and two contexts of each kind, then one mixed pass.
const ROWS: [&str; 9] = [
    "prefill,1,16,0,0,0,5.0",
    "prefill,1,1024,0,0,0,20.0",
    "prefill,1,16,2048,0,0,5.5",
    "prefill,1,1024,2048,0,0,24.0",
    "decode,0,0,0,1,16,4.5",
    "decode,0,0,0,1,4096,5.0",
    "decode,0,0,0,64,16,6.0",
    "decode,0,0,0,64,4096,14.0",
    "mixed,1,16,0,64,16,7.0",
];

/// What a file with line `line` replaced by `text` is refused with; lines count from 1, the header is the
/// first.
fn refusal(line: usize, text: &str) -> String {
    let mut lines: Vec<&str> = [HEADER].into_iter().chain(ROWS).collect();
    lines[line - 1] = text;
    csv::tables("p.csv", &lines.join("\n")).expect_err(text).to_string()
}

#[test]
fn bad_files_are_refused_with_the_line() {
    assert!(csv::tables("p.csv", &[HEADER].into_iter().chain(ROWS).collect::<Vec<_>>().join("\n")).is_ok());
    for (line, text, message) in [
        (1, "kind,tokens,ms", "p.csv:1: the header is wrong"),
        (3, "prefill,1,1024,0", "p.csv:3: the line has 4 columns, the header 7"),
        (3, "prefil,1,1024,0,0,0,20.0", "p.csv:3: unknown kind \"prefil\""),
        (3, "prefill,1,1024,0,0,0,-20.0", "p.csv:3: \"-20.0\": \"ms\" must be above 0 and at most a day"),
        (3, "prefill,1,1024,0,0,0,NaN", "p.csv:3: \"NaN\": \"ms\" must be above 0"),
        (3, "prefill,1,1024,0,0,0,1e12", "p.csv:3: \"1e12\": \"ms\" must be above 0 and at most a day"),
        (3, "prefill,1,many,0,0,0,20", "p.csv:3: \"many\" is not a whole number"),
        (3, "prefill,1,1024,0,4,0,20", "p.csv:3: the numbers are not those of a prefill pass"),
        (3, "prefill,1,16,0,0,0,20", "p.csv:3: the same pass as in line 2"),
        (3, "prefill,1,8,0,0,0,20", "p.csv:3: out of order: line 2 belongs after it"),
        (3, "", "p.csv:4: a hole: there is no prefill row of size 1024 with context 0"),
        (8, "", "p.csv:7: a hole: there is no decode row of size 64 with context 16"),
        (6, "decode,0,0,0,1,16,0.0045", "p.csv:6: the shortest decode pass takes 0.0045 ms"),
    ] {
        let found = refusal(line, text);
        assert!(found.starts_with(message), "{text}: {found}");
    }
    let only = |kind: &str| {
        let rows = ROWS.into_iter().filter(|row| !row.starts_with(kind));
        let text = [HEADER].into_iter().chain(rows).collect::<Vec<_>>().join("\n");
        csv::tables("p.csv", &text).expect_err(kind).to_string()
    };
    assert!(only("decode").starts_with("p.csv:6: no row of kind decode"), "{}", only("decode"));
    assert!(only("prefill").starts_with("p.csv:6: no row of kind prefill"), "{}", only("prefill"));
}

#[test]
fn bad_profiles_are_refused_with_the_line() {
    let good = include_str!("../../../../../profiles/llama31-8b-h200-tp1-bf16.json");
    for (from, to, message) in [
        ("wavetank-profile/1", "other/1", "p.json:2: \"schema\" must be"),
        ("\"unit\":\"ms\"", "\"unit\":\"us\"", "p.json:3: \"unit\" must be \"ms\""),
        ("\"tokens\":[1,2,4", "\"tokens\":[1,4,2", "p.json:13: \"tokens\" must ascend: 4 comes before 2"),
        ("\"tokens\":[1,2,4", "\"tokens\":[2,4", "p.json:14: \"token_ms\" has 103 entries for 102"),
        ("\"token_ms\":[4.", "\"token_ms\":[-4.", "p.json:14: \"token_ms\" holds -4."),
        ("\"token_ms\":[4.", "\"token_ms\":[4e9,4.", "p.json:14: \"token_ms\" holds 4000000000"),
        ("\"prefill_attn_ms\":[[", "\"prefill_attn_ms\":[[null,", "p.json:19: \"prefill_attn_ms\" has"),
        ("\"tp\":1", "\"tp\":1,\"tq\":1", "p.json:"),
    ] {
        assert!(good.contains(from), "{from}");
        let found = Profile::parse("p.json", &good.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(found.starts_with(message), "{to}: {found}");
    }
    let mut holed: Profile = Profile::parse("p.json", good).unwrap();
    holed.tables.prefill_attn_ms[3][4] = None;
    assert!(holed.tables.check().unwrap_err().1.contains("a hole at"), "{:?}", holed.tables.check());
}

#[test]
fn unknown_profiles_list_the_known_ones() {
    let config = Config { profile: Some("llama9".to_owned()), ..Config::default() };
    let message = config.build().err().unwrap().to_string();
    assert!(message.contains("llama31-8b-h200-tp1-bf16"), "{message}");
    let message = Config::default().build().err().unwrap().to_string();
    assert!(message.contains("give \"profile\" or \"path\""), "{message}");
}

/// No pass gets shorter with more tokens, more requests or longer ones, also beyond the tables.
#[test]
fn more_work_takes_no_less_time() {
    for built_in in profiles() {
        let grid = built(Some(built_in.name), None);
        let mut last = 0.0;
        for tokens in 1..40_000 {
            let ms = priced(&grid, [1, tokens, 1024, 0, 0]);
            assert!(ms >= last, "{}: {tokens} tokens", built_in.name);
            last = ms;
        }
        for requests in 1..600 {
            let run =
                |requests: u32| [100, 5000, 140_000].map(|length| priced(&grid, [0, 0, 0, requests, length]));
            let (few, more) = (run(requests), run(requests + 1));
            assert!(few.is_sorted() && few.iter().zip(more).all(|(a, b)| *a <= b), "{}", built_in.name);
        }
    }
}

#[test]
fn time_beyond_the_tables_is_told_apart() {
    let grid = built(Some("llama31-8b-h200-tp1-bf16"), None);
    let [near, far] = [[[1, 100, 0, 0, 0], [0, 0, 0, 8, 100]], [[1, 40_000, 0, 0, 0], [0, 0, 0, 600, 100]]]
        .map(|shapes| shapes.map(|shape| priced(&grid, shape)).iter().sum::<f64>());
    let found = grid.provenance().unwrap();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b;
    assert!(close(found.total_ms, near + far), "{found:?}");
    assert!(close(found.extrapolated_ms, far - 2.0 * grid.host_ms), "{found:?}");
    assert!(close(found.fitted_ms, 4.0 * grid.host_ms) && found.error_ms > 0.0, "{found:?}");
}
