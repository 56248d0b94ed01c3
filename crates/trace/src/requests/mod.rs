//! Request traces: one file per format, one row each in [`ALL`].

pub mod burstgpt;
pub mod mooncake;
pub mod sharegpt;

use std::slice;

use wavetank_model::{Described, Error, Result, find};

use crate::{Input, Loaded, Options};

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// Whether the trace names prompts by block ids, so that their size and what they cover matter.
    pub block_ids: bool,
    /// Reads the files of a trace, at least one, in this order.
    pub open: fn(&[Input], &Options) -> Result<Loaded>,
}

impl Described for Entry {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
}

/// Every request trace format, alphabetical. `wavetank list formats` prints this table.
pub const ALL: &[Entry] = &[burstgpt::ENTRY, mooncake::ENTRY, sharegpt::ENTRY];

/// Opens `input` as the format called `name`.
pub fn open(name: &str, input: &Input, options: &Options) -> Result<Loaded> {
    open_many(name, slice::from_ref(input), options)
}

/// Opens several files of the format called `name` as one trace: rows with times are merged by time, others
/// follow each other in the order of `inputs`.
pub fn open_many(name: &str, inputs: &[Input], options: &Options) -> Result<Loaded> {
    let format = find("trace format", ALL, name)?;
    if inputs.is_empty() {
        return Err(Error::usage("no trace file").hint("name at least one"));
    }
    (format.open)(inputs, options)
}

/// The input of a format that reads one at a time.
fn only(inputs: &[Input]) -> Result<&Input> {
    match inputs {
        [input] => Ok(input),
        [_, second, ..] => Err(Error::usage("a second trace file")
            .at(second.name())
            .hint("this format is read one file at a time; join files whose times go on with cat")),
        [] => unreachable!("open_many refuses an empty list"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Starts;

    #[test]
    fn the_number_of_files_is_checked() {
        let (starts, sharegpt) = (Starts::Ignored, sharegpt::ShareGpt::default());
        let options = Options { tokens_per_id: 4, clamp_input: false, starts, keep_names: false, sharegpt };
        let message =
            |inputs: &[Input]| open_many("mooncake", inputs, &options).err().expect("an error").to_string();
        assert!(message(&[]).starts_with("no trace file"));
        let (a, b) = (Input::named("a.jsonl"), Input::named("b.jsonl"));
        assert!(message(&[a, b]).starts_with("b.jsonl: a second trace file\nhint: "));
    }
}
