//! The words that answers are made of: each is one token, whatever is before it, so that whoever counts the
//! tokens of a text finds as many as were generated.

use std::collections::HashSet;

use wavetank_model::{Error, Result};

use super::tokens::Tokenizer;

/// Common words of one token in most tables.
const COMMON: &str = "\
    about above across action after again air all along also always among answer any area around back \
    balance bank based basic beach before behind below best better between big black block blue board \
    boat body book both bottom box break bridge bring build building business call camera care case \
    cause center central change check city class clear close code cold color common company complete \
    control cook cool corner cost count country course cover create cross current data day deep degree \
    depth detail direction distance does done door double down draw drive during each early earth east \
    easy edge effect end energy enough even every example eye face fact fall family far fast field \
    figure final find fine fire first fish five flat floor flow follow food force form forward four free \
    front full game garden gas general given glass gold good great green ground group grow half hand \
    hard head heat heavy help high hill hold home hope horse hour house idea image inside into iron \
    island keep kind know lake land large last late learn leave left level life light line list little \
    local long look low machine main make map mark market mass master material matter mean measure metal \
    middle mile mind model modern moment moon more morning most motion mountain move much music name \
    nature near need never new next night north note number object ocean office often oil old once one \
    only open order other over own page paint pair paper part pass past path pattern people place plan \
    plane plant point power press print problem process product public pull push question quick quiet \
    rain range rate reach read real reason record red region rest result right ring rise river road rock \
    room round rule run safe same sand scale science sea season second see sense set seven several shape \
    ship short show side sign simple single size sky slow small snow some song sound source south space \
    speed spring square stage stand star start state station stay step still stone store story street \
    strong study summer sun sure surface system table take talk test than that then there these they \
    thing think this those thought three through time today together tone total toward town trade train \
    travel tree true turn type under unit until up use usual valley value very view voice wait walk wall \
    warm was watch water wave way weather week well were west what wheel when where which while white \
    wide will wind window winter with wood word work world would year yellow young";
/// Fewer make no text.
const FEWEST: usize = 16;
/// More add nothing.
const MOST: usize = 2048;

/// A word and its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) token: u32,
    /// With the space before it; letters, so that it stands in JSON as it is.
    pub(super) text: Box<str>,
}

/// Words by the number that a draw gives them.
#[derive(Debug)]
pub(super) struct Words {
    /// At the beginning of a text.
    first: Vec<Word>,
    /// After others.
    rest: Vec<Word>,
}

impl Words {
    /// Those that `tokenizer` has a token for.
    pub(super) fn of(tokenizer: &Tokenizer) -> Result<Self> {
        let common = Self::among(tokenizer, COMMON.split_whitespace());
        if common.are_enough() {
            return Ok(common);
        }
        let vocabulary = tokenizer.vocabulary();
        let own = Self::among(tokenizer, vocabulary.iter().map(String::as_str));
        match own.are_enough() {
            true => Ok(own),
            false => Err(Error::input("has no words to answer with")
                .at("--tokenizer")
                .hint("answers are words of one token each; take the tokenizer of a language model")),
        }
    }

    fn among<'w>(tokenizer: &Tokenizer, words: impl Iterator<Item = &'w str>) -> Self {
        let mut found = Self { first: Vec::new(), rest: Vec::new() };
        let mut seen = HashSet::new();
        for word in words.filter(|word| seen.insert(*word)).take(MOST) {
            if let Some([token]) = tokenizer.encode(word).as_deref()
                && tokenizer.decode(&[*token]).trim() == word
            {
                found.first.push(Word { token: *token, text: word.into() });
            }
            let Some(Word { token: before, text }) = found.first.first() else { continue };
            let text = format!("{text} {word}");
            if let Some([first, token]) = tokenizer.encode(&text).as_deref()
                && first == before
                && tokenizer.decode(&[*token]).trim() == word
            {
                found.rest.push(Word { token: *token, text: format!(" {word}").into() });
            }
        }
        found
    }

    fn are_enough(&self) -> bool {
        self.first.len().min(self.rest.len()) >= FEWEST
    }

    /// The word at `position` of a text that `draw` gives.
    pub(super) fn at(&self, position: usize, draw: u16) -> &Word {
        let words = if position == 0 { &self.first } else { &self.rest };
        &words[usize::from(draw) % words.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::tokens::tests::words_file;

    /// Broken by: a word of two tokens, or one that is another token after others.
    #[test]
    fn a_text_has_as_many_tokens_as_words() {
        let tokenizer = Tokenizer::embedded();
        let words = Words::of(&tokenizer).unwrap();
        assert!(words.rest.len() > 400, "{}", words.rest.len());
        for stride in [1u16, 7, 101] {
            let said: Vec<&Word> =
                (0..600).map(|at: u16| words.at(at.into(), at.wrapping_mul(stride))).collect();
            let text: String = said.iter().map(|word| &*word.text).collect();
            let tokens: Vec<u32> = said.iter().map(|word| word.token).collect();
            assert_eq!(tokenizer.encode(&text), Some(tokens.clone()));
            assert_eq!(tokenizer.decode(&tokens), text);
        }
    }

    /// Broken by: a table that has none of our words and gets none of its own.
    #[test]
    fn a_table_without_our_words_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let own: Vec<String> = ('a'..='z').map(|letter| format!("q{letter}")).collect();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let tokenizer = Tokenizer::from_file(&words_file(folder.path(), &own)).unwrap();
        let words = Words::of(&tokenizer).unwrap();
        assert_eq!(&*words.at(0, 3).text, "qd");
        assert_eq!(&*words.at(1, 3).text, " qd");
        let few = Tokenizer::from_file(&words_file(folder.path(), &own[..3])).unwrap();
        assert!(Words::of(&few).unwrap_err().to_string().contains("no words"));
    }
}
