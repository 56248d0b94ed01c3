//! Checked rows, one at a time.

use wavetank_model::{Error, Result};

use super::{Options, Parse};
use crate::Input;
use crate::input::Lines;
use crate::requests::mooncake::Row;

/// Reads, parses and checks rows.
pub(super) struct Rows {
    lines: Lines,
    parse: Parse,
    pub(super) options: Options,
    /// Inputs cut to what their ids cover.
    pub(super) clamped: u64,
    /// The first timestamp, from which others may be only so far.
    first_timestamp: Option<f64>,
}

/// A row whose prompt is known to be sound.
pub(super) struct Checked<'a> {
    pub(super) row: Row<'a>,
    pub(super) input_tokens: u32,
    pub(super) line: u64,
}

impl Rows {
    pub(super) fn open(input: &Input, options: &Options, parse: Parse) -> Result<Self> {
        Ok(Self { lines: input.lines()?, parse, options: options.clone(), clamped: 0, first_timestamp: None })
    }

    /// The next row; an error carries its place.
    pub(super) fn next(&mut self) -> Result<Option<Checked<'_>>> {
        if !self.lines.advance()? {
            return Ok(None);
        }
        let line = self.lines.number();
        let row = (self.parse)(self.lines.current()).map_err(|error| error.at(self.lines.place()))?;
        let origin = *self.first_timestamp.get_or_insert(row.timestamp.unwrap_or(0.0));
        let checked = check_times(&row, origin, self.options.starts.speedup());
        let length = checked
            .and_then(|()| check(&row, &self.options))
            .map_err(|error| error.at(self.lines.place()))?;
        self.clamped += u64::from(length.clamped);
        Ok(Some(Checked { row, input_tokens: length.tokens, line }))
    }

    pub(super) fn name(&self) -> &str {
        self.lines.name()
    }
}

struct InputLength {
    tokens: u32,
    clamped: bool,
}

/// The simulated clock counts nanoseconds in 64 bits: a trace may span half of that, 292 years.
pub(super) const LONGEST_SPAN_MS: f64 = 4.6e12;

/// Times must be numbers of milliseconds that the clock can hold.
fn check_times(row: &Row<'_>, origin: f64, speedup: f64) -> Result<()> {
    let times = [("timestamp", row.timestamp, origin), ("delay", row.delay, 0.0)];
    for (key, ms, origin) in times.into_iter().filter_map(|(key, ms, origin)| Some((key, ms?, origin))) {
        if !ms.is_finite() || ms < 0.0 {
            return Err(Error::input(format!("\"{key}\" is {ms}"))
                .hint(format!("\"{key}\" is milliseconds, not negative")));
        }
        if (ms - origin).abs() / speedup > LONGEST_SPAN_MS {
            return Err(Error::input(format!("\"{key}\" is {ms:e}, more than a century away"))
                .hint(format!("\"{key}\" is milliseconds")));
        }
    }
    Ok(())
}

/// What can be said of a row alone.
fn check(row: &Row<'_>, options: &Options) -> Result<InputLength> {
    if let Some(ids) = row.output_token_ids
        && ids.0 != row.output_length as usize
    {
        return Err(Error::input(format!("\"output_token_ids\" has {} items", ids.0))
            .hint(format!("\"output_length\" says {}", row.output_length)));
    }
    if row.hash_ids.is_empty() {
        return Err(Error::input("\"hash_ids\" is empty").hint("a prompt has at least one block"));
    }
    input_length(row, options)
}

fn input_length(row: &Row<'_>, options: &Options) -> Result<InputLength> {
    let (ids, per_id) = (row.hash_ids.len() as u64, u64::from(options.tokens_per_id));
    let covered = u32::try_from(ids * per_id)
        .map_err(|_| Error::input("\"hash_ids\" stand for more than 2^32 tokens"))?;
    match row.input_length {
        None => Ok(InputLength { tokens: covered, clamped: false }),
        Some(0) => Err(Error::input("\"input_length\" is 0").hint("a prompt has at least one token")),
        Some(tokens) if tokens <= covered => Ok(InputLength { tokens, clamped: false }),
        Some(_) if options.clamp_input => Ok(InputLength { tokens: covered, clamped: true }),
        Some(tokens) => {
            let message = format!(
                "\"input_length\" is {tokens}, but its {ids} hash ids of {per_id} tokens cover only {covered}"
            );
            Err(Error::input(message)
                .hint("--trace-block-size says how many tokens a hash id stands for; --clamp-input cuts"))
        }
    }
}
