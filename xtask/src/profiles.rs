//! `profiles`: writes the built-in timing profiles again from the AISimulate grids in `../shared`, then those
//! of kernels.
//!
//! A grid comes with its parts: time by tokens, by requests, and of attention. Where only whole passes were
//! exported, tokens and requests are those of the grid with the same weights, and attention is the rest.

use std::fs;

use serde_json::{Map, Value, json};

use crate::{Failure, kernel_profiles, no_arguments};

const GRIDS: &str = "../shared/data/timing/aic-grids";

struct Row {
    name: &'static str,
    /// The grid whose parts are used.
    parts: &'static str,
    /// The whole passes attention is taken from.
    passes: Option<&'static str>,
    weight_dtype: &'static str,
    kv_dtype: &'static str,
}

const fn row(name: &'static str, parts: &'static str, dtype: &'static str) -> Row {
    Row { name, parts, passes: None, weight_dtype: dtype, kv_dtype: dtype }
}

const ROWS: &[Row] = &[
    row("llama31-70b-h200-tp4-bf16", "llama31_70b_bf16_h200_vllm_tp4", "bf16"),
    row("llama31-70b-h200-tp4-fp8", "llama31_70b_fp8_h200_vllm_tp4", "fp8"),
    row("llama31-70b-h200-tp8-bf16", "llama31_70b_bf16_h200_vllm_tp8", "bf16"),
    row("llama31-70b-h200-tp8-fp8", "llama31_70b_fp8_h200_vllm_tp8", "fp8"),
    row("llama31-8b-h200-tp1-bf16", "llama31_8b_bf16_h200_vllm_tp1", "bf16"),
    row("llama31-8b-h200-tp1-fp8", "llama31_8b_fp8_h200_vllm_tp1", "fp8"),
    Row {
        name: "llama31-8b-h200-tp1-fp8-kv-bf16",
        parts: "llama31_8b_fp8_h200_vllm_tp1",
        passes: Some("llama31_8b_fp8gemm_bf16kv_h200_vllm_tp1"),
        weight_dtype: "fp8",
        kv_dtype: "bf16",
    },
];

pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    no_arguments(args)?;
    for row in ROWS {
        let path = format!("profiles/{}.json", row.name);
        fs::write(&path, text(&profile(row)?)).map_err(|error| format!("{path}: {error}"))?;
        println!("{path}");
    }
    Ok(kernel_profiles::write()?)
}

fn profile(row: &Row) -> Result<Vec<(&'static str, Value)>, String> {
    let path = format!("{GRIDS}/decomp_{}.json", row.parts);
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let mut parts: Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
    if let Some(passes) = row.passes {
        attention_of_passes(&mut parts, &format!("{GRIDS}/{passes}.csv"))?;
    }
    let mut part = |key: &str| rounded(parts.remove(key).unwrap_or_default());
    Ok(vec![
        ("schema", json!("wavetank-profile/1")),
        ("unit", json!("ms")),
        ("model", part("model")),
        ("gpu", part("system")),
        ("engine", json!("vLLM 0.24.0 kernels")),
        ("tp", part("tp")),
        ("weight_dtype", json!(row.weight_dtype)),
        ("kv_dtype", json!(row.kv_dtype)),
        ("source", json!("AISimulate 0.13 silicon tables, exported through its Python package")),
        ("licence", json!("Apache-2.0")),
        ("host_ms", json!(0.32)),
        ("tokens", part("tokens")),
        ("token_ms", part("na_ms")),
        ("seqs", part("seqs")),
        ("seq_ms", part("logits_ms")),
        ("new", part("new")),
        ("ctx", part("ctx")),
        ("prefill_attn_ms", part("ca_ms")),
        ("batch", part("batch")),
        ("dctx", part("dctx")),
        ("decode_attn_ms", part("da_ms")),
    ])
}

/// One key per line.
fn text(profile: &[(&str, Value)]) -> String {
    let lines: Vec<String> = profile.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// Numbers with five digits.
fn rounded(value: Value) -> Value {
    match value {
        Value::Array(values) => Value::Array(values.into_iter().map(rounded).collect()),
        Value::Number(number) if number.is_f64() => {
            let digits = format!("{:.4e}", number.as_f64().unwrap_or_default());
            json!(digits.parse::<f64>().unwrap_or_default())
        }
        other => other,
    }
}

/// The columns of the two coordinates of a row, if it is of the kind.
type Coordinates = fn(&[&str]) -> Option<[usize; 2]>;

/// Replaces attention by what whole passes take beyond tokens and requests.
fn attention_of_passes(parts: &mut Map<String, Value>, path: &str) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let token = curve(parts, "tokens", "na_ms");
    let sequence = curve(parts, "seqs", "logits_ms");
    let prefill: Coordinates = |row| (row[0] == "prefill" && row[1] == "1").then_some([2, 3]);
    let decode: Coordinates = |row| (row[0] == "decode").then_some([4, 5]);
    for (keys, columns, requests) in
        [(["new", "ctx", "ca_ms"], prefill, 1), (["batch", "dctx", "da_ms"], decode, 4)]
    {
        let found: Vec<([f64; 2], f64)> = rows
            .iter()
            .filter_map(|row| {
                let at = columns(row)?.map(|column| number(row[column]));
                let plain = at_of(&token, at[0]) + at_of(&sequence, number(row[requests]));
                Some((at, (number(row[6]) - plain).max(0.0)))
            })
            .collect();
        let axis = |of: usize| {
            let mut points: Vec<u64> = found.iter().map(|(at, _)| at[of] as u64).collect();
            points.sort_unstable();
            points.dedup();
            points
        };
        let (sizes, contexts) = (axis(0), axis(1));
        let cell = |size: u64, context: u64| {
            let cell = found.iter().find(|(at, _)| *at == [size as f64, context as f64]);
            cell.map_or(Value::Null, |(_, ms)| json!(ms))
        };
        let row = |&size: &u64| contexts.iter().map(|&context| cell(size, context)).collect::<Vec<_>>();
        let values: Vec<Vec<Value>> = sizes.iter().map(row).collect();
        parts.insert(keys[0].to_owned(), json!(sizes));
        parts.insert(keys[1].to_owned(), json!(contexts));
        parts.insert(keys[2].to_owned(), json!(values));
    }
    Ok(())
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_default()
}

fn curve(parts: &Map<String, Value>, points: &str, values: &str) -> Vec<(f64, f64)> {
    let numbers = |key: &str| -> Vec<f64> {
        parts[key].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    numbers(points).into_iter().zip(numbers(values)).collect()
}

/// Linear between points.
fn at_of(curve: &[(f64, f64)], at: f64) -> f64 {
    let after = curve.partition_point(|point| point.0 <= at).clamp(1, curve.len() - 1);
    let ((x0, y0), (x1, y1)) = (curve[after - 1], curve[after]);
    y0 + (y1 - y0) * (at - x0) / (x1 - x0)
}
