//! Checked rows, one at a time.

use wavetank_model::{Error, Nanos, Result};

use super::Options;
use crate::requests::{Provides, Reader, Source};
use crate::{Moment, Row};

/// Reads and checks rows.
pub(super) struct Rows {
    reader: Box<dyn Reader>,
    name: String,
    pub(super) options: Options,
    pub(super) provides: Provides,
    row: Row,
    /// Inputs cut to what their ids cover.
    pub(super) clamped: u64,
    /// Requests whose ids or output length are filled.
    pub(super) filled_ids: u64,
    pub(super) filled_outputs: u64,
    /// Block ids that rows have, and those that their prompts need.
    pub(super) ids: u64,
    pub(super) needed_ids: u64,
    /// The first start, from which others may be only so far.
    first_start: Option<Moment>,
}

/// A row whose prompt is known to be sound.
pub(super) struct Checked<'a> {
    pub(super) row: &'a Row,
    pub(super) input_tokens: u32,
    pub(super) output_tokens: u32,
    pub(super) line: u64,
}

impl Rows {
    pub(super) fn open(source: &Source, options: &Options) -> Result<Self> {
        Ok(Self {
            reader: source.open(&options.read)?,
            name: source.name(),
            options: options.clone(),
            provides: source.format.provides,
            row: Row::default(),
            clamped: 0,
            filled_ids: 0,
            filled_outputs: 0,
            ids: 0,
            needed_ids: 0,
            first_start: None,
        })
    }

    /// The next row; an error carries its place.
    pub(super) fn next(&mut self) -> Result<Option<Checked<'_>>> {
        if !self.reader.read(&mut self.row)? {
            return Ok(None);
        }
        let checked = self.check();
        let (input_tokens, output_tokens) = checked.map_err(|error| error.at(self.reader.place()))?;
        Ok(Some(Checked { row: &self.row, input_tokens, output_tokens, line: self.reader.line() }))
    }

    /// What can be said of a row alone: prompt and output tokens.
    fn check(&mut self) -> Result<(u32, u32)> {
        let Self { row, options, first_start, .. } = self;
        if let Some(start) = row.start {
            check_span(start, *first_start.get_or_insert(start), options.starts.speedup())?;
        }
        let input = input_length(row, self.reader.tokens_per_id(), options)?;
        self.clamped += u64::from(input.is_clamped);
        self.filled_ids += u64::from(row.ids.is_empty());
        if let Some(per_id) = self.reader.tokens_per_id().filter(|_| !row.ids.is_empty()) {
            self.ids += row.ids.len() as u64;
            self.needed_ids += u64::from(input.tokens.div_ceil(per_id));
        }
        let output_tokens = match (row.output_tokens, options.fill.output) {
            (Some(tokens), _) => tokens,
            (None, Some(tokens)) => {
                self.filled_outputs += 1;
                tokens
            }
            (None, None) => {
                return Err(Error::input("how many tokens were generated is not said")
                    .hint("--fill output=TOKENS says it for all requests"));
            }
        };
        Ok((input.tokens, output_tokens))
    }

    /// How many tokens an id stands for, where there are any.
    pub(super) fn tokens_per_id(&self) -> u32 {
        self.reader.tokens_per_id().unwrap_or(1)
    }

    pub(super) fn reader(&self) -> &dyn Reader {
        self.reader.as_ref()
    }

    /// The row read last.
    pub(super) fn row(&self) -> &Row {
        &self.row
    }

    pub(super) fn name(&self) -> String {
        self.name.clone()
    }
}

struct InputLength {
    tokens: u32,
    is_clamped: bool,
}

/// The simulated clock counts nanoseconds in 64 bits: a trace may span half of that, 146 years.
const LONGEST_SPAN_MS: f64 = 4.6e12;

fn check_span(start: Moment, first: Moment, speedup: f64) -> Result<()> {
    let away = start.nanos.abs_diff(first.nanos);
    if Nanos(away).as_ms() / speedup > LONGEST_SPAN_MS {
        return Err(Error::input(format!("its start, {} ms, is more than a century away", start.ms()))
            .hint("the requests of one trace belong together; is the unit of its times right?"));
    }
    Ok(())
}

fn input_length(row: &Row, tokens_per_id: Option<u32>, options: &Options) -> Result<InputLength> {
    let of = |tokens| Ok(InputLength { tokens, is_clamped: false });
    let (Some(per_id), false) = (tokens_per_id, row.ids.is_empty()) else {
        return match row.input_tokens {
            Some(0) => Err(Error::input("its prompt is empty").hint("a prompt has at least one token")),
            Some(tokens) => of(tokens),
            None => Err(Error::input("the length of its prompt is not said").hint("give it, or block ids")),
        };
    };
    let (ids, per_id) = (row.ids.len() as u64, u64::from(per_id));
    let covered =
        u32::try_from(ids * per_id).map_err(|_| Error::input("its ids stand for more than 2^32 tokens"))?;
    match row.input_tokens {
        None => of(covered),
        Some(0) => Err(Error::input("\"input_length\" is 0").hint("a prompt has at least one token")),
        Some(tokens) if tokens <= covered => of(tokens),
        Some(_) if options.clamp_input => Ok(InputLength { tokens: covered, is_clamped: true }),
        Some(tokens) => {
            let message = format!(
                "\"input_length\" is {tokens}, but its {ids} hash ids of {per_id} tokens cover only {covered}"
            );
            Err(Error::input(message)
                .hint("--trace-block-size says how many tokens a hash id stands for; --clamp-input cuts"))
        }
    }
}
