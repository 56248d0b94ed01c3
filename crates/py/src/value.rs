//! Python's values as JSON and back.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyRange, PyString, PyTuple};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};
use wavetank::Error;
use wavetank_study::sweep::Tree;

use crate::failure::exception;

/// Deeper nesting is a mistake: a list that holds itself, for example.
const DEEPEST: usize = 64;

/// More values than an axis of a sweep may have are a mistake, and would be made before that is said.
const LONGEST_RANGE: usize = 1_000_000;

/// A dictionary as JSON; what cannot be is refused by its name.
pub(crate) fn object_of(dict: &Bound<'_, PyAny>) -> PyResult<Map<String, Value>> {
    let entry = |(name, value): (String, Bound<'_, PyAny>)| {
        let tree = tree_of(&value, &name)?;
        Ok((name, json_of(tree)))
    };
    entries(dict, "")?.into_iter().map(entry).collect()
}

/// A part of a spec: as JSON, with names in the order they were given.
pub(crate) fn tree_of(object: &Bound<'_, PyAny>, place: &str) -> PyResult<Tree> {
    nested(object, place, 0)
}

fn json_of(tree: Tree) -> Value {
    match tree {
        Tree::Plain(value) => value,
        Tree::List(items) => items.into_iter().map(json_of).collect(),
        Tree::Table(entries) => {
            Value::Object(entries.into_iter().map(|(name, tree)| (name, json_of(tree))).collect())
        }
    }
}

fn nested(object: &Bound<'_, PyAny>, place: &str, depth: usize) -> PyResult<Tree> {
    if depth > DEEPEST {
        return refuse(object, place, "is nested too deeply");
    }
    if let Some(plain) = plain(object, place)? {
        return Ok(Tree::Plain(plain));
    }
    if object.cast::<PyMapping>().is_ok() {
        let entry = |(name, value): (String, Bound<'_, PyAny>)| {
            let tree = nested(&value, &format!("{place}.{name}"), depth + 1)?;
            Ok((name, tree))
        };
        return entries(object, place)?.into_iter().map(entry).collect::<PyResult<_>>().map(Tree::Table);
    }
    let is_range = object.is_instance_of::<PyRange>();
    if is_range && object.len().map_or(true, |length| length > LONGEST_RANGE) {
        return refuse(object, place, &format!("has more than {LONGEST_RANGE} values"));
    }
    if is_range || object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let item = |item: PyResult<Bound<'_, PyAny>>| nested(&item?, place, depth + 1);
        return object.try_iter()?.map(item).collect::<PyResult<_>>().map(Tree::List);
    }
    // Paths, then numbers and arrays of NumPy.
    for method in ["__fspath__", "tolist"] {
        if object.hasattr(method)? {
            return nested(&object.call_method0(method)?, place, depth + 1);
        }
    }
    let class = object.get_type().name()?.to_string();
    refuse(object, place, &format!("must be a number, a text, a list or a dict, not {class}"))
}

/// What is neither list nor table.
fn plain(object: &Bound<'_, PyAny>, place: &str) -> PyResult<Option<Value>> {
    if object.is_none() {
        return Ok(Some(Value::Null));
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(Some(Value::Bool(object.is_truthy()?)));
    }
    if object.is_instance_of::<PyInt>() {
        let signed = object.extract::<i64>().map(Number::from);
        let number = signed.or_else(|_| object.extract::<u64>().map(Number::from));
        let number = number.map(|number| Some(Value::Number(number)));
        return number.or_else(|_| refuse(object, place, "a whole number of more than 64 bits"));
    }
    if object.is_instance_of::<PyFloat>() {
        let number = Number::from_f64(object.extract()?).map(|number| Some(Value::Number(number)));
        return number.map_or_else(|| refuse(object, place, "must be a finite number"), Ok);
    }
    if object.is_instance_of::<PyString>() {
        let text = object.extract::<String>().map(|text| Some(Value::String(text)));
        return text.or_else(|_| refuse(object, place, "is a text that is not Unicode"));
    }
    Ok(None)
}

fn refuse<T>(object: &Bound<'_, PyAny>, place: &str, why: &str) -> PyResult<T> {
    Err(exception(object.py(), &Error::usage(why).at(place)))
}

/// What is in a mapping now; making values of it may change it.
fn entries<'py>(mapping: &Bound<'py, PyAny>, place: &str) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let items = mapping.cast::<PyMapping>()?.items()?;
    let entry = |item: Bound<'py, PyAny>| {
        let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
        Ok((key_of(mapping.py(), &key, place)?, value))
    };
    items.iter().map(entry).collect()
}

fn key_of(py: Python<'_>, key: &Bound<'_, PyAny>, place: &str) -> PyResult<String> {
    key.extract::<String>().map_err(|_| {
        let place = if place.is_empty() { "a dict" } else { place };
        let shown = key.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        exception(py, &Error::usage(format!("keys must be texts, not {shown}")).at(place))
    })
}

/// JSON as Python's values.
pub(crate) fn python_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (None, Some(number)) => number.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let list = PyList::empty(py);
            items.iter().try_for_each(|item| list.append(python_of(py, item)?))?;
            Ok(list.into_any())
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            entries.iter().try_for_each(|(key, value)| dict.set_item(key, python_of(py, value)?))?;
            Ok(dict.into_any())
        }
    }
}

/// Arguments that make the same object in another process.
pub(crate) fn pickled<'py>(
    py: Python<'py>,
    content: &(impl Serialize + ?Sized),
) -> PyResult<(Bound<'py, PyBytes>,)> {
    let bytes = serde_json::to_vec(content).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((PyBytes::new(py, &bytes),))
}

/// What was pickled.
pub(crate) fn unpickled<T: DeserializeOwned>(bytes: &[u8]) -> PyResult<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| PyValueError::new_err(format!("not what was pickled: {error}")))
}
