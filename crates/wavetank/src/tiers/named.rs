//! Tiers in files and programs: flags by name, keys inside a tier, and where files are.

use std::path::Path;

use serde_json::{Map, Value, json};
use wavetank_model::{Error, Result};

use super::{KEY, medium, text};

/// The value of `tier` by name: a text or a table, or several.
pub(crate) fn list(value: &Value) -> Result<Vec<Value>, String> {
    let is_tier = |value: &Value| value.is_string() || value.is_object();
    match value {
        Value::Array(items) if items.iter().all(is_tier) => Ok(items.clone()),
        one if is_tier(one) => Ok(vec![one.clone()]),
        other => Err(format!("must be texts or tables, one for each tier, not {other}")),
    }
}

/// Enters a value under `NAME.KEY` (`disk.capacity`, `disk.medium.gbps`) into the tier of that name.
pub(crate) fn set_inside(tiers: &mut [Value], path: &str, value: &Value) -> Result<()> {
    let (name, keys) = path.split_once('.').ok_or_else(|| {
        Error::usage(format!("\"{path}\" names no key of a tier")).hint("as tier.disk.capacity")
    })?;
    let mut names = Vec::new();
    for tier in tiers {
        let table = table(tier)?;
        let own = table.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if own == name {
            let mut table = Value::Object(table);
            enter(&mut table, keys, value)?;
            *tier = table;
            return Ok(());
        }
        names.push(own);
    }
    Err(Error::usage(format!("there is no tier \"{name}\""))
        .hint(format!("there are: {}; a tier is described before its keys are varied", names.join(", "))))
}

fn table(tier: &Value) -> Result<Map<String, Value>> {
    match tier {
        Value::String(typed) => text::table(typed),
        Value::Object(table) => Ok(table.clone()),
        other => Err(Error::usage(format!("a tier is a text or a table, not {other}"))),
    }
}

fn enter(table: &mut Value, keys: &str, value: &Value) -> Result<()> {
    let mut place = table;
    for key in keys.split('.') {
        if let Value::String(typed) = place {
            *place = json!(medium::of_text(typed)?);
        }
        let Value::Object(inside) = place else {
            return Err(Error::usage(format!("\"{key}\" is inside something that is no table")));
        };
        place = inside.entry(key).or_insert(Value::Null);
    }
    *place = value.clone();
    Ok(())
}

/// The value of a flag with the files of its tiers where `place` says they are; others are as they were.
pub fn relocated(name: &str, value: &Value, place: &dyn Fn(&str) -> String) -> Value {
    let keys: Vec<&str> = name.split('.').collect();
    match (&keys[..], value) {
        (["tier"] | [_, KEY], Value::Array(items)) => {
            items.iter().map(|item| moved_tier(item, place)).collect()
        }
        (["tier"], one) => moved_tier(one, place),
        (["tier", _, "medium"], one) => moved_medium(one, place),
        (["extra_engine_args" | "prefill_engine_args"], Value::Object(object)) => {
            let mut object = object.clone();
            if let Some(tiers) = object.get_mut(KEY) {
                *tiers = relocated("tier", tiers, place);
            }
            Value::Object(object)
        }
        _ => value.clone(),
    }
}

/// A tier whose files are in `folder`.
pub(super) fn placed(tier: &Value, folder: &Path) -> Value {
    moved_tier(tier, &|path| folder.join(path).display().to_string())
}

fn moved_tier(tier: &Value, place: &dyn Fn(&str) -> String) -> Value {
    match tier {
        Value::String(typed) if typed.starts_with('@') => format!("@{}", place(&typed[1..])).into(),
        Value::String(typed) => match text::table(typed) {
            Ok(table) => moved_tier(&Value::Object(table), place),
            Err(_) => tier.clone(),
        },
        Value::Object(table) => {
            let mut table = table.clone();
            if let Some(medium) = table.get_mut("medium") {
                *medium = moved_medium(medium, place);
            }
            Value::Object(table)
        }
        other => other.clone(),
    }
}

fn moved_medium(medium: &Value, place: &dyn Fn(&str) -> String) -> Value {
    match medium {
        Value::String(typed) => match medium::file(typed) {
            Some(file) => medium::with_file(typed, &place(file)).into(),
            None => medium.clone(),
        },
        Value::Object(table) => {
            let mut table = table.clone();
            if let Some(Value::String(path)) = table.get_mut("profile") {
                *path = place(path);
            }
            Value::Object(table)
        }
        other => other.clone(),
    }
}

/// The files that tiers name.
pub(crate) fn files<'t>(tiers: &'t [Value]) -> impl Iterator<Item = &'t Path> {
    let of = |tier: &'t Value| match tier {
        Value::String(typed) if typed.starts_with('@') => Some(&typed[1..]),
        Value::String(typed) => {
            let medium = typed.split_once(':').and_then(|(_, rest)| rest.split(',').next());
            medium.and_then(medium::file)
        }
        tier => match tier.get("medium")? {
            Value::String(typed) => medium::file(typed),
            table => table.get("profile")?.as_str(),
        },
    };
    tiers.iter().filter_map(of).map(Path::new)
}
