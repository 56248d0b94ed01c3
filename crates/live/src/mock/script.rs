//! What is answered: it is known before the first token comes, and follows from the prompt alone, the `seed`
//! of the request and the number of the choice.

use rand::Rng;
use rand_distr::{Distribution, LogNormal};
use serde::Serialize;
use wavetank_model::seeded;

use super::control::Finish;
use super::words::Words;

/// How long answers are that nothing else ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OutputLengths {
    /// Tokens on average.
    pub mean: f64,
    /// Their standard deviation over the mean.
    pub cv: f64,
}

impl OutputLengths {
    /// So many tokens, one at least.
    fn draw(self, seed: u64) -> u32 {
        let spread = (self.cv * self.cv).ln_1p();
        let drawn = match LogNormal::new(self.mean.ln() - spread / 2.0, spread.sqrt()) {
            Ok(lengths) => lengths.sample(&mut seeded(seed, "length of an answer")),
            Err(_) => self.mean,
        };
        drawn.round().clamp(1.0, f64::from(u32::MAX)) as u32
    }
}

/// What ends an answer, as it was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    /// Tokens at most; one at least.
    pub(super) max_tokens: u32,
    /// Tokens that come before anything but `max_tokens` ends it.
    pub(super) min_tokens: u32,
    /// Whether it goes on when everything is said.
    pub(super) ignores_end: bool,
    /// Texts that end it.
    pub(super) stop: Vec<String>,
    /// Tokens that end it.
    pub(super) stop_tokens: Vec<u32>,
    /// Whether what ended it is a part of it.
    pub(super) keeps_stop: bool,
}

impl Bounds {
    /// Tokens that come whatever is drawn, unless something that is said ends them.
    pub(super) fn sure_tokens(&self) -> u64 {
        u64::from(if self.ignores_end { self.max_tokens } else { self.min_tokens })
    }
}

/// Why an answer ends where it does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    /// Everything is said, and the mark after it is the last token.
    Said,
    /// With the last token that was wanted.
    Cut,
    /// With this text.
    Text(String),
    /// With this token.
    Token(u32),
}

/// An answer in words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Script {
    /// A draw for each word.
    draws: Box<[u16]>,
    pub(super) ending: Ending,
    /// Bytes of its text; the last words may have more.
    text_bytes: usize,
}

impl Script {
    /// The answer of `seed` within `bounds`, usually as long as `lengths` say.
    pub(super) fn write(words: &Words, seed: u64, lengths: OutputLengths, bounds: &Bounds) -> Self {
        let said = match bounds.ignores_end {
            true => u32::MAX,
            false => lengths.draw(seed).max(bounds.min_tokens),
        };
        // The mark after what is said is a token too.
        let count = said.min(bounds.max_tokens);
        let ending = if said < bounds.max_tokens { Ending::Said } else { Ending::Cut };
        let mut draw = seeded(seed, "words of an answer");
        let mut draws = Vec::with_capacity(count.min(4096) as usize);
        let mut text = String::new();
        for position in 0..count as usize {
            let drawn = draw.next_u32() as u16;
            let word = words.at(position, drawn);
            draws.push(drawn);
            let before = text.len();
            text.push_str(&word.text);
            if position < bounds.min_tokens as usize {
                continue;
            }
            if bounds.stop_tokens.contains(&word.token) {
                let text_bytes = if bounds.keeps_stop { text.len() } else { before };
                return Self { draws: draws.into(), ending: Ending::Token(word.token), text_bytes };
            }
            if let Some((stop, at)) = stopped(&text, before, &bounds.stop) {
                let text_bytes = if bounds.keeps_stop { at + stop.len() } else { at };
                return Self { draws: draws.into(), ending: Ending::Text(stop.clone()), text_bytes };
            }
        }
        Self { draws: draws.into(), ending, text_bytes: text.len() }
    }

    /// The same tokens without a text.
    pub(super) fn silent(self) -> Self {
        Self { text_bytes: 0, ..self }
    }

    /// How many tokens are generated.
    pub(super) fn tokens(&self) -> u32 {
        self.draws.len() as u32 + u32::from(self.ending == Ending::Said)
    }

    /// Which ones; `end` is the mark after what is said.
    pub(super) fn ids<'s>(&'s self, words: &'s Words, end: u32) -> impl Iterator<Item = u32> + 's {
        let said = self.draws.iter().enumerate().map(|(at, drawn)| words.at(at, *drawn).token);
        said.chain((self.ending == Ending::Said).then_some(end))
    }

    /// What the token at `position` adds to a text of which `before` bytes are there.
    pub(super) fn piece<'w>(&self, words: &'w Words, position: u32, before: usize) -> &'w str {
        let Some(drawn) = self.draws.get(position as usize) else { return "" };
        let text = &words.at(position as usize, *drawn).text;
        &text[..text.len().min(self.text_bytes - before)]
    }

    /// All of its text.
    pub(super) fn text(&self, words: &Words) -> String {
        let mut text = String::with_capacity(self.text_bytes);
        for position in 0..self.draws.len() as u32 {
            let before = text.len();
            text.push_str(self.piece(words, position, before));
        }
        text
    }

    /// Why it ends, for who counts.
    pub(super) fn finish(&self) -> Finish {
        match self.ending {
            Ending::Cut => Finish::Length,
            Ending::Said | Ending::Text(_) | Ending::Token(_) => Finish::Stop,
        }
    }
}

