//! The profile files of the `grid` model: measured times as four tables, where they come from, and what they
//! are refused for. `profiles/` of the repository holds the built-in ones.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use wavetank_model::{Error, Result};

use super::table::{Curve, Surface, isotonic, isotonic_columns, isotonic_rows};

/// Measured times of one model on one machine.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    schema: String,
    unit: String,
    /// The model, as on Hugging Face.
    pub model: String,
    /// A row of the table of accelerators.
    pub gpu: String,
    /// The engine, or its kernels.
    pub engine: String,
    /// GPUs of a worker.
    pub tp: u32,
    /// Type of the weights.
    pub weight_dtype: String,
    /// Type of the KV.
    pub kv_dtype: String,
    /// Who measured.
    pub source: String,
    /// Under which terms the numbers may be used.
    pub licence: String,
    /// What every pass takes beside the tables.
    #[serde(default)]
    pub host_ms: f64,
    #[serde(flatten)]
    pub(super) tables: Tables,
}

/// The four tables.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Tables {
    /// Tokens of a pass.
    pub(super) tokens: Vec<u32>,
    pub(super) token_ms: Vec<f64>,
    /// Requests of a pass.
    pub(super) seqs: Vec<u32>,
    pub(super) seq_ms: Vec<f64>,
    /// New tokens of a prompt, by tokens known before.
    pub(super) new: Vec<u32>,
    pub(super) ctx: Vec<u32>,
    pub(super) prefill_attn_ms: Vec<Vec<Option<f64>>>,
    /// Requests that decode, by their mean length.
    pub(super) batch: Vec<u32>,
    pub(super) dctx: Vec<u32>,
    pub(super) decode_attn_ms: Vec<Vec<f64>>,
}

/// Tables ready for use.
pub(super) struct Compiled {
    pub(super) token: Curve,
    pub(super) sequence: Curve,
    pub(super) prefill: Surface,
    pub(super) decode: Surface,
}

const SCHEMA: &str = "wavetank-profile/1";
/// No pass takes longer; a larger number is in another unit.
pub(super) const A_DAY_MS: f64 = 86_400_000.0;
/// No axis reaches further.
pub(super) const MOST: u32 = 1 << 20;

impl Profile {
    /// A profile of `tables` whose model and machine nobody told.
    pub(super) fn unknown(source: String, tables: Tables) -> Self {
        let [model, gpu, engine, weight_dtype, kv_dtype, licence] = [(); 6].map(|()| "unknown".to_owned());
        let (schema, unit) = (SCHEMA.to_owned(), "ms".to_owned());
        Self {
            schema,
            unit,
            model,
            gpu,
            engine,
            tp: 1,
            weight_dtype,
            kv_dtype,
            source,
            licence,
            host_ms: 0.0,
            tables,
        }
    }

    /// Reads and checks a profile; errors carry `place` and the line.
    pub(super) fn parse(place: &str, text: &str) -> Result<Self> {
        let profile: Self = serde_json::from_str(text).map_err(|error| {
            Error::input(format!("not a timing profile: {error}"))
                .at(format!("{place}:{}", error.line()))
                .hint(format!("a profile is a JSON object with \"schema\": \"{SCHEMA}\", or a CSV file"))
        })?;
        profile.check().map_err(|(key, message)| {
            let before = text.find(&format!("\"{key}\"")).map_or("", |at| &text[..at]);
            Error::input(message).at(format!("{place}:{}", before.matches('\n').count() + 1))
        })?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        if self.schema != SCHEMA {
            return Err(("schema", format!("\"schema\" must be \"{SCHEMA}\", not \"{}\"", self.schema)));
        }
        if self.unit != "ms" {
            return Err(("unit", format!("\"unit\" must be \"ms\", not \"{}\"", self.unit)));
        }
        if self.tp == 0 {
            return Err(("tp", "\"tp\" must be 1 or more".to_owned()));
        }
        times("host_ms", [Some(self.host_ms)].into_iter())?;
        self.tables.check()
    }
}

