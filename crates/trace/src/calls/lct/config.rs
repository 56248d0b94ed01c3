//! The storage configuration in a header. The reference's digest differs in every run, because its text holds
//! process numbers and addresses (spec/storage-trace.md 1.10); ours is of what is left without them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A field that two configurations do not share.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its place: names and positions, joined by dots.
    pub field: String,
    /// What was recorded; absent if it is not there.
    pub recorded: Option<Value>,
    /// What we have; absent if it is not there.
    pub ours: Option<Value>,
}

/// The reference's digest: of the text as it is, and none of no text.
pub fn plain_digest(json: &str) -> String {
    if json.is_empty() { String::new() } else { hex(json.as_bytes()) }
}

/// A longer text is no configuration: as values it would take many times its size.
const LONGEST: usize = 4 << 20;

/// A configuration without what differs in every run; `None` if it is no JSON object.
pub fn canonical(json: &str) -> Option<Value> {
    if json.len() > LONGEST {
        return None;
    }
    let config: Map<String, Value> = serde_json::from_str(json).ok()?;
    Some(Value::Object(lasting_fields(config)))
}

/// The digest of a canonical configuration: of its compact text with sorted keys.
pub fn canonical_digest(config: &Value) -> String {
    hex(config.to_string().as_bytes())
}

/// Field by field, in the order of their names.
pub fn differences(recorded: &Value, ours: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(recorded), Some(ours), &mut found);
    found
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn lasting(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) => Some(Value::Object(lasting_fields(fields))),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(lasting).collect())),
        Value::String(text) if is_of_one_run(&text) => None,
        value => Some(value),
    }
}

fn lasting_fields(fields: Map<String, Value>) -> Map<String, Value> {
    let lasting = fields.into_iter().filter_map(|(name, value)| Some((name, lasting(value)?)));
    // Sorted, whatever order the map keeps.
    let mut lasting: Vec<_> = lasting.collect();
    lasting.sort_by(|(one, _), (other, _)| one.cmp(other));
    lasting.into_iter().collect()
}

/// A Python object printed with its address, or the pool that is named after its process.
fn is_of_one_run(text: &str) -> bool {
    let process = text.strip_prefix("lmcache_l1_pool_");
    text.contains(" object at 0x") || process.is_some_and(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
}

fn compare(field: &str, recorded: Option<&Value>, ours: Option<&Value>, found: &mut Vec<Difference>) {
    let inside = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
    match (recorded, ours) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            for name in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
                compare(&inside(name), one.get(name), other.get(name), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for at in 0..one.len().max(other.len()) {
                compare(&inside(&at.to_string()), one.get(at), other.get(at), found);
            }
        }
        (Some(Value::Number(one)), Some(Value::Number(other))) if one.as_f64() == other.as_f64() => {}
        (one, other) if one == other => {}
        (one, other) => {
            found.push(Difference { field: field.to_owned(), recorded: one.cloned(), ours: other.cloned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RECORDED: &str = r#"{"b": {"shm_name": "lmcache_l1_pool_19763", "size": 1}, "a": [1, 2],
        "adapters": ["<lmcache.Mock object at 0x7f00>"]}"#;

    /// Broken by: a process number or an address that counts, or an order that does.
    #[test]
    fn runs_of_one_configuration_agree() {
        let again = r#"{"adapters": ["<lmcache.Mock object at 0x7eee>"], "a": [1, 2],
            "b": {"size": 1, "shm_name": "lmcache_l1_pool_4"}}"#;
        let digest = |json| canonical_digest(&canonical(json).unwrap());
        assert_eq!(digest(RECORDED), digest(again));
        assert_ne!(plain_digest(RECORDED), plain_digest(again));
        assert_ne!(digest(RECORDED), digest(&RECORDED.replace("\"size\": 1", "\"size\": 2")));
        assert_eq!(canonical(RECORDED).unwrap(), json!({"a": [1, 2], "adapters": [], "b": {"size": 1}}));
        assert_eq!((canonical(""), canonical("[1]"), plain_digest("").as_str()), (None, None, ""));
    }

    #[test]
    fn the_plain_digest_is_sha_256() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(plain_digest("abc"), abc);
    }

    /// Broken by: a field of one side only that is passed over.
    #[test]
    fn differences_are_named() {
        let ours = json!({"a": [1, 3, 4], "adapters": [], "b": {"more": true}});
        let found: Vec<_> = differences(&canonical(RECORDED).unwrap(), &ours)
            .into_iter()
            .map(|found| (found.field, found.recorded, found.ours))
            .collect();
        let expected = [
            ("a.1", Some(json!(2)), Some(json!(3))),
            ("a.2", None, Some(json!(4))),
            ("b.more", None, Some(json!(true))),
            ("b.size", Some(json!(1)), None),
        ];
        assert_eq!(found, expected.map(|(field, one, other)| (field.to_owned(), one, other)));
        assert!(differences(&ours, &ours).is_empty());
        assert!(differences(&json!({"a": 1}), &json!({"a": 1.0})).is_empty(), "a number is a number");
    }
}
