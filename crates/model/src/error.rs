//! The one error type: what is wrong, where, and what to do about it.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The command or configuration asks for something impossible.
    Usage,
    /// A file's content is wrong.
    Input,
    /// The operating system refused.
    Io,
    /// A part that does not exist in this release.
    Unsupported,
    /// A simulation cannot go on.
    Stuck,
}

/// An error with its place and a hint.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    place: Option<String>,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Shorthand for results with our error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of the given kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), place: None, hint: None, source: None }
    }

    /// The command or configuration asks for something impossible.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// A file's content is wrong.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    /// The operating system refused `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("cannot open: {source}")).at(path.display().to_string())
    }

    /// Something that does not exist in this release.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Several findings as one error; `None` when there are none.
    pub fn of_all(kind: ErrorKind, heading: &str, findings: &[String]) -> Option<Self> {
        match findings {
            [] => None,
            [one] => Some(Self::new(kind, format!("{heading}: {one}"))),
            many => Some(Self::new(kind, format!("{heading}:\n  - {}", many.join("\n  - ")))),
        }
    }

    /// Says where: a file, `file:line`, or a flag.
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Says where roughly, unless that is known more closely.
    pub fn within(mut self, place: impl Into<String>) -> Self {
        self.place.get_or_insert_with(|| place.into());
        self
    }

    /// Says what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Keeps the cause.
    pub fn source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// What is wrong, alone.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where, if that is known.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// What to do about it, if anything was said.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
