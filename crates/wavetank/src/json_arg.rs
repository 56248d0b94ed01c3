//! JSON objects given on the command line, inline or as `@file`.

use std::path::Path;

use serde_json::{Map, Value};
use wavetank_model::{Error, Result};

/// Reads the value of `flag`: a JSON object, or `@path` of a file that holds one.
pub(crate) fn object(flag: &str, text: &str) -> Result<Map<String, Value>> {
    let (place, text) = match text.strip_prefix('@') {
        Some(path) => {
            let content = std::fs::read_to_string(path).map_err(|error| Error::io(Path::new(path), error))?;
            (format!("{flag} {path}"), content)
        }
        None => (flag.to_owned(), text.to_owned()),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Error::usage("not a JSON object").at(place).hint("for example '{\"block_size\": 64}'")),
        Err(error) => Err(Error::usage(format!("not valid JSON: {error}"))
            .at(place)
            .hint("for example '{\"block_size\": 64}', or @file.json")),
    }
}
