//! What a tier is kept on: a speed, a row of `wavetank list media` with its parameters, or a file.

use std::path::Path;

use serde_json::{Map, Value, json};
use wavetank_model::{Described, Error, Result, nearest, size};
use wavetank_sim::media::{self, MediumConfig};

use crate::profile::tier::read as read_profile;
use crate::timing_arg::literal;

/// What a medium looks like.
const FORMS: &str = "a speed (32GB/s, 100us+10GB/s), a row of `wavetank list media` \
                     (queued:latency_us=100+gbps=10), or a file (of `wavetank profile tier`, or a table)";
const MEASURED: &str = "measured";
const PROFILE: &str = "profile";

/// The medium of a text, or of a table with the name of a row and its parameters.
pub(super) fn of_json(value: &Value) -> Result<MediumConfig> {
    match value {
        Value::String(text) => of_text(text),
        Value::Object(table) => of_table(table.clone(), Path::new("")),
        other => Err(Error::usage(format!("must be a text or a table, not {other}")).hint(FORMS)),
    }
}

/// The medium of a text.
pub(super) fn of_text(text: &str) -> Result<MediumConfig> {
    if let Some(parameters) = speed(text) {
        return checked("queued", parameters);
    }
    let (name, typed) = text.split_once(':').unwrap_or((text, ""));
    if media::ALL.iter().any(|row| row.name == name) {
        return of_table(parameters(name, typed)?, Path::new(""));
    }
    if Path::new(text).is_file() {
        return of_file(text);
    }
    let error = Error::usage(format!("\"{text}\" is no medium and no file"));
    match nearest(name, media::ALL.iter().map(Described::name)) {
        Some(row) => Err(error.hint(format!("did you mean {row}? A medium is {FORMS}"))),
        None => Err(error.hint(format!("a medium is {FORMS}"))),
    }
}

/// The file that a text names, if it names one.
pub(super) fn file(text: &str) -> Option<&str> {
    let (name, typed) = text.split_once(':').unwrap_or((text, ""));
    match media::ALL.iter().any(|row| row.name == name) {
        true => split(typed).find_map(|part| part.strip_prefix("profile=")),
        false => Some(text).filter(|text| speed(text).is_none()),
    }
}

/// The same text with another file.
pub(super) fn with_file(text: &str, path: &str) -> String {
    match file(text).and_then(|file| Some((text.rfind(file)?, file.len()))) {
        Some((at, length)) => format!("{}{path}{}", &text[..at], &text[at + length..]),
        None => text.to_owned(),
    }
}

/// `[LATENCY+]BANDWIDTH`: bandwidth that transfers share, after a latency.
fn speed(text: &str) -> Option<Map<String, Value>> {
    let (latency, bandwidth) = text.split_once('+').map_or((None, text), |(a, b)| (Some(a), b));
    let bytes = size::of(bandwidth.strip_suffix("/s")?)?;
    let mut parameters = Map::from_iter([("gbps".to_owned(), json!(bytes as f64 / 1e9))]);
    if let Some(latency) = latency {
        parameters.insert("latency_us".to_owned(), json!(microseconds(latency)?));
    }
    Some(parameters)
}

fn microseconds(text: &str) -> Option<f64> {
    let units = [("ns", 1e-3), ("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)];
    let (unit, scale) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
    let number = text.strip_suffix(unit)?.trim();
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    number.parse::<f64>().ok().filter(|_| plain).map(|number| number * scale)
}

fn split(typed: &str) -> impl Iterator<Item = &str> {
    typed.split(['+', ';']).filter(|part| !part.is_empty())
}

/// The table of a row and parameters that were typed: `KEY=VALUE`, with `+` or `;` between.
fn parameters(name: &str, typed: &str) -> Result<Map<String, Value>> {
    let mut table = Map::from_iter([("name".to_owned(), name.into())]);
    for part in split(typed) {
        let (key, value) = part.split_once('=').ok_or_else(|| {
            Error::usage(format!("\"{part}\" of medium \"{name}\" is no KEY=VALUE"))
                .hint("parameters have + between them: queued:latency_us=100+gbps=10")
        })?;
        if table.insert(key.to_owned(), literal(value)).is_some() {
            return Err(Error::usage(format!("\"{key}\" of medium \"{name}\" is given twice")));
        }
    }
    Ok(table)
}

/// A row and its parameters; the profile of a measured one may be a file, from `folder`.
fn of_table(mut table: Map<String, Value>, folder: &Path) -> Result<MediumConfig> {
    let Some(Value::String(name)) = table.remove("name") else {
        return Err(Error::usage("a medium needs the \"name\" of a row").hint("see `wavetank list media`"));
    };
    if let Some(Value::String(path)) = table.get(PROFILE) {
        let content = content(&folder.join(path))?;
        table.insert(PROFILE.to_owned(), content);
    }
    checked(&name, table)
}

/// A profile as the parameter that holds all of it, so that a plan needs no file.
fn content(path: &Path) -> Result<Value> {
    let profile = read_profile(path)?;
    serde_json::to_value(profile).map_err(|error| Error::input(error.to_string()))
}

fn of_file(path: &str) -> Result<MediumConfig> {
    let content_of = |path: &Path| std::fs::read_to_string(path).map_err(|error| Error::io(path, error));
    let file = Path::new(path);
    // What cannot be read as a table is told of as a profile, with its line.
    let Ok(Value::Object(table)) = parsed(&content_of(file)?, path) else {
        return content(file).and_then(measured);
    };
    match table.contains_key("layout") || table.contains_key("points") {
        true => content(file).and_then(measured),
        false if table.contains_key("name") => {
            let folder = file.parent().unwrap_or(Path::new(""));
            of_table(table, folder).map_err(|error| error.within(path))
        }
        false => Err(Error::input("neither a profile of a tier nor a medium")
            .at(path)
            .hint("`wavetank profile tier … -o FILE` writes profiles; a medium has the \"name\" of a row")),
    }
}

fn measured(profile: Value) -> Result<MediumConfig> {
    checked(MEASURED, Map::from_iter([(PROFILE.to_owned(), profile)]))
}

/// TOML, or JSON where the name ends so.
pub(super) fn parsed(content: &str, path: &str) -> Result<Value, String> {
    match Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        true => serde_json::from_str(content).map_err(|error| error.to_string()),
        false => toml::from_str(content).map_err(|error| error.to_string()),
    }
}

fn checked(name: &str, parameters: Map<String, Value>) -> Result<MediumConfig> {
    let config = MediumConfig { name: name.to_owned(), parameters };
    config.build(0).map(|_| config)
}

/// What to know of a medium.
pub(crate) fn note(medium: &MediumConfig) -> Option<String> {
    let partial = medium.parameters.get(PROFILE).and_then(|profile| profile.get("partial"));
    (partial == Some(&Value::Bool(true)))
        .then(|| "its profile was ended before all points were measured".to_owned())
}
