//! What a profile holds, how sure its tables are, and the file it is written as.

use serde_json::Value;
use wavetank_model::Result;

use super::csv;
use super::profile::{Profile, Tables};
use super::table::Curve;
use crate::survey::{Axis, Survey};

/// The keys of a file in their order.
const KEYS: &[&str] = &[
    "schema",
    "unit",
    "model",
    "gpu",
    "engine",
    "tp",
    "weight_dtype",
    "kv_dtype",
    "source",
    "licence",
    "host_ms",
    "tokens",
    "token_ms",
    "seqs",
    "seq_ms",
    "new",
    "ctx",
    "prefill_attn_ms",
    "batch",
    "dctx",
    "decode_attn_ms",
];

impl Profile {
    /// Reads a profile, or a CSV of measured passes, which says nothing about model and machine.
    pub fn read(place: &str, text: &str) -> Result<Self> {
        if text.trim_start().starts_with('{') {
            return Self::parse(place, text);
        }
        Ok(Self::unknown(format!("passes of {place}"), csv::tables(place, text)?))
    }

    /// The file, one key per line.
    pub fn text(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or(Value::Null);
        let lines: Vec<String> = KEYS.iter().map(|&key| format!("\"{key}\":{}", value[key])).collect();
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }

    /// Its tables. Errors are fractions of a step: one prompt, or one decode batch, with the host.
    pub fn survey(&self) -> Vec<Survey> {
        let tables = &self.tables;
        let measured = tables.measured();
        let [token_ms, seq_ms, prefill, decode] = tables.repaired();
        let (token, sequence) = (Curve::of(&tables.tokens, &token_ms), Curve::of(&tables.seqs, &seq_ms));
        let plain = |tokens: u32, requests: u32| {
            token.at(u64::from(tokens)) + sequence.at(u64::from(requests)) + self.host_ms
        };
        let Tables { tokens, seqs, new, ctx, batch, dctx, .. } = tables;
        let shapes: [(&'static str, Vec<Axis>, &[f64]); 4] = [
            ("tokens", vec![Axis::of("tokens", tokens)], &token_ms),
            ("requests", vec![Axis::of("requests", seqs)], &seq_ms),
            ("prefill attention", vec![Axis::of("new tokens", new), Axis::of("context", ctx)], &prefill),
            ("decode attention", vec![Axis::of("requests", batch), Axis::of("length", dctx)], &decode),
        ];
        let step = |table: usize, at: usize| match table {
            0 => plain(tokens[at], 1),
            1 => plain(seqs[at], seqs[at]),
            2 => plain(new[at / ctx.len()], 1) + prefill[at],
            _ => plain(batch[at / dctx.len()], batch[at / dctx.len()]) + decode[at],
        };
        let survey = |(table, (name, axes, repaired)): (usize, (&'static str, Vec<Axis>, &[f64]))| {
            let raw = &measured[table];
            let used: Vec<_> = raw.iter().zip(repaired).map(|(raw, &ms)| raw.map(|_| ms)).collect();
            Survey::of_steps(name, axes, &used, |at| step(table, at))
                .repaired(raw, repaired, |at| step(table, at))
        };
        shapes.into_iter().enumerate().map(survey).collect()
    }
}
