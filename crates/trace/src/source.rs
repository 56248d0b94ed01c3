//! Which files are meant and of what format: named, or guessed from how they begin.

use wavetank_model::{Error, ErrorKind, Result, nearest};

use crate::call_guess::is_of_calls;
use crate::requests::{ALL, Entry, ReadOptions, Reader};
use crate::{Head, Input, Meter};

/// The files of one trace.
#[derive(Clone)]
pub struct Source {
    /// How they are read.
    pub format: &'static Entry,
    /// At least one.
    pub inputs: Vec<Input>,
}

/// The format called `name`; `-` is as good as `_`.
pub fn find(name: &str) -> Result<&'static Entry> {
    wavetank_model::find("trace format", ALL, &name.replace('-', "_"))
}

impl Source {
    /// What `words` name, each a path, `format:path`, or `-` for standard input; `format` is that of all.
    pub fn of(words: &[impl AsRef<str>], format: Option<&str>) -> Result<Self> {
        let mut format = format.map(find).transpose()?;
        let mut inputs = Vec::with_capacity(words.len());
        for word in words {
            let (named, path) = split(word.as_ref());
            inputs.push(Input::named(path));
            match (format, named) {
                (Some(known), Some(named)) if known.name != named.name => {
                    return Err(Error::usage(format!(
                        "is {}, and {} was named before",
                        named.name, known.name
                    ))
                    .at(word.as_ref())
                    .hint("the files of one trace have one format"));
                }
                (None, named) => format = named,
                _ => {}
            }
        }
        let Some(first) = inputs.first() else {
            return Err(Error::usage("no trace file").hint("name at least one"));
        };
        let format = format.map_or_else(|| guess(first).map_err(|error| mistyped(first, error)), Ok)?;
        if inputs.iter().filter(|input| **input == Input::Stdin).count() > 1 {
            return Err(Error::usage("standard input is named twice").hint("it can be read once"));
        }
        Ok(Self { format, inputs })
    }

    /// Files of the format called `name`.
    pub fn with(name: &str, inputs: Vec<Input>) -> Result<Self> {
        assert!(!inputs.is_empty(), "a source has files");
        Ok(Self { format: find(name)?, inputs })
    }

    /// The same, its bytes counted by `meter`.
    pub fn metered(&self, meter: &Meter) -> Self {
        let count = |input: &Input| {
            meter.expect(input.size().unwrap_or(0));
            Input::Metered(Box::new(input.clone()), meter.clone())
        };
        Self { format: self.format, inputs: self.inputs.iter().map(count).collect() }
    }

    /// Opens it.
    pub fn open(&self, options: &ReadOptions) -> Result<Box<dyn Reader>> {
        (self.format.read)(&self.inputs, options)
    }

    /// The paths, without the format before them; `-` is standard input.
    pub fn paths(&self) -> Vec<String> {
        let path = |input: &Input| match input {
            Input::File(path) => path.display().to_string(),
            Input::Stdin => "-".to_owned(),
            Input::Bytes(_) | Input::Metered(..) => input.name(),
        };
        self.inputs.iter().map(path).collect()
    }

    /// Whether it can be read once only.
    pub fn is_once(&self) -> bool {
        self.inputs.iter().any(Input::is_once)
    }

    /// The name in messages.
    pub fn name(&self) -> String {
        match &self.inputs[..] {
            [only] => only.name(),
            [first, rest @ ..] => format!("{} and {} more", first.name(), rest.len()),
            [] => unreachable!("a source has files"),
        }
    }
}

/// A format before a colon, and the path.
fn split(word: &str) -> (Option<&'static Entry>, &str) {
    let named = word.split_once(':').and_then(|(name, path)| Some((find(name).ok()?, path)));
    named.map_or((None, word), |(format, path)| (Some(format), path))
}

/// Adds what was perhaps meant where a file that is not there is named like `mooncak:file`.
fn mistyped(input: &Input, error: Error) -> Error {
    let name = input.name();
    let typed = name.split_once(':').map(|(format, _)| format).filter(|_| error.kind() == ErrorKind::Io);
    let names = ALL.iter().map(|entry| entry.name);
    match typed.and_then(|typed| nearest(typed, names)) {
        Some(meant) => error.hint(format!("did you mean {meant}: before the path?")),
        None => error,
    }
}

/// The format whose files begin so.
fn guess(input: &Input) -> Result<&'static Entry> {
    let known = || ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    let hint = || {
        format!("name the format before the path, as {}:{}; known: {}", ALL[0].name, input.name(), known())
    };
    let Some(head) = input.head()? else {
        return Err(Error::usage("its format cannot be seen before it is read")
            .at(input.name())
            .hint(hint()));
    };
    if head.trim_ascii().is_empty() {
        return Err(Error::input("there are no requests in it").at(input.name()).hint("it is empty"));
    }
    let head = Head::of(head);
    let fits: Vec<&Entry> = ALL.iter().filter(|entry| (entry.recognises)(&head)).collect();
    match &fits[..] {
        [only] => Ok(only),
        [] if is_of_calls(&head) => {
            Err(Error::input("is a trace of storage calls, not of requests").at(input.name()).hint(
                "`wavetank trace replay` makes its calls again, `wavetank trace mrc` says what a cache hits",
            ))
        }
        // Whoever reads it says what is wrong with which line.
        [] if head.is_object() => find("mooncake"),
        [] => Err(Error::input("is of no known trace format").at(input.name()).hint(hint())),
        several => {
            let names = several.iter().map(|entry| entry.name).collect::<Vec<_>>().join(" or ");
            Err(Error::input(format!("may be {names}")).at(input.name()).hint(hint()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_that_is_mistyped_is_named() {
        let hint = |word: &str| Source::of(&[word], None).err().unwrap().to_string();
        assert!(hint("mooncak:no.jsonl").ends_with("hint: did you mean mooncake: before the path?"));
        assert!(hint("no.jsonl").ends_with("hint: name a trace file, or - for standard input"));
        assert!(hint("c:no.jsonl").ends_with("hint: name a trace file, or - for standard input"));
    }
}
