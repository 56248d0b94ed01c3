//! Tiers from the fastest: texts, tables, and files of tables.

use std::path::Path;

use serde_json::{Map, Value};
use wavetank_model::{Error, Result};
use wavetank_sim::{EngineConfig, TierConfig};

use super::{medium, table, text};

/// A table and where it stands.
struct Item {
    place: String,
    table: Map<String, Value>,
}

/// The tiers of `items`; `place` is the flag or key that they come from.
pub(super) fn read(
    items: &[Value],
    place: &str,
    engine: &EngineConfig,
    notes: &mut Vec<String>,
) -> Result<Vec<TierConfig>> {
    let mut all = Vec::new();
    for (number, item) in items.iter().enumerate() {
        match item {
            Value::String(typed) if typed.starts_with('@') => all.extend(file(&typed[1..], place)?),
            Value::String(typed) => {
                let place = format!("{place} {typed}");
                let table = text::table(typed).map_err(|error| error.at(place.clone()))?;
                all.push(Item { place, table });
            }
            Value::Object(table) => {
                all.push(Item { place: format!("{place}[{number}]"), table: table.clone() });
            }
            other => {
                let wrong = format!("must be a text or a table, not {other}");
                return Err(Error::usage(wrong).at(format!("{place}[{number}]")).hint(text::FORM));
            }
        }
    }
    let mut tiers: Vec<TierConfig> = Vec::new();
    for (position, Item { place, table }) in all.into_iter().enumerate() {
        let draft = table::draft(&table).map_err(|error| error.at(place.clone()))?;
        let tier = draft.settle(position, engine);
        notes.extend(medium::note(&tier.medium).map(|note| format!("{place}: {note}")));
        tiers.push(tier);
    }
    Ok(tiers)
}

/// The tables of a file: `[[tier]]` in TOML, or the same in JSON where the name ends so.
fn file(path: &str, place: &str) -> Result<Vec<Item>> {
    let hint = format!("{place} @FILE reads tables [[tier]] with name, capacity and medium");
    let wrong = |what: String| Error::input(what).at(format!("{place} {path}")).hint(hint.clone());
    let content = std::fs::read_to_string(path)
        .map_err(|error| Error::io(Path::new(path), error).hint(hint.clone()))?;
    let parsed = medium::parsed(&content, path).map_err(&wrong)?;
    let Value::Object(mut object) = parsed else { return Err(wrong("not a table".to_owned())) };
    let tables = object.remove("tier").or_else(|| object.remove("tiers"));
    if let Some(other) = object.keys().next() {
        return Err(wrong(format!("unknown key \"{other}\"")));
    }
    let Some(Value::Array(tables)) = tables else { return Err(wrong("there is no [[tier]]".to_owned())) };
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let item = |(number, table): (usize, Value)| match super::named::placed(&table, folder) {
        Value::Object(table) => Ok(Item { place: format!("{path}: tier {}", number + 1), table }),
        other => Err(wrong(format!("a tier is a table, not {other}"))),
    };
    tables.into_iter().enumerate().map(item).collect()
}
