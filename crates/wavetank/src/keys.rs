//! JSON objects whose every key is a row of a table: what it takes, what it sets, or why it has no effect.
//!
//! All offenders are reported together. Keys that are known but change nothing are noted as warnings.

use serde_json::{Map, Value};
use wavetank_model::{Described, Error, ErrorKind, Result};

use crate::json_arg::JsonArg;

/// A key of a configuration `C`.
pub(crate) struct Key<C> {
    /// As written in JSON.
    pub(crate) name: &'static str,
    /// One line for `wavetank list`.
    pub(crate) about: &'static str,
    null: Null,
    effect: Effect<C>,
}

impl<C> Described for Key<C> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
}

/// What `null` means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Null {
    /// A wrong value.
    Wrong,
    /// As if the key were not there.
    Absent,
    /// A value of its own, such as "no limit".
    Value,
}

/// Says what is wrong with a value.
pub(crate) type Check = fn(&Value) -> Result<(), String>;
/// Puts a value into a configuration.
pub(crate) type Set<C> = fn(&mut C, &Value) -> Result<(), String>;

enum Effect<C> {
    /// Changes the configuration.
    Sets(Set<C>),
    /// Is checked and changes nothing, for the reason given.
    Inert(Check, &'static str),
    /// Is accepted only when it asks for what is done anyway.
    Only(Check),
    /// Belongs to a part this release does not have.
    Unavailable(&'static str),
}

/// A key that sets something.
pub(crate) const fn sets<C>(name: &'static str, about: &'static str, set: Set<C>) -> Key<C> {
    Key { name, about, null: Null::Wrong, effect: Effect::Sets(set) }
}

/// A key that sets something, for which `null` is a value too.
pub(crate) const fn limit<C>(name: &'static str, about: &'static str, set: Set<C>) -> Key<C> {
    Key { name, about, null: Null::Value, effect: Effect::Sets(set) }
}

/// A key that sets something, for which `null` is as if it were not there.
pub(crate) const fn may_set<C>(name: &'static str, about: &'static str, set: Set<C>) -> Key<C> {
    Key { name, about, null: Null::Absent, effect: Effect::Sets(set) }
}

/// A key that may only ask for what is done anyway.
pub(crate) const fn only<C>(name: &'static str, about: &'static str, check: Check) -> Key<C> {
    Key { name, about, null: Null::Wrong, effect: Effect::Only(check) }
}

/// A key that is checked and has no effect.
pub(crate) const fn inert<C>(name: &'static str, check: Check, why: &'static str) -> Key<C> {
    Key { name, about: why, null: Null::Absent, effect: Effect::Inert(check, why) }
}

/// A key of a part this release does not have.
pub(crate) const fn unavailable<C>(name: &'static str, what: &'static str) -> Key<C> {
    Key {
        name,
        about: "not available in this release",
        null: Null::Absent,
        effect: Effect::Unavailable(what),
    }
}

/// A table of keys and where it is used.
pub(crate) struct Table<C: 'static> {
    /// The kind under which `wavetank list` shows it.
    pub(crate) kind: &'static str,
    /// Its rows.
    pub(crate) keys: &'static [Key<C>],
}

impl<C> Table<C> {
    /// Enters `object` into `config`; warnings go to `notes`.
    pub(crate) fn read(&self, typed: &JsonArg, config: &mut C, notes: &mut Vec<String>) -> Result<()> {
        let (findings, noted) = enter(self.keys, &typed.object, config);
        notes.extend(noted.into_iter().map(|note| format!("{}: {note}", typed.place)));
        match Error::of_all(ErrorKind::Usage, "wrong keys or values", &findings) {
            Some(error) => Err(error
                .at(typed.place.clone())
                .hint(format!("`wavetank list {} -v` shows every key", self.kind))),
            None => Ok(()),
        }
    }
}

/// Enters an object key by key; what is wrong, and what changes nothing.
pub(crate) fn enter<C>(
    keys: &[Key<C>],
    object: &Map<String, Value>,
    config: &mut C,
) -> (Vec<String>, Vec<String>) {
    let (mut findings, mut notes) = (Vec::new(), Vec::new());
    for (name, value) in object {
        match keys.iter().find(|key| key.name == name).map(|key| apply(key, value, config)) {
            None => findings.push(format!("unknown key \"{name}\"")),
            Some(Err(finding)) => findings.push(format!("\"{name}\": {finding}")),
            Some(Ok(note)) => notes.extend(note),
        }
    }
    (findings, notes)
}

/// Enters one key; a note says that it changed nothing.
fn apply<C>(key: &Key<C>, value: &Value, config: &mut C) -> Result<Option<String>, String> {
    if value.is_null() && key.null != Null::Value {
        return if key.null == Null::Absent { Ok(None) } else { Err("must not be null".to_owned()) };
    }
    match key.effect {
        Effect::Sets(set) => set(config, value).map(|()| None),
        Effect::Only(check) => check(value).map(|()| None),
        Effect::Unavailable(what) => Err(format!("{what} is not available in this release")),
        Effect::Inert(check, why) => {
            check(value).map(|()| Some(format!("\"{}\" has no effect: {why}", key.name)))
        }
    }
}

pub(crate) fn expected<T>(value: &Value, found: Option<T>, what: &str) -> Result<T, String> {
    found.ok_or_else(|| format!("must be {what}, not {value}"))
}

pub(crate) fn uint(value: &Value) -> Result<u32, String> {
    let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
    expected(value, number, "a whole number from 0 to 4294967295")
}

pub(crate) fn at_least_one(value: &Value) -> Result<u32, String> {
    expected(value, uint(value)?.checked_sub(1).map(|n| n + 1), "at least 1")
}

pub(crate) fn bound(value: &Value) -> Result<Option<u32>, String> {
    if value.is_null() { Ok(None) } else { at_least_one(value).map(Some) }
}

pub(crate) fn not_negative(value: &Value) -> Result<f64, String> {
    expected(value, value.as_f64().filter(|n| n.is_finite() && *n >= 0.0), "a number, 0 or more")
}

pub(crate) fn fraction(value: &Value) -> Result<(), String> {
    expected(value, value.as_f64().filter(|n| (0.0..=1.0).contains(n)), "a number from 0 to 1").map(drop)
}

pub(crate) fn port(value: &Value) -> Result<(), String> {
    expected(value, value.as_u64().filter(|&n| n <= 65_535), "a port number").map(drop)
}

pub(crate) fn boolean(value: &Value) -> Result<bool, String> {
    expected(value, value.as_bool(), "true or false")
}

pub(crate) fn text(value: &Value) -> Result<&str, String> {
    expected(value, value.as_str(), "a string")
}

pub(crate) fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    expected(value, value.as_object(), "an object")
}
