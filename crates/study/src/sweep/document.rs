//! A sweep as values that know where they stand, from a TOML file or made by a program, and sections of it
//! whose every key is known.

use std::path::Path;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use wavetank_model::{Error, Result, nearest};

/// A sweep as a program writes it: what its file would hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// Neither list nor table.
    Plain(Value),
    /// Values one after the other.
    List(Vec<Tree>),
    /// Values by name; the order of axes is that of points.
    Table(Vec<(String, Tree)>),
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Counted from 1; without meaning in a document that is no text.
    pub(crate) line: usize,
    pub(crate) content: Content,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Neither list nor table.
    Plain(Value),
    List(Vec<Node>),
    /// In the order of the file.
    Table(Vec<(String, Node)>),
}

impl Node {
    fn of_tree(tree: Tree) -> Self {
        let content = match tree {
            Tree::Plain(value) => Content::Plain(value),
            Tree::List(items) => Content::List(items.into_iter().map(Self::of_tree).collect()),
            Tree::Table(entries) => {
                Content::Table(entries.into_iter().map(|(name, tree)| (name, Self::of_tree(tree))).collect())
            }
        };
        Self { line: 0, content }
    }

    /// Without lines.
    pub(crate) fn json(&self) -> Value {
        match &self.content {
            Content::Plain(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::json).collect(),
            Content::Table(entries) => {
                Value::Object(entries.iter().map(|(name, node)| (name.clone(), node.json())).collect())
            }
        }
    }
}

/// A file, or what a program gave instead, and what it holds.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its name in messages.
    file: String,
    /// Whether it has lines.
    is_text: bool,
    root: Node,
}

impl Document {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::io(path, error).hint("name a sweep's TOML file; docs/sweep.md shows one")
        })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// The document in `text`; `file` is its name in messages.
    pub(crate) fn parse(text: &str, file: &str) -> Result<Self> {
        let line = |offset: usize| 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
        let table = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            Error::input(error.message().to_owned()).at(format!("{file}:{}", line(offset)))
        })?;
        let content = table_of(table.get_ref(), &line)
            .map_err(|(line, message)| Error::input(message).at(format!("{file}:{line}")))?;
        Ok(Self { file: file.to_owned(), is_text: true, root: Node { line: 1, content } })
    }

    /// The document that `tree` is; `name` is its name in messages.
    pub(crate) fn of_tree(tree: Tree, name: &str) -> Result<Self> {
        match tree {
            Tree::Table(_) => Ok(Self { file: name.to_owned(), is_text: false, root: Node::of_tree(tree) }),
            _ => Err(Error::input("a sweep is a table").at(name).hint("give [base] and [axes]")),
        }
    }

    /// All of it.
    pub(crate) fn json(&self) -> Value {
        self.root.json()
    }

    /// `file:line`, or the name alone where there are no lines.
    pub(crate) fn place(&self, line: usize) -> String {
        if self.is_text { format!("{}:{line}", self.file) } else { self.file.clone() }
    }

    /// Something is wrong in `line`.
    pub(crate) fn wrong(&self, line: usize, message: impl Into<String>) -> Error {
        Error::input(message.into()).at(self.place(line))
    }

    /// The whole file as a section.
    pub(crate) fn section(&self) -> Section<'_> {
        Section { document: self, name: String::new(), node: &self.root }
    }
}

type Misread = (usize, String);

fn table_of(table: &DeTable<'_>, line: &dyn Fn(usize) -> usize) -> Result<Content, Misread> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    let entry = |(name, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let at = line(name.span().start);
        Ok((name.get_ref().to_string(), Node { line: at, ..node_of(value, line)? }))
    };
    entries.into_iter().map(entry).collect::<Result<_, Misread>>().map(Content::Table)
}

