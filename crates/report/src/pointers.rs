//! Numbers out of reports.

use serde_json::Value;

/// The number under a pointer; not a number where there is none.
pub(crate) fn number(report: &Value, pointer: &str) -> f64 {
    report.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// The numbers under a pointer; gaps are not a number.
pub(crate) fn numbers(report: &Value, pointer: &str) -> Vec<f64> {
    let list = report.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect()
}

/// The things in a list under a pointer.
pub(crate) fn items<'a>(report: &'a Value, pointer: &str) -> &'a [Value] {
    report.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Words that are safe in a name of a figure.
pub(crate) fn slug(name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    letters.collect::<String>().split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}