impl Tables {
    /// What is wrong, with the key it is wrong at.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        for (key, points) in [
            ("tokens", &self.tokens),
            ("seqs", &self.seqs),
            ("new", &self.new),
            ("ctx", &self.ctx),
            ("batch", &self.batch),
            ("dctx", &self.dctx),
        ] {
            axis(key, points)?;
        }
        times("token_ms", self.token_ms.iter().copied().map(Some))?;
        times("seq_ms", self.seq_ms.iter().copied().map(Some))?;
        times("prefill_attn_ms", self.prefill_attn_ms.iter().flatten().copied())?;
        times("decode_attn_ms", self.decode_attn_ms.iter().flatten().copied().map(Some))?;
        length("token_ms", "tokens", self.token_ms.len(), self.tokens.len())?;
        length("seq_ms", "seqs", self.seq_ms.len(), self.seqs.len())?;
        length("prefill_attn_ms", "new", self.prefill_attn_ms.len(), self.new.len())?;
        length("decode_attn_ms", "batch", self.decode_attn_ms.len(), self.batch.len())?;
        for row in &self.prefill_attn_ms {
            length("prefill_attn_ms", "ctx", row.len(), self.ctx.len())?;
        }
        for row in &self.decode_attn_ms {
            length("decode_attn_ms", "dctx", row.len(), self.dctx.len())?;
        }
        self.without_holes()
    }

    /// A cell may be missing where prompt and context together are longer than any that was measured.
    fn without_holes(&self) -> Result<(), (&'static str, String)> {
        let cells =
            self.new.iter().zip(&self.prefill_attn_ms).flat_map(|(new, row)| {
                self.ctx.iter().zip(row).map(move |(ctx, ms)| (*new, *ctx, ms.is_some()))
            });
        let reach = cells.clone().filter(|cell| cell.2).map(|(new, ctx, _)| new + ctx).max().unwrap_or(0);
        for (new, ctx, _) in cells.filter(|cell| !cell.2) {
            if new + ctx <= reach || self.ctx.iter().position(|&point| point == ctx) < Some(2) {
                let message = format!("\"prefill_attn_ms\" has a hole at {new} new tokens, context {ctx}");
                return Err(("prefill_attn_ms", message));
            }
        }
        Ok(())
    }

    /// The values of the four tables as they were measured.
    pub(super) fn measured(&self) -> [Vec<Option<f64>>; 4] {
        let all = |values: &[f64]| values.iter().copied().map(Some).collect();
        let decode = self.decode_attn_ms.concat();
        [all(&self.token_ms), all(&self.seq_ms), self.prefill_attn_ms.concat(), all(&decode)]
    }

    /// Closes the far corner and makes every table rise with its tokens, requests and lengths. The context of
    /// a prompt is left as measured: without one a dearer kernel runs.
    pub(super) fn repaired(&self) -> [Vec<f64>; 4] {
        let (mut token_ms, mut seq_ms) = (self.token_ms.clone(), self.seq_ms.clone());
        isotonic(&mut token_ms);
        isotonic(&mut seq_ms);
        let mut prefill: Vec<f64> =
            self.prefill_attn_ms.iter().flat_map(|row| closed(&self.ctx, row)).collect();
        isotonic_columns(&mut prefill, self.ctx.len());
        let mut decode = self.decode_attn_ms.concat();
        isotonic_rows(&mut decode, self.dctx.len());
        isotonic_columns(&mut decode, self.dctx.len());
        [token_ms, seq_ms, prefill, decode]
    }

    /// The tables, repaired, in the form passes are priced from.
    pub(super) fn compile(self) -> Compiled {
        let [token_ms, seq_ms, prefill, decode] = self.repaired();
        let closed_prefill: Vec<f64> =
            self.prefill_attn_ms.iter().flat_map(|row| closed(&self.ctx, row)).collect();
        Compiled {
            token: Curve::of(&self.tokens, &token_ms).repaired(&self.tokens, &self.token_ms, &token_ms),
            sequence: Curve::of(&self.seqs, &seq_ms),
            prefill: Surface::of(&self.new, &self.ctx, prefill).repaired(&closed_prefill),
            decode: Surface::of(&self.batch, &self.dctx, decode).repaired(&self.decode_attn_ms.concat()),
        }
    }
}

/// A row whose missing end goes on as it was.
fn closed(ctx: &[u32], row: &[Option<f64>]) -> Vec<f64> {
    let mut values: Vec<f64> = Vec::with_capacity(row.len());
    for (at, cell) in row.iter().enumerate() {
        let value = cell.unwrap_or_else(|| {
            let slope = (values[at - 1] - values[at - 2]) / f64::from(ctx[at - 1] - ctx[at - 2]);
            values[at - 1] + slope.max(0.0) * f64::from(ctx[at] - ctx[at - 1])
        });
        values.push(value);
    }
    values
}

fn axis(key: &'static str, points: &[u32]) -> Result<(), (&'static str, String)> {
    if points.len() < 2 {
        return Err((key, format!("\"{key}\" needs two points or more")));
    }
    if let Some(pair) = points.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err((key, format!("\"{key}\" must ascend: {} comes before {}", pair[0], pair[1])));
    }
    match points.last() {
        Some(&last) if last > MOST => Err((key, format!("\"{key}\" reaches {last}, above {MOST}"))),
        _ => Ok(()),
    }
}

fn times(
    key: &'static str,
    mut values: impl Iterator<Item = Option<f64>>,
) -> Result<(), (&'static str, String)> {
    match values.find_map(|value| value.filter(|ms| !(0.0..=A_DAY_MS).contains(ms))) {
        Some(ms) => Err((key, format!("\"{key}\" holds {ms}: times are milliseconds from 0 to a day"))),
        None => Ok(()),
    }
}

fn length(key: &'static str, of: &str, found: usize, points: usize) -> Result<(), (&'static str, String)> {
    if found == points {
        return Ok(());
    }
    Err((key, format!("\"{key}\" has {found} entries for {points} of \"{of}\"")))
}

/// A profile that comes with the program.
pub struct BuiltIn {
    /// As typed.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: String,
    /// What was measured.
    pub profile: Profile,
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../../profiles/", $name, ".json")))),*]
    };
}

const FILES: &[(&str, &str)] = built_in![
    "llama31-70b-h200-tp4-bf16",
    "llama31-70b-h200-tp4-fp8",
    "llama31-70b-h200-tp8-bf16",
    "llama31-70b-h200-tp8-fp8",
    "llama31-8b-h200-tp1-bf16",
    "llama31-8b-h200-tp1-fp8",
    "llama31-8b-h200-tp1-fp8-kv-bf16",
];

/// Every profile that comes with the program, alphabetical.
pub fn profiles() -> &'static [BuiltIn] {
    static PROFILES: OnceLock<Vec<BuiltIn>> = OnceLock::new();
    PROFILES.get_or_init(|| {
        let read = |&(name, text): &(&'static str, &str)| {
            let profile = Profile::parse(name, text).expect("a built-in profile is sound");
            let Profile { model, gpu, tp, weight_dtype, kv_dtype, engine, .. } = &profile;
            let about = format!("{model} on {tp} x {gpu}, {weight_dtype}, KV in {kv_dtype}, {engine}");
            BuiltIn { name, about, profile }
        };
        FILES.iter().map(read).collect()
    })
}