fn node_of(value: &Spanned<DeValue<'_>>, line: &dyn Fn(usize) -> usize) -> Result<Node, Misread> {
    let at = line(value.span().start);
    let wrong = |what: &str| (at, what.to_owned());
    let plain = |value: Value| Content::Plain(value);
    let content = match value.get_ref() {
        DeValue::String(text) => plain(Value::from(text.as_ref())),
        DeValue::Integer(number) => {
            let (text, radix) = (number.as_str(), number.radix());
            let unsigned = u64::from_str_radix(text, radix).map(Value::from);
            let number = unsigned.or_else(|_| i64::from_str_radix(text, radix).map(Value::from));
            plain(number.map_err(|_| wrong("a whole number of more than 64 bits"))?)
        }
        DeValue::Float(number) => {
            let number = number.as_str().parse::<f64>().ok().filter(|number| number.is_finite());
            plain(Value::from(number.ok_or_else(|| wrong("must be a finite number"))?))
        }
        DeValue::Boolean(truth) => plain(Value::from(*truth)),
        DeValue::Datetime(_) => return Err(wrong("a date has no meaning here")),
        DeValue::Array(items) => {
            Content::List(items.iter().map(|item| node_of(item, line)).collect::<Result<_, Misread>>()?)
        }
        DeValue::Table(table) => table_of(table, line)?,
    };
    Ok(Node { line: at, content })
}

/// A table whose keys are asked for by name.
pub(crate) struct Section<'a> {
    pub(crate) document: &'a Document,
    /// For messages; empty for the file itself.
    name: String,
    node: &'a Node,
}

impl<'a> Section<'a> {
    /// A value that is a table.
    pub(crate) fn of(document: &'a Document, name: &str, node: &'a Node) -> Self {
        Self { document, name: name.to_owned(), node }
    }

    /// The table `name` inside, if it is there.
    pub(crate) fn table(&self, name: &str) -> Result<Option<Section<'a>>> {
        let Some(node) = self.node(name) else { return Ok(None) };
        match node.content {
            Content::Table(_) => Ok(Some(Section { document: self.document, name: name.to_owned(), node })),
            _ => Err(self.document.wrong(node.line, format!("[{name}] must be a table"))),
        }
    }

    /// Its keys and values, in the order of the file.
    pub(crate) fn entries(&self) -> &'a [(String, Node)] {
        match &self.node.content {
            Content::Table(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn line(&self) -> usize {
        self.node.line
    }

    pub(crate) fn node(&self, key: &str) -> Option<&'a Node> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Refuses keys that are not `known`.
    pub(crate) fn only(&self, known: &[&str]) -> Result<()> {
        match self.entries().iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, node)) => {
                let place = if self.name.is_empty() { String::new() } else { format!(" in [{}]", self.name) };
                let error = self.document.wrong(node.line, format!("unknown field \"{name}\"{place}"));
                Err(match nearest(name, known.iter().copied()) {
                    Some(meant) => error.hint(format!("did you mean {meant}?")),
                    None => error.hint(format!("known: {}", known.join(", "))),
                })
            }
        }
    }

    /// The value of `key` as `read` understands it.
    pub(crate) fn value<T>(
        &self,
        key: &str,
        what: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let value = node.json();
        let wrong = || self.document.wrong(node.line, format!("\"{key}\" must be {what}, not {value}"));
        read(&value).map(Some).ok_or_else(wrong)
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<String>> {
        self.value(key, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn whole(&self, key: &str) -> Result<Option<u64>> {
        self.value(key, "a whole number, 0 or more", Value::as_u64)
    }

    /// One of some words.
    pub(crate) fn word(&self, key: &str, known: &'static [&'static str]) -> Result<Option<&'static str>> {
        let what = format!("one of {}", known.join(", "));
        self.value(key, &what, |value| known.iter().copied().find(|word| value.as_str() == Some(word)))
    }

    /// The names in the list `key`, each with its line.
    pub(crate) fn names(&self, key: &str) -> Result<Vec<(String, usize)>> {
        let Some(node) = self.node(key) else { return Ok(Vec::new()) };
        let wrong = || self.document.wrong(node.line, format!("\"{key}\" must be a list of names"));
        let Content::List(items) = &node.content else { return Err(wrong()) };
        let name = |item: &Node| match &item.content {
            Content::Plain(Value::String(name)) => Ok((name.clone(), item.line)),
            _ => Err(wrong()),
        };
        items.iter().map(name).collect()
    }
}
