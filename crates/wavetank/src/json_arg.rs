//! JSON objects given on the command line, inline or as `@file`.

use std::fmt;
use std::path::Path;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use wavetank_model::{Error, Result};

/// A JSON object and where it came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonArg {
    /// The flag, and the file if there is one.
    pub(crate) place: String,
    /// What was given.
    pub(crate) object: Map<String, Value>,
}

/// Reads the value of `flag`, if it was typed: a JSON object, or `@path` of a file that holds one.
pub(crate) fn read(flag: &str, typed: Option<&str>) -> Result<JsonArg> {
    let Some(typed) = typed else {
        return Ok(JsonArg { place: flag.to_owned(), object: Map::new() });
    };
    let (place, text) = match typed.strip_prefix('@') {
        Some(path) => {
            let content = std::fs::read_to_string(path).map_err(|error| {
                Error::io(Path::new(path), error)
                    .hint(format!("{flag} @FILE reads a JSON object from a file"))
            })?;
            (format!("{flag} {path}"), content)
        }
        None => (flag.to_owned(), typed.to_owned()),
    };
    match serde_json::from_str(&text) {
        Ok(Distinct(object)) => Ok(JsonArg { place, object }),
        Err(error) => Err(Error::usage(format!("not a JSON object: {error}"))
            .at(place)
            .hint("give an object in quotes, '{\"key\": value}', or @file.json")),
    }
}

/// An object whose keys are all different; plain maps keep the last of equal keys without a word.
struct Distinct(Map<String, Value>);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Distinct;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Distinct, A::Error> {
                let mut object = Map::new();
                while let Some((key, value)) = entries.next_entry::<String, Value>()? {
                    if object.insert(key.clone(), value).is_some() {
                        return Err(A::Error::custom(format!("key \"{key}\" is given twice")));
                    }
                }
                Ok(Distinct(object))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}
