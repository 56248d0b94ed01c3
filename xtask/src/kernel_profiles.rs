//! The built-in kernel profiles, from the LLMServingSim measurements of vLLM in `../shared`.
//!
//! Of every table only what the timing model `kernels` reads is kept: attention at powers of two and the
//! finer lengths of the smallest chunk; of the skew measurements one row per batch, which says what they sum
//! up to.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

const RUNS: &str = "../shared/data/vllm-runs";
const FOLDER: &str = "profiles/kernels";
const NAMES: &[&str] = &[
    "rtx4090-llama-3.1-8b",
    "rtxpro6000-llama-3.1-8b",
    "rtxpro6000-qwen3-30b-a3b-dp2-ep2",
    "rtxpro6000-qwen3-32b-tp2",
];
const ATTENTION: [&str; 5] = ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"];
/// Contexts and prompts of skew rows that count: those of the timing model.
const SKEW_LIMITS: (f64, f64) = (4000.0, 2048.0);

pub(crate) fn write() -> Result<(), String> {
    fs::create_dir_all(FOLDER).map_err(|error| format!("{FOLDER}: {error}"))?;
    for name in NAMES {
        let path = format!("{FOLDER}/{name}.json.gz");
        let failed = |error: std::io::Error| format!("{path}: {error}");
        let text = profile(name)?.to_string();
        let mut file = GzEncoder::new(File::create(&path).map_err(failed)?, Compression::best());
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.finish().map_err(failed)?;
        println!("{path}");
    }
    Ok(())
}

fn profile(name: &str) -> Result<Value, String> {
    let path = format!("{RUNS}/{name}/run.json");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let run: Value = serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
    let table = |table: &str| Csv::read(&format!("{RUNS}/{name}/profile/{table}.csv.gz"));
    let mut tables = Map::new();
    tables.insert("attention".to_owned(), table("attention")?.attention()?.into());
    tables.insert("dense".to_owned(), table("dense")?.kept(&["layer", "tokens", "time_us"])?.into());
    let per_sequence = table("per_sequence")?.kept(&["layer", "sequences", "time_us"])?;
    tables.insert("per_sequence".to_owned(), per_sequence.into());
    tables.insert("skew".to_owned(), table("skew")?.skew()?.into());
    if run["model_config"]["num_experts"].is_u64() {
        let moe = table("moe")?.kept(&["tokens", "activated_experts", "time_us"])?;
        tables.insert("moe".to_owned(), moe.into());
    }
    let version = run["vllm_version"].as_str().unwrap_or_default();
    Ok(json!({
        "schema": "wavetank-kernels/1",
        "model": run["model"],
        "hardware": run["hardware"],
        "engine": format!("vLLM {version}"),
        "source": format!("LLMServingSim measurements of vLLM {version}"),
        "licence": "MIT, Copyright (c) 2024, CASYS Lab at KAIST",
        "parameters": parameters(&run),
        "tables": tables,
    }))
}

/// What the timing model needs to know beside the tables.
fn parameters(run: &Value) -> Value {
    let (engine, model) = (&run["engine"], &run["model_config"]);
    let tp = engine["tensor_parallel_size"].as_u64().unwrap_or(1);
    let mut parameters = json!({
        "layers": model["num_hidden_layers"],
        "hidden": model["hidden_size"],
        "tp": tp,
        "max_num_seqs": engine["max_num_seqs"],
    });
    if model["num_experts"].is_u64() {
        let spread = engine["enable_expert_parallel"] == json!(true);
        let ranks = tp * engine["data_parallel_size"].as_u64().unwrap_or(1);
        parameters["experts"] = model["num_experts"].clone();
        parameters["experts_per_token"] = model["num_experts_per_tok"].clone();
        parameters["ranks"] = json!(if spread { ranks } else { 1 });
    }
    parameters
}