/// The first of `stops` that ends in what came after `before`, and where it begins.
fn stopped<'s>(text: &str, before: usize, stops: &'s [String]) -> Option<(&'s String, usize)> {
    stops.iter().find_map(|stop| {
        let from = (before + 1).saturating_sub(stop.len());
        let found = text.as_bytes()[from..].windows(stop.len()).position(|part| part == stop.as_bytes())?;
        Some((stop, from + found))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mock::tokens::Tokenizer;

    fn words() -> (Tokenizer, Words) {
        let tokenizer = Tokenizer::embedded();
        let words = Words::of(&tokenizer).unwrap();
        (tokenizer, words)
    }

    const LENGTHS: OutputLengths = OutputLengths { mean: 40.0, cv: 0.5 };

    fn bounds(max_tokens: u32) -> Bounds {
        Bounds { max_tokens, ..Bounds::default() }
    }

    /// Broken by: a length that ignores its seed, its mean or its spread.
    #[test]
    fn lengths_are_as_their_numbers_say() {
        let drawn: Vec<f64> = (0..20_000).map(|seed| f64::from(LENGTHS.draw(seed))).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|length| (length - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!((mean - 40.0).abs() < 1.0, "{mean}");
        assert!((variance.sqrt() / mean - 0.5).abs() < 0.03, "{}", variance.sqrt() / mean);
        assert!((0..100).all(|seed| OutputLengths { mean: 7.0, cv: 0.0 }.draw(seed) == 7));
    }

    /// Broken by: an end that comes early, late, or for another reason than it says.
    #[test]
    fn an_answer_ends_where_it_should() {
        let (_, words) = words();
        let fixed = OutputLengths { mean: 10.0, cv: 0.0 };
        let write = |bounds: &Bounds| Script::write(&words, 1, fixed, bounds);
        let said = write(&bounds(100));
        assert_eq!((said.tokens(), &said.ending, said.finish()), (11, &Ending::Said, Finish::Stop));
        for max in [1, 5, 10] {
            let cut = write(&bounds(max));
            assert_eq!((cut.tokens(), &cut.ending, cut.finish()), (max, &Ending::Cut, Finish::Length));
            assert!(said.text(&words).starts_with(&cut.text(&words)));
        }
        let on = write(&Bounds { ignores_end: true, ..bounds(50) });
        assert_eq!((on.tokens(), on.finish()), (50, Finish::Length));
        let least = write(&Bounds { min_tokens: 30, ..bounds(50) });
        assert_eq!((least.tokens(), least.finish()), (31, Finish::Stop));
        assert_ne!(write(&bounds(10)), Script::write(&words, 2, fixed, &bounds(10)));
    }

    /// Broken by: a stop that is not found over the edge of a word, that ends too early, or that stays.
    #[test]
    fn stops_end_an_answer() {
        let (_, words) = words();
        let long = Bounds { ignores_end: true, ..bounds(60) };
        let write = |bounds: &Bounds| Script::write(&words, 3, LENGTHS, bounds);
        let whole = write(&long);
        let text = whole.text(&words);
        let third: String = text.split(' ').nth(3).unwrap().to_owned();
        let stop = format!("{} {}", &text.split(' ').nth(2).unwrap()[1..], &third[..1]);
        let stopping = Bounds { stop: vec!["never said".to_owned(), stop.clone()], ..long.clone() };
        let stopped = write(&stopping);
        assert_eq!((stopped.tokens(), stopped.finish()), (4, Finish::Stop));
        assert_eq!(stopped.ending, Ending::Text(stop.clone()));
        assert_eq!(stopped.text(&words), text[..text.find(&stop).unwrap()]);
        let kept = write(&Bounds { keeps_stop: true, ..stopping.clone() });
        assert_eq!(kept.text(&words), text[..text.find(&stop).unwrap() + stop.len()]);
        let later = write(&Bounds { min_tokens: 4, ..stopping });
        assert!(later.tokens() > 4);

        let token = whole.ids(&words, 0).nth(5).unwrap();
        let by_token = write(&Bounds { stop_tokens: vec![token], ..long });
        assert_eq!(by_token.ending, Ending::Token(token));
        assert!(by_token.tokens() <= 6 && text.starts_with(&by_token.text(&words)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Broken by: a text that differs whole and in pieces, or whose tokens are not those counted.
        #[test]
        fn pieces_are_the_whole(
            seed: u64,
            max in 1u32..300,
            stop in "[a-z]{1,2}( [a-z])?",
            keeps_stop: bool,
        ) {
            let (tokenizer, words) = words();
            let bounds = Bounds { stop: vec![stop], keeps_stop, min_tokens: max / 2, ..bounds(max) };
            let script = Script::write(&words, seed, LENGTHS, &bounds);
            let mut text = String::new();
            for position in 0..script.tokens() {
                let before = text.len();
                text.push_str(script.piece(&words, position, before));
            }
            prop_assert_eq!(&text, &script.text(&words));
            let ids: Vec<u32> = script.ids(&words, tokenizer.marks().end).collect();
            prop_assert_eq!(ids.len() as u32, script.tokens());
            if !matches!(script.ending, Ending::Text(_)) {
                prop_assert_eq!(tokenizer.decode(&ids), text.clone());
                let said: Vec<u32> = ids.into_iter().filter(|id| *id != tokenizer.marks().end).collect();
                prop_assert_eq!(tokenizer.encode(&text), Some(said));
            }
        }
    }
}
