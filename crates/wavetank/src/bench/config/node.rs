//! A YAML document as a tree whose every key knows its line, and what its values are read as.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    /// A whole number from 0 up.
    Whole(u64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: u64,
    pub(super) value: Node,
}

impl Node {
    /// A whole number from `least` to `most`.
    pub(super) fn whole<T: TryFrom<u64>>(&self, least: u64, most: u64) -> Result<T, String> {
        let number = match self {
            Self::Whole(number) => Some(*number),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("must be a whole number from {least} to {most}, not {self}"))
    }

    /// A number from `least` to `most`.
    pub(super) fn number(&self, least: f64, most: f64) -> Result<f64, String> {
        let number = match self {
            Self::Whole(number) => Some(*number as f64),
            Self::Number(number) => Some(*number),
            _ => None,
        };
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| format!("must be a number from {least} to {most}, not {self}"))
    }

    /// A part of a whole.
    pub(super) fn share(&self) -> Result<f64, String> {
        self.number(0.0, 1.0)
    }

    /// Words.
    pub(super) fn text(&self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            _ => Err(format!("must be text, not {self}")),
        }
    }

    /// Two values, the first no more than the second.
    pub(super) fn range<T: PartialOrd>(
        &self,
        read: impl Fn(&Self) -> Result<T, String>,
    ) -> Result<[T; 2], String> {
        let Self::List(ends) = self else { return Err(format!("must be a list of two, not {self}")) };
        let [low, high] = &ends[..] else {
            return Err(format!("must be a list of two, not of {}", ends.len()));
        };
        let (low, high) = (read(low)?, read(high)?);
        if low > high {
            return Err(format!("must begin with the smaller one, not {self}"));
        }
        Ok([low, high])
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("nothing"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Whole(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "\"{value}\""),
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(Self::to_string).collect();
                write!(f, "[{}]", values.join(", "))
            }
            Self::Map(_) => f.write_str("a section"),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Tree)
    }
}

struct Tree;

impl<'de> Visitor<'de> for Tree {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(u64::try_from(value).map_or(Node::Number(value as f64), Node::Whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, Node>()? {
            map.push(Entry { line: key.referenced.line(), key: key.value, value });
        }
        Ok(Node::Map(map))
    }
}
