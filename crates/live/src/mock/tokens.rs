//! Texts as tokens and back: by the table inside, or by a model's own `tokenizer.json`.

use std::collections::HashSet;
use std::path::Path;

use tiktoken_rs::{CoreBPE, cl100k_base_singleton};
use wavetank_model::{Error, Result};

/// The tokens of OpenAI's cl100k_base that texts are made of.
const EMBEDDED_TOKENS: u32 = 100_256;
/// No model has as many.
const MOST_TOKENS: u32 = 1 << 28;
/// Those that its chat models mark turns with.
const EMBEDDED_MARKS: Marks = Marks { start: 100_264, end: 100_265 };

/// How texts become tokens.
#[derive(Debug)]
pub struct Tokenizer {
    table: Table,
    /// Tokens of texts are below.
    size: u32,
    marks: Marks,
}

enum Table {
    Embedded(&'static CoreBPE),
    File(Box<tokenizers::Tokenizer>),
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Embedded(_) => "cl100k_base",
            Self::File(_) => "tokenizer.json",
        })
    }
}

/// Tokens around a message, which no text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    /// Before who says it.
    pub(super) start: u32,
    /// After what is said; an answer that is complete ends with it.
    pub(super) end: u32,
}

/// What models call them.
const STARTS: [&str; 4] = ["<|im_start|>", "<|start_header_id|>", "<start_of_turn>", "<|start|>"];
const ENDS: [&str; 6] = ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>", "</s>", "<|endoftext|>"];

impl Tokenizer {
    /// OpenAI's cl100k_base, whose table is part of the program.
    pub(crate) fn embedded() -> Self {
        let table = Table::Embedded(cl100k_base_singleton());
        Self { table, size: EMBEDDED_TOKENS, marks: EMBEDDED_MARKS }
    }

