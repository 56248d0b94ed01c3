//! Python's values as JSON and back.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyRange, PyString, PyTuple};
use serde_json::{Map, Number, Value};
use wavetank::Error;
use wavetank_study::sweep::Tree;

use crate::failure::exception;

/// Deeper nesting is a mistake: a list that holds itself, for example.
const DEEPEST: usize = 64;

/// A dictionary as JSON; what cannot be is refused by its name.
pub(crate) fn object_of(dict: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    dict.iter()
        .map(|(key, value)| {
            let name = key_of(dict.py(), &key, "")?;
            let value = value_of(&value, &name)?;
            Ok((name, value))
        })
        .collect()
}

/// Anything as JSON; `place` names it in messages.
pub(crate) fn value_of(object: &Bound<'_, PyAny>, place: &str) -> PyResult<Value> {
    nested(object, place, 0)
}

fn nested(object: &Bound<'_, PyAny>, place: &str, depth: usize) -> PyResult<Value> {
    let refuse = |why: &str| Err(exception(object.py(), &Error::usage(why).at(place)));
    if depth > DEEPEST {
        return refuse("is nested too deeply");
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(Value::Bool(object.is_truthy()?));
    }
    if object.is_instance_of::<PyInt>() {
        let signed = object.extract::<i64>().map(Number::from);
        let number = signed.or_else(|_| object.extract::<u64>().map(Number::from));
        return number.map(Value::Number).or_else(|_| refuse("a whole number of more than 64 bits"));
    }
    if object.is_instance_of::<PyFloat>() {
        let number = Number::from_f64(object.extract()?).map(Value::Number);
        return number.map_or_else(|| refuse("must be a finite number"), Ok);
    }
    if object.is_instance_of::<PyString>() {
        let text = object.extract::<String>().map(Value::String);
        return text.or_else(|_| refuse("is a text that is not Unicode"));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let key = key_of(object.py(), &key, place)?;
            let value = nested(&value, &format!("{place}.{key}"), depth + 1)?;
            Ok((key, value))
        };
        return dict.iter().map(entry).collect::<PyResult<Map<_, _>>>().map(Value::Object);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let item = |item: PyResult<Bound<'_, PyAny>>| nested(&item?, place, depth + 1);
        return object.try_iter()?.map(item).collect::<PyResult<_>>().map(Value::Array);
    }
    // Paths, then numbers and arrays of NumPy.
    for method in ["__fspath__", "tolist"] {
        if object.hasattr(method)? {
            return nested(&object.call_method0(method)?, place, depth + 1);
        }
    }
    let class = object.get_type().name()?.to_string();
    refuse(&format!("must be a number, a text, a list or a dict, not {class}"))
}

/// Anything as a part of a spec: as JSON, with names in the order they were given.
pub(crate) fn tree_of(object: &Bound<'_, PyAny>, place: &str) -> PyResult<Tree> {
    branch(object, place, 0)
}

fn branch(object: &Bound<'_, PyAny>, place: &str, depth: usize) -> PyResult<Tree> {
    if depth > DEEPEST {
        return Err(exception(object.py(), &Error::usage("is nested too deeply").at(place)));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let key = key_of(object.py(), &key, place)?;
            let tree = branch(&value, &format!("{place}.{key}"), depth + 1)?;
            Ok((key, tree))
        };
        return dict.iter().map(entry).collect::<PyResult<_>>().map(Tree::Table);
    }
    if object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyRange>()
    {
        let item = |item: PyResult<Bound<'_, PyAny>>| branch(&item?, place, depth + 1);
        return object.try_iter()?.map(item).collect::<PyResult<_>>().map(Tree::List);
    }
    value_of(object, place).map(leaf)
}

/// What has no order of its own.
fn leaf(value: Value) -> Tree {
    match value {
        Value::Array(items) => Tree::List(items.into_iter().map(leaf).collect()),
        Value::Object(entries) => {
            Tree::Table(entries.into_iter().map(|(name, value)| (name, leaf(value))).collect())
        }
        plain => Tree::Plain(plain),
    }
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
