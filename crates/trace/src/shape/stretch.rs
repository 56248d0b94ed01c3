//! Longer or shorter prompts that share as much of themselves as before.

use wavetank_model::{Error, Result};

use super::around::Around;
use crate::Row;
use crate::requests::Reader;

/// How lengths change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Prompt tokens are multiplied by it.
    pub input: f64,
    /// Tokens to generate are multiplied by it.
    pub output: f64,
}

/// The block at position p becomes those from ceil(p·factor) to ceil((p+1)·factor): what two prompts share
/// depends on the position alone, so it is the same part of both as before.
fn stretch_input(row: &mut Row, factor: f64, tokens_per_id: Option<u32>) -> Result<()> {
    let depth = factor.ceil() as u64;
    let border = |position: usize| (position as f64 * factor).ceil() as u64;
    if border(row.ids.len()) > MOST_IDS {
        return Err(too_long(row.ids.len(), factor));
    }
    let mut ids = Vec::with_capacity(border(row.ids.len()) as usize);
    for (position, id) in row.ids.iter().enumerate() {
        let first = id.checked_mul(depth).ok_or_else(|| too_large(*id))?;
        ids.extend((0..border(position + 1) - border(position)).map(|i| first + i));
    }
    row.ids = ids;
    if let Some(tokens) = row.input_tokens {
        let stretched = scaled(tokens, factor).max(1);
        row.input_tokens = Some(stretched);
        if let Some(per_id) = tokens_per_id.filter(|_| tokens > 0) {
            row.ids.truncate(stretched.div_ceil(per_id) as usize);
        }
    }
    Ok(())
}

/// No model takes prompts of more tokens, and a number on a command line must not ask for memory without end.
const MOST_IDS: u64 = 1 << 27;

#[cold]
fn too_long(ids: usize, factor: f64) -> Error {
    Error::input(format!(
        "its {ids} blocks would be more than 2^27 when their number is multiplied by {factor}"
    ))
    .hint("a smaller --depth or --input-scale")
}

fn scaled(tokens: u32, factor: f64) -> u32 {
    // Too large a number becomes the largest.
    (f64::from(tokens) * factor).round() as u32
}

#[cold]
fn too_large(id: u64) -> Error {
    Error::input(format!("its id {id} cannot be told from others when it is multiplied"))
        .hint("ids that are hashes fill 64 bits: `wavetank trace anonymize --dense-ids` makes small ones")
}

/// A trace whose lengths change.
pub struct Stretched {
    reader: Box<dyn Reader>,
    stretch: Stretch,
}

impl Stretched {
    /// What `reader` reads, with other lengths.
    pub fn of(reader: Box<dyn Reader>, stretch: Stretch) -> Self {
        Self { reader, stretch }
    }
}

impl Around for Stretched {
    fn advance(&mut self, row: &mut Row) -> Result<bool> {
        if !self.reader.read(row)? {
            return Ok(false);
        }
        let Stretch { input, output } = self.stretch;
        if input != 1.0 {
            let stretched = stretch_input(row, input, self.tokens_per_id());
            stretched.map_err(|error| error.at(self.reader.place()))?;
        }
        row.output_tokens = row.output_tokens.map(|tokens| scaled(tokens, output).max(u32::from(tokens > 0)));
        Ok(true)
    }

    fn inner(&self) -> &dyn Reader {
        self.reader.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn l10_ids_and_length_grow_together() {
        let mut row = Row { input_tokens: Some(6), ids: vec![7, 8], ..Row::default() };
        stretch_input(&mut row, 3.0, None).unwrap();
        assert_eq!(row.input_tokens, Some(18));
        assert_eq!(row.ids, [21, 22, 23, 24, 25, 26]);
        let mut row = Row { ids: vec![u64::MAX], ..Row::default() };
        assert!(stretch_input(&mut row, 2.0, None).unwrap_err().to_string().contains("--dense-ids"));
    }

    /// Broken by: memory for as many ids as somebody types.
    #[test]
    fn prompts_without_end_are_refused() {
        for factor in [9_007_199_254_740_993.0, 1e300, f64::from(u32::MAX)] {
            let mut row = Row { input_tokens: Some(6), ids: vec![0, 1], ..Row::default() };
            let refused = stretch_input(&mut row, factor, Some(16)).unwrap_err().to_string();
            assert!(refused.contains("--input-scale"), "{refused}");
        }
    }

    proptest! {
        /// Broken by: borders that depend on the prompt, ids of neighbours that meet, ids that cover less.
        #[test]
        fn prompts_share_the_same_part_of_themselves(
            shared in 0_usize..20, own in 1_usize..20, factor in 0.1_f64..5.0, short in 0_u32..16,
        ) {
            let prompt = |first: u64| Row {
                ids: (0..shared as u64).chain(first..first + own as u64).collect(),
                input_tokens: Some((shared + own) as u32 * 16 - short),
                ..Row::default()
            };
            let (mut a, mut b) = (prompt(1000), prompt(2000));
            stretch_input(&mut a, factor, Some(16)).unwrap();
            stretch_input(&mut b, factor, Some(16)).unwrap();
            let alike = a.ids.iter().zip(&b.ids).take_while(|(a, b)| a == b).count();
            let border = (shared as f64 * factor).ceil() as usize;
            prop_assert_eq!(alike, border.min(a.ids.len()));
            let tokens = a.input_tokens.unwrap();
            prop_assert_eq!(a.ids.len(), tokens.div_ceil(16) as usize);
            let distinct: std::collections::BTreeSet<_> = a.ids.iter().collect();
            prop_assert_eq!(distinct.len(), a.ids.len());
        }
    }
}
