//! `summary.json`, without what only the caller knows: the machine and the plan.

use serde_json::{Map, Value, json};

use crate::suite::{Row, SuiteSummary};

/// The rows and what they say.
pub fn json(suite: &SuiteSummary) -> Map<String, Value> {
    let rows: Vec<Value> = suite.rows.iter().map(row).collect();
    let findings = suite.findings();
    let keys = [
        ("quick", json!(suite.quick)),
        ("complete", json!(suite.is_complete())),
        ("scenarios", json!(rows)),
        ("findings", json!(findings)),
    ];
    keys.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
}

fn row(row: &Row) -> Value {
    let mut keys = json!({ "name": row.name, "title": row.title });
    if let (Value::Object(keys), Value::Object(status)) = (&mut keys, json!(row.status)) {
        keys.extend(status);
    }
    keys
}
