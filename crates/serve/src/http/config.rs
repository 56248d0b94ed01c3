//! `/config`: the plan, without what nobody is to know.

use serde_json::{Value, json};
pub(crate) use wavetank_model::without_login;

use super::desk::Desk;

/// The plan.
pub(super) fn config(desk: &Desk) -> Value {
    told(serde_json::to_value(&desk.plan).unwrap_or(Value::Null))
}

/// Without words in options that may be secret, and names and passwords in addresses.
pub(crate) fn told(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| {
                let hidden = is_secret(&name) && value.is_string();
                (name, if hidden { json!("set") } else { told(value) })
            };
            Value::Object(fields.into_iter().map(field).collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(told).collect()),
        Value::String(text) => Value::String(without_login(&text)),
        other => other,
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !name.ends_with("_file") && ["password", "secret", "token", "credential"].iter().any(|w| name.contains(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a field that is shown by another name, or a login left in an address.
    #[test]
    fn what_nobody_is_to_know_is_left_out() {
        let plan = |word: &str, location: &str| {
            json!({
                "options": { "password": word, "AWS_SECRET_KEY": word, "password_file": "/a", "block": "4" },
                "list": [{ "location": location }, "s3://bucket/a@b"],
            })
        };
        assert_eq!(told(plan("p1", "redis://u:p2@h:6379/0")), plan("set", "redis://…@h:6379/0"));
    }
}
