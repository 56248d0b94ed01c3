//! A tier as a table: every key is a row of [`KEYS`].

use serde_json::{Map, Value};
use wavetank_model::{Error, ErrorKind, Result, size};
use wavetank_sim::media::MediumConfig;
use wavetank_sim::{EngineConfig, TierConfig, TierLoad, TierScope, TierUnit, TierWrite};

use super::{first_load, medium};
use crate::keys::{self, boolean, expected, sets, text};

/// A tier of which some may be left open.
#[derive(Default)]
pub(super) struct Draft {
    name: Option<String>,
    capacity_bytes: Option<u64>,
    medium: Option<MediumConfig>,
    scope: TierScope,
    write: Option<TierWrite>,
    load: Option<TierLoad>,
    unit: Option<TierUnit>,
}

/// Every key, alphabetical.
const KEYS: &[keys::Key<Draft>] = &[
    sets("capacity", "how much it holds: 64GiB", |draft, value| {
        let bytes = size::of(text(value)?);
        let bytes = expected(value, bytes, "a number and a unit, as 100GiB, 1.5TiB or 500MB (G is GiB)")?;
        draft.capacity_bytes = Some(bytes);
        Ok(())
    }),
    sets("load", "what a load holds up: delay or overlap", |draft, value| {
        draft.load = Some(word(value, &[("delay", TierLoad::Delay), ("overlap", TierLoad::Overlap)])?);
        Ok(())
    }),
    sets("medium", "what it is kept on", |draft, value| {
        draft.medium = Some(medium::of_json(value).map_err(|error| error.to_string())?);
        Ok(())
    }),
    sets("name", "what it is called", |draft, value| {
        draft.name = Some(text(value)?.to_owned());
        Ok(())
    }),
    sets("shared", "whether all workers of the pool have one", |draft, value| {
        draft.scope = if boolean(value)? { TierScope::Shared } else { TierScope::Worker };
        Ok(())
    }),
    sets("unit", "what moves at once: batch or object", |draft, value| {
        draft.unit = Some(word(value, &[("batch", TierUnit::Batch), ("object", TierUnit::Object)])?);
        Ok(())
    }),
    sets("write", "what is written: through or evict", |draft, value| {
        draft.write = Some(word(value, &[("through", TierWrite::Through), ("evict", TierWrite::Evict)])?);
        Ok(())
    }),
];

fn word<T: Copy>(value: &Value, words: &[(&str, T)]) -> Result<T, String> {
    let typed = text(value)?;
    let known = words.iter().find(|(word, _)| *word == typed).map(|(_, meant)| *meant);
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    expected(value, known, &names.join(" or "))
}

/// Reads a table.
pub(super) fn draft(table: &Map<String, Value>) -> Result<Draft> {
    let mut draft = Draft::default();
    let (mut findings, _) = keys::enter(KEYS, table, &mut draft);
    let missing = [
        ("name", table.get("name").is_none()),
        ("capacity", table.get("capacity").is_none()),
        ("medium", table.get("medium").is_none()),
    ];
    findings.extend(missing.iter().filter(|(_, open)| *open).map(|(key, _)| format!("\"{key}\" is missing")));
    let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    match Error::of_all(ErrorKind::Usage, "no tier", &findings) {
        // A finding about a medium says what to do itself.
        Some(error) if findings.iter().any(|finding| finding.contains("\nhint: ")) => Err(error),
        Some(error) => Err(error.hint(format!("keys of a tier: {}", known.join(", ")))),
        None => Ok(draft),
    }
}

impl Draft {
    /// The tier at a place from the fastest, with what was left open as the engine's own tiers are: vLLM's
    /// connector delays requests, HiCache overlaps loads with compute; what is behind holds objects that the
    /// tier above gives up.
    pub(super) fn settle(self, place: usize, engine: &EngineConfig) -> TierConfig {
        let is_first = place == 0;
        let open = "checked when it was read";
        TierConfig {
            name: self.name.expect(open),
            capacity_bytes: self.capacity_bytes.expect(open),
            medium: self.medium.expect(open),
            scope: self.scope,
            write: self.write.unwrap_or(if is_first { TierWrite::Through } else { TierWrite::Evict }),
            load: self.load.unwrap_or(if is_first {
                first_load(self.scope, engine)
            } else {
                TierLoad::Delay
            }),
            unit: self.unit.unwrap_or(if is_first { TierUnit::Batch } else { TierUnit::Object }),
        }
    }
}