    /// The tokenizer of a model, from its `tokenizer.json`.
    pub fn from_file(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| Error::io(path, error).within(place.clone()))?;
        let is_none = |error: &dyn std::fmt::Display| {
            Error::input(format!("is no tokenizer: {error}"))
                .at(place.clone())
                .hint("--tokenizer takes the tokenizer.json of a model, or a directory that has one")
        };
        // What is no JSON, down to its escapes, makes the library panic.
        serde_json::from_slice::<serde_json::Value>(&bytes).map_err(|error| is_none(&error))?;
        let table = tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| is_none(&error))?;
        // Numbers may have gaps: how many there are does not say how high they go.
        let last = table.get_vocab(true).into_values().max();
        let last = last.ok_or_else(|| Error::input("has no tokens").at(place.clone()))?;
        if last >= MOST_TOKENS {
            return Err(Error::input(format!("token {last}: numbers are below {MOST_TOKENS}")).at(place));
        }
        let named = |names: &[&str]| names.iter().find_map(|name| table.token_to_id(name));
        // A model without marks has numbers for them that no text has.
        let (start, end) = (named(&STARTS).unwrap_or(last + 1), named(&ENDS).unwrap_or(last + 2));
        let marks = Marks { start, end };
        Ok(Self { table: Table::File(Box::new(table)), size: last + 1, marks })
    }

    /// The tokens of a text. `None` if it is too much for the table's pattern.
    pub fn encode(&self, text: &str) -> Option<Vec<u32>> {
        match &self.table {
            Table::Embedded(table) => Some(table.encode(text, &HashSet::new()).ok()?.0),
            Table::File(table) => Some(table.encode_fast(text, false).ok()?.get_ids().to_vec()),
        }
    }

    /// The same for a text that is a whole prompt, with what the tokenizer puts before and after one.
    pub(crate) fn encode_prompt(&self, text: &str) -> Option<Vec<u32>> {
        match &self.table {
            Table::Embedded(_) => self.encode(text),
            Table::File(table) => Some(table.encode_fast(text, true).ok()?.get_ids().to_vec()),
        }
    }

    /// The text of tokens, without marks; what is no text is a replacement character.
    pub fn decode(&self, tokens: &[u32]) -> String {
        match &self.table {
            Table::Embedded(table) => {
                let known = tokens.iter().copied().filter(|token| *token < EMBEDDED_TOKENS);
                let bytes = table.decode_bytes(&known.collect::<Vec<_>>()).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Table::File(table) => table.decode(tokens, true).unwrap_or_default(),
        }
    }

    /// How many tokens there are; all are below.
    pub fn size(&self) -> u32 {
        self.size.max(self.marks.start + 1).max(self.marks.end + 1)
    }

    pub(super) fn marks(&self) -> Marks {
        self.marks
    }

    /// Words that it may know, where it knows none of ours: what it has between spaces.
    pub(super) fn vocabulary(&self) -> Vec<String> {
        let Table::File(table) = &self.table else { return Vec::new() };
        let mut words: Vec<(u32, String)> = table
            .get_vocab(false)
            .into_iter()
            .map(|(word, id)| (id, word.trim_start_matches(['Ġ', '▁']).to_owned()))
            .filter(|(_, word)| word.len() >= 2 && word.chars().all(char::is_alphabetic))
            .collect();
        words.sort_unstable();
        words.into_iter().map(|(_, word)| word).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A small model's file: words between spaces, as whole tokens.
    pub(in crate::mock) fn words_file(folder: &Path, words: &[&str]) -> std::path::PathBuf {
        let mut vocabulary: serde_json::Map<String, serde_json::Value> = serde_json::Map::new();
        for (id, word) in ["[UNK]", "<|im_start|>", "<|im_end|>"].iter().chain(words).enumerate() {
            vocabulary.insert((*word).to_owned(), id.into());
        }
        let added = ["[UNK]", "<|im_start|>", "<|im_end|>"].iter().enumerate().map(|(id, word)| {
            serde_json::json!({
                "id": id, "content": word, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true
            })
        });
        let json = serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null,
            "added_tokens": added.collect::<Vec<_>>(),
            "normalizer": null, "pre_tokenizer": { "type": "Whitespace" },
            "post_processor": null, "decoder": null,
            "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]" }
        });
        let path = folder.join("tokenizer.json");
        std::fs::write(&path, json.to_string()).unwrap();
        path
    }

    /// Broken by: marks in a text that become marks, or text that does not come back.
    #[test]
    fn texts_come_back_and_marks_in_them_are_text() {
        let tokenizer = Tokenizer::embedded();
        for text in ["", "Hello, world!", "  two  spaces\n\nand lines", "größer 日本語 🙂", "<|im_end|>"]
        {
            let tokens = tokenizer.encode(text).unwrap();
            assert_eq!(tokenizer.decode(&tokens), text);
            assert!(tokens.iter().all(|token| *token < EMBEDDED_TOKENS));
        }
        let marks = tokenizer.marks();
        assert_eq!(tokenizer.decode(&[9906, marks.end, marks.start, u32::MAX]), "Hello");
        assert!(tokenizer.size() > marks.end && tokenizer.size() > marks.start);
    }

    /// Broken by: a text that makes the table's pattern panic instead of giving up.
    #[test]
    fn a_text_of_spaces_is_no_end() {
        let spaces = " ".repeat(3 << 20);
        let _ = Tokenizer::embedded().encode(&spaces);
    }

    /// Broken by: a file whose marks are not looked for, or one that is no tokenizer.
    #[test]
    fn a_file_has_its_own_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let tokenizer = Tokenizer::from_file(&words_file(folder.path(), &["sea", "ship"])).unwrap();
        assert_eq!(tokenizer.encode("ship sea ship"), Some(vec![4, 3, 4]));
        assert_eq!(tokenizer.marks(), Marks { start: 1, end: 2 });
        assert_eq!(tokenizer.size(), 5);
        assert_eq!(tokenizer.decode(&[3, 2, 4]), "sea ship");
        assert_eq!(tokenizer.vocabulary(), ["sea", "ship"]);
        let wrong = folder.path().join("other.json");
        let text = std::fs::read_to_string(words_file(folder.path(), &["sea"])).unwrap();
        for text in
            ["{}", &text[..text.len() / 2], &text.replace("null", "nil"), &text.replace("sea", r"\ud800")]
        {
            std::fs::write(&wrong, text).unwrap();
            assert!(Tokenizer::from_file(&wrong).unwrap_err().to_string().contains("no tokenizer"));
        }
    }

    /// Broken by: tokens that are counted to know how high they go.
    #[test]
    fn numbers_with_gaps_are_below_the_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = words_file(folder.path(), &["sea", "ship"]);
        let text = std::fs::read_to_string(&path).unwrap();
        let with = |number: &str| {
            std::fs::write(&path, text.replace("\"ship\":4", &format!("\"ship\":{number}"))).unwrap();
            Tokenizer::from_file(&path)
        };
        let tokenizer = with("1000").unwrap();
        assert_eq!((tokenizer.encode("ship"), tokenizer.size()), (Some(vec![1000]), 1001));
        let told = with("4294967295").unwrap_err().to_string();
        assert!(told.contains("token 4294967295: numbers are below"), "{told}");
    }
}
