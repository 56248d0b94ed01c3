//! `NAME=CAPACITY:MEDIUM[,OPTION...]` as the table that says the same.

use serde_json::{Map, Value};
use wavetank_model::{Error, Result};

/// What the whole looks like.
pub(super) const FORM: &str = "NAME=CAPACITY:MEDIUM[,OPTION...], such as cpu=64GiB:32GB/s or \
                               disk=2TiB:nvme.toml,shared,write=through";
/// Every option that has a value, with its values.
pub(super) const OPTIONS: [(&str, &[&str]); 3] =
    [("write", &["through", "evict"]), ("load", &["delay", "overlap"]), ("unit", &["batch", "object"])];

/// The table of a text.
pub(super) fn table(text: &str) -> Result<Map<String, Value>> {
    let wrong = |what: &str| Error::usage(format!("{what}: \"{text}\"")).hint(FORM);
    let (name, rest) = text.split_once('=').ok_or_else(|| wrong("a tier begins with NAME="))?;
    let (capacity, rest) = rest.split_once(':').ok_or_else(|| wrong("no :MEDIUM after the capacity"))?;
    let mut parts = rest.split(',');
    let medium = parts.next().filter(|medium| !medium.is_empty());
    let medium = medium.ok_or_else(|| wrong("nothing after the colon"))?;
    let mut table = Map::new();
    for (key, value) in [("name", name), ("capacity", capacity), ("medium", medium)] {
        table.insert(key.to_owned(), value.trim().into());
    }
    for part in parts {
        let (key, value) = option(part.trim())?;
        if table.insert(key.to_owned(), value).is_some() {
            return Err(Error::usage(format!("\"{key}\" is given twice: \"{text}\"")));
        }
    }
    Ok(table)
}

fn option(part: &str) -> Result<(&'static str, Value)> {
    if part == "shared" {
        return Ok(("shared", true.into()));
    }
    let (typed, value) = part.split_once('=').unwrap_or((part, ""));
    let known = OPTIONS.iter().find(|(key, values)| *key == typed && values.contains(&value));
    known.map(|(key, _)| (*key, value.into())).ok_or_else(|| {
        let forms = OPTIONS.map(|(key, values)| format!("{key}={}", values.join("|")));
        Error::usage(format!("unknown option \"{part}\""))
            .hint(format!("known: shared, {}; a path with a comma goes into a table", forms.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Broken by: a part that lands elsewhere, or a colon of the medium that ends the capacity.
    #[test]
    fn a_text_is_a_table() {
        let found = table("disk=2TiB:queued:latency_us=100+gbps=3,shared,write=through").unwrap();
        let expected = json!({
            "name": "disk", "capacity": "2TiB", "medium": "queued:latency_us=100+gbps=3", "shared": true,
            "write": "through",
        });
        assert_eq!(Value::Object(found), expected);
    }

    #[test]
    fn every_part_is_refused_with_what_it_should_be() {
        for (text, part) in [
            ("64GiB:x.toml", "a tier begins with NAME=: \"64GiB:x.toml\"\nhint: NAME=CAPACITY"),
            ("cpu=64GiB", "no :MEDIUM after the capacity: \"cpu=64GiB\""),
            ("cpu=64GiB:", "nothing after the colon"),
            ("cpu=64GiB:,shared", "nothing after the colon"),
            ("cpu=1G:1GB/s,share", "unknown option \"share\"\nhint: known: shared, write=through|evict"),
            ("cpu=1G:1GB/s,write=back", "unknown option \"write=back\""),
            ("cpu=1G:1GB/s,write", "unknown option \"write\""),
            ("cpu=1G:1GB/s,", "unknown option \"\""),
            ("cpu=1G:1GB/s,shared=yes", "unknown option \"shared=yes\""),
            ("cpu=1G:1GB/s,shared,shared", "\"shared\" is given twice"),
            ("cpu=1G:1GB/s,load=delay,load=delay", "\"load\" is given twice"),
        ] {
            let message = table(text).expect_err(text).to_string();
            assert!(message.starts_with(part), "{text}: {message}");
        }
    }
}
