//! Errors as exceptions, by kind. The classes are in `wavetank.errors`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use wavetank::{Error, ErrorKind};

/// The exception of `error`.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Usage => "UsageError",
        ErrorKind::Input => "InputError",
        ErrorKind::Io => "IoError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Stuck => "StuckError",
    };
    let place = error.place().map(|place| match place.starts_with("--") {
        true => as_arguments(place),
        false => place.to_owned(),
    });
    let told = (as_arguments(error.message()), place, error.advice().map(as_arguments));
    let made = py.import("wavetank.errors").and_then(|errors| errors.getattr(class)?.call1(told));
    made.map_or_else(|failed| failed, PyErr::from_value)
}

/// A fault of ours.
pub(crate) fn panicked(what: &(dyn std::any::Any + Send)) -> PyErr {
    let text = what.downcast_ref::<&str>().copied().or(what.downcast_ref::<String>().map(String::as_str));
    PyRuntimeError::new_err(format!("wavetank failed inside: {}", text.unwrap_or("for an unknown reason")))
}

/// What is said of flags, said of arguments: `--num-workers` is `num_workers` here. Commands stay as they
/// are typed, and so do names of files.
#[pyfunction]
pub(crate) fn as_arguments(text: &str) -> String {
    if text.contains("wavetank ") {
        return text.to_owned();
    }
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, flag) = (&rest[..at], &rest[at + 2..]);
        let end = flag.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(flag.len());
        told.push_str(before);
        let begins = told.chars().next_back().is_none_or(|c| c.is_whitespace() || "('\"`,".contains(c));
        if begins && flag.starts_with(|c: char| c.is_ascii_lowercase()) {
            told.push_str(&flag[..end].replace('-', "_"));
        } else {
            told.push_str(&rest[at..at + 2 + end]);
        }
        rest = &flag[end..];
    }
    told + rest
}
