//! Measured step times: what all tokens of a pass cost, what each request adds, and attention, from tables.
//!
//! A pass with `P` prompt tokens in `k` parts and `D` decodes of mean length `c` takes `token(P + D) +
//! sequence(k + D) + prefill attention + decode attention(D, c) + host_ms`. Prefill attention is the sum over
//! the parts, with the cost of starting the kernel, that of one token, counted once. METHODOLOGY.md
//! ("Measured profiles and roofline") has the errors of this form.

mod csv;
mod profile;
mod survey;
mod table;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::rc::Rc;

use serde::Deserialize;
use wavetank_model::{Error, Result};

use super::{
    Chunk, DecodeBatch, Entry, Pass, PassTime, Pricing, Timing, configure, decode_part_ms, file_or_profile,
};
use crate::provenance::{Ledger, Provenance};
use profile::{A_DAY_MS, Compiled, Tables};
pub use profile::{BuiltIn, Profile, profiles};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "grid",
    about: "measured step times, of a built-in profile (`wavetank list profiles`) or a file",
    pricing: Pricing::Fused,
    argument: Some("profile"),
    reads: |parameters| {
        let is_built_in = |name: &str| profiles().iter().any(|built_in| built_in.name == name);
        file_or_profile(parameters, is_built_in)
    },
    build: |parameters| Ok(Rc::new(configure::<Config>(ENTRY.name, parameters)?.build()?)),
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    /// A built-in profile, or a file.
    profile: Option<String>,
    /// A file: a profile, or a CSV of measured passes.
    path: Option<String>,
    /// What every pass takes beside the tables; the profile's own where it is not given.
    host_ms: Option<f64>,
}

impl Config {
    fn build(self) -> Result<Grid> {
        let (tables, measured_host_ms, tp) = match (self.profile.as_deref(), self.path.as_deref()) {
            (Some(name), None) => match profiles().iter().find(|built_in| built_in.name == name) {
                Some(BuiltIn { profile, .. }) => (profile.tables.clone(), profile.host_ms, profile.tp),
                None if name.contains(['/', '\\', '.']) => read(Path::new(name))?,
                None => return Err(unknown(name)),
            },
            (None, Some(path)) => read(Path::new(path))?,
            (None, None) | (Some(_), Some(_)) => {
                return Err(Error::usage("timing model \"grid\": give \"profile\" or \"path\"")
                    .hint(format!("built-in profiles: {}", names())));
            }
        };
        let host_ms = self.host_ms.unwrap_or(measured_host_ms);
        if !(0.0..=A_DAY_MS).contains(&host_ms) {
            return Err(Error::usage("timing model \"grid\": \"host_ms\" must be from 0 to a day"));
        }
        Ok(Grid { tables: tables.compile(), host_ms, tp, ledger: Ledger::default() })
    }
}

fn names() -> String {
    profiles().iter().map(|built_in| built_in.name).collect::<Vec<_>>().join(", ")
}

fn unknown(name: &str) -> Error {
    Error::usage(format!("timing model \"grid\": unknown profile \"{name}\""))
        .hint(format!("known: {}; a file is named by its path", names()))
}

/// The tables of a file, what a pass takes beside them, and the GPUs it was measured on.
fn read(path: &Path) -> Result<(Tables, f64, u32)> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::io(path, error).hint(format!("\"grid\" takes a file or a built-in profile: {}", names()))
    })?;
    let place = path.display().to_string();
    if text.trim_start().starts_with('{') {
        let profile = Profile::parse(&place, &text)?;
        return Ok((profile.tables, profile.host_ms, profile.tp));
    }
    Ok((csv::tables(&place, &text)?, 0.0, 1))
}

struct Grid {
    tables: Compiled,
    host_ms: f64,
    tp: u32,
    ledger: Ledger,
}

impl Grid {
    /// What all tokens and requests of a pass cost, without attention.
    #[inline]
    fn plain_ms(&self, tokens: u64, requests: u64) -> f64 {
        self.tables.token.at(tokens) + self.tables.sequence.at(requests) + self.host_ms
    }

    /// Notes `passes` passes of `total_ms` each, of which the tables miss `error_ms`.
    fn note(&self, passes: usize, total_ms: f64, error_ms: f64, beyond: bool) {
        let entry = Provenance::of_tables(total_ms, self.host_ms, error_ms, beyond);
        self.ledger.enter(entry.times(passes));
    }

    /// Attention of prompts: each for itself, but the kernel starts once.
    fn prefill_attention_ms(&self, chunks: &[Chunk]) -> f64 {
        let prefill = &self.tables.prefill;
        let (mut work_ms, mut start_ms) = (0.0, 0.0f64);
        for chunk in chunks.iter().filter(|chunk| chunk.tokens > 0) {
            let context = f64::from(chunk.context);
            let one_ms = prefill.at(1.0, context);
            work_ms += (prefill.at(f64::from(chunk.tokens), context) - one_ms).max(0.0);
            start_ms = start_ms.max(one_ms);
        }
        work_ms + start_ms
    }
}

impl Timing for Grid {
    fn pass_ms(&self, pass: Pass<'_>) -> PassTime {
        let DecodeBatch { requests, kv_tokens, .. } = pass.decode;
        let (mut tokens, mut parts) = (0u64, 0u64);
        for chunk in pass.chunks.iter().filter(|chunk| chunk.tokens > 0) {
            tokens += u64::from(chunk.tokens);
            parts += 1;
        }
        if parts == 0 {
            return PassTime { prompt_ms: 0.0, decode_ms: decode_part_ms(self, pass.decode) };
        }
        let decodes = u64::from(requests);
        let mut ms =
            self.plain_ms(tokens + decodes, parts + decodes) + self.prefill_attention_ms(pass.chunks);
        let mut error_ms = self.tables.token.error(tokens + decodes);
        for chunk in pass.chunks.iter().filter(|chunk| chunk.tokens > 0) {
            error_ms += self.tables.prefill.error(chunk.tokens.into(), chunk.context.into());
        }
        let mut beyond = tokens + decodes > self.tables.token.last()
            || pass
                .chunks
                .iter()
                .any(|chunk| self.tables.prefill.is_beyond(chunk.tokens.into(), chunk.context.into()));
        if decodes > 0 {
            let length = kv_tokens as f64 / f64::from(requests);
            ms += self.tables.decode.at(f64::from(requests), length);
            beyond |= self.tables.decode.is_beyond(f64::from(requests), length);
            error_ms += self.tables.decode.error(f64::from(requests), length);
        }
        self.note(1, ms, error_ms, beyond);
        PassTime { prompt_ms: ms, decode_ms: 0.0 }
    }

    fn decode_run_ms(&self, first: DecodeBatch, out: &mut [f64]) {
        let requests = u64::from(first.requests);
        let mean_of = 1.0 / f64::from(first.requests);
        let length = |pass: u32| (first.kv_tokens + requests * u64::from(pass)) as f64 * mean_of;
        let plain_ms = self.plain_ms(requests, requests);
        let decode = &self.tables.decode;
        decode.line(f64::from(first.requests)).fill(plain_ms, length, out);
        let (batch, middle) = (f64::from(first.requests), out.len() / 2);
        let beyond = decode.is_beyond(batch, length(out.len() as u32));
        let error_ms = self.tables.token.error(requests) + decode.error(batch, length(middle as u32));
        self.note(out.len(), out[middle], error_ms, beyond);
    }

    fn gpus(&self) -> u32 {
        self.tp
    }

    fn provenance(&self) -> Option<Provenance> {
        Some(self.ledger.total())
    }
}