/// A table with a header line.
struct Csv {
    place: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Csv {
    fn read(path: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{path}: {error}");
        let mut text = String::new();
        GzDecoder::new(File::open(path).map_err(failed)?).read_to_string(&mut text).map_err(failed)?;
        let mut rows = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let columns = rows.next().unwrap_or_default();
        Ok(Self { place: path.to_owned(), columns, rows: rows.collect() })
    }

    fn column(&self, name: &str) -> Result<usize, String> {
        let found = self.columns.iter().position(|column| column == name);
        found.ok_or_else(|| format!("{}: the column \"{name}\" is missing", self.place))
    }

    /// The named columns of every row; the last is a time.
    fn kept(&self, names: &[&str]) -> Result<String, String> {
        let columns: Vec<usize> = names.iter().map(|name| self.column(name)).collect::<Result<_, _>>()?;
        let mut text = format!("{}\n", names.join(","));
        for row in &self.rows {
            let cells: Vec<&str> = columns.iter().map(|&at| row[at].as_str()).collect();
            let [before @ .., us] = &cells[..] else { continue };
            let us: f64 = us.parse().map_err(|_| format!("{}: \"{us}\"", self.place))?;
            text += &format!("{},{}\n", before.join(","), rounded(us));
        }
        Ok(text)
    }

    fn numbers<const N: usize>(&self, names: [&str; N]) -> Result<Vec<[f64; N]>, String> {
        let mut columns = [0; N];
        for (column, name) in columns.iter_mut().zip(names) {
            *column = self.column(name)?;
        }
        let cell = |text: &str| text.parse::<f64>().map_err(|_| format!("{}: \"{text}\"", self.place));
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let mut numbers = [0.0; N];
            for (number, &column) in numbers.iter_mut().zip(&columns) {
                *number = cell(&row[column])?;
            }
            rows.push(numbers);
        }
        Ok(rows)
    }

    fn attention(&self) -> Result<String, String> {
        let rows = self.numbers(ATTENTION)?;
        let power = |number: f64| number == 0.0 || (number as u64).is_power_of_two();
        let chunks = rows.iter().map(|row| row[0]).filter(|&chunk| chunk > 0.0 && power(chunk));
        let smallest = chunks.fold(f64::INFINITY, f64::min);
        let mut text = format!("{}\n", ATTENTION.join(","));
        for [chunk, context, batch, length, us] in rows {
            let finer = chunk == 0.0 || (chunk == smallest && context == 0.0);
            if power(chunk) && power(context) && power(batch) && (finer || power(length)) {
                text += &format!("{chunk},{context},{batch},{length},{}\n", rounded(us));
            }
        }
        Ok(text)
    }

    /// By batch, how much of the way from the mean to the longest context its time goes.
    fn skew(&self) -> Result<String, String> {
        let regime = self.column("regime")?;
        let rows = self.numbers_of_pure(regime)?;
        let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for [batch, prompt, mean_length, mean, longest, skewed] in rows {
            if mean_length < SKEW_LIMITS.0 && prompt <= SKEW_LIMITS.1 {
                let (above, whole) = sums.entry(batch as u64).or_default();
                *above += skewed - mean;
                *whole += longest - mean;
            }
        }
        let mut text = "regime,n,kp,kv_mean,t_mean_us,t_max_us,t_skew_us\n".to_owned();
        for (batch, (above, whole)) in sums {
            let part = if whole > 0.0 { (above / whole).clamp(0.0, 1.0) } else { 0.0 };
            text += &format!("pure,{batch},0,0,0,1,{}\n", rounded(part));
        }
        Ok(text)
    }

    fn numbers_of_pure(&self, regime: usize) -> Result<Vec<[f64; 6]>, String> {
        let rows = self.rows.iter().filter(|row| row[regime] == "pure").cloned().collect();
        let pure = Self { place: self.place.clone(), columns: self.columns.clone(), rows };
        pure.numbers(["n", "kp", "kv_mean", "t_mean_us", "t_max_us", "t_skew_us"])
    }
}

/// Five digits.
fn rounded(number: f64) -> String {
    format!("{number:.4e}").parse::<f64>().unwrap_or(number).to_string()
}
