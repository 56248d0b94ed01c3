//! As much of TraceQL as the product's queries need: comparisons of a span's name and attributes, joined by
//! `&&`. As in Tempo, numbers are compared with numbers and text with text; what differs does not match.

use serde_json::Value;

/// Whether a span, as the receiver prints it, is found by `query`.
pub(crate) fn matches(query: &str, span: &Value) -> bool {
    let inner = query.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).expect("{ … }");
    inner.split("&&").all(|condition| holds(condition.trim(), span))
}

fn holds(condition: &str, span: &Value) -> bool {
    let mut words = condition.splitn(3, ' ');
    let (Some(field), Some(operator), Some(literal)) = (words.next(), words.next(), words.next()) else {
        panic!("{condition}: a field, an operator and a value");
    };
    let found = match field.strip_prefix("span.") {
        Some(name) => span["attributes"][name].clone(),
        None => serde_json::json!(["string_value", span[field]]),
    };
    let wanted: Value = serde_json::from_str(literal).expect("a value");
    match (found[0].as_str(), &wanted) {
        (Some("string_value"), Value::String(text)) => compare(operator, found[1].as_str(), Some(text)),
        (Some("int_value" | "double_value"), Value::Number(number)) => {
            compare(operator, found[1].as_f64(), number.as_f64())
        }
        _ => false,
    }
}

fn compare<T: PartialOrd>(operator: &str, found: T, wanted: T) -> bool {
    match operator {
        "=" => found == wanted,
        "!=" => found != wanted,
        "<" => found < wanted,
        ">" => found > wanted,
        other => panic!("unknown operator {other}"),
    }
}
