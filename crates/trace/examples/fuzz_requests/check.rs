//! What must hold of any bytes that are read as a request trace, by every format. Both fuzzers run it: the
//! one that changes bytes at random, and libFuzzer in `fuzz/`.

use std::sync::Arc;

use wavetank_model::Error;
use wavetank_trace::requests::{self, Entry, ReadOptions, Source, Texts, TokenCount, WriteOptions};
use wavetank_trace::{Fill, Head, Input, Options, Output, Row, Starts};

/// Reads `bytes` by every format, whatever they are. Tells what was met: inputs of which that differs went
/// different ways.
pub(crate) fn check(bytes: &[u8]) -> String {
    let head = Head::of(bytes.to_vec());
    let ways = requests::ALL.iter().map(|entry| {
        let guess = if (entry.recognises)(&head) { "+" } else { "" };
        format!("{guess}{}", read(entry, bytes))
    });
    ways.collect::<Vec<_>>().join(" ")
}

fn input(bytes: &[u8]) -> Input {
    Input::Bytes(Arc::from(bytes))
}

/// Texts by characters: a tokenizer is not what is looked at.
fn options() -> ReadOptions {
    let texts = Texts { tokens: TokenCount::Characters(4.0), ..Texts::default() };
    ReadOptions { texts, ..ReadOptions::default() }
}

/// Reads to the end, over all mistakes.
fn read(entry: &Entry, bytes: &[u8]) -> String {
    let mut reader = match (entry.read)(&[input(bytes)], &options()) {
        Ok(reader) => reader,
        Err(error) => return placed(&error),
    };
    let (mut rows, mut errors, mut way) = (Vec::new(), 0_u64, String::new());
    let mut row = Row::default();
    loop {
        match reader.read(&mut row) {
            Ok(true) => {
                sane(&row, reader.tokens_per_id());
                assert!(reader.place().starts_with("<memory>:"), "{}: a row has a place", entry.name);
                rows.push(row.clone());
            }
            Ok(false) => break,
            Err(error) => {
                way = placed(&error);
                errors += 1;
            }
        }
        // An archive may hold more lines than it has bytes, but not without end.
        assert!(errors < 1 << 24, "{}: goes on and on", entry.name);
    }
    assert!(!matches!(reader.read(&mut row), Ok(true)), "{}: nothing follows the end", entry.name);
    if errors == 0 {
        again(entry, &rows);
        open(entry, bytes);
    }
    format!("{way}{:?}/{:?}", rows.len().checked_ilog2(), errors.checked_ilog2())
}

fn sane(row: &Row, tokens_per_id: Option<u32>) {
    assert!(row.ids.is_empty() || tokens_per_id.is_some(), "ids stand for tokens");
}

/// What was read is written, and read again has as many requests of the same lengths.
fn again(entry: &Entry, rows: &[Row]) {
    let Some(begin) = entry.write else { return };
    let mut bytes = Vec::new();
    let mut writer = begin(Output::to(&mut bytes), &WriteOptions { tokens_per_id: None }).expect("memory");
    for row in rows {
        writer.write(row).expect("what was read can be written");
    }
    writer.finish().expect("memory takes every byte");
    let mut reader = (entry.read)(&[input(&bytes)], &options()).expect("what is written is a trace");
    let (mut found, mut row) = (Vec::new(), Row::default());
    while reader.read(&mut row).expect("what is written is sound") {
        found.push(row.clone());
    }
    // Sessions may be put together, so that the order is another one.
    let lengths = |rows: &[Row]| {
        let mut lengths: Vec<_> = rows.iter().map(|row| (row.input_tokens, row.output_tokens)).collect();
        lengths.sort_unstable();
        lengths
    };
    assert_eq!(lengths(&found), lengths(rows), "{}", entry.name);
}

/// As a workload, all of it.
fn open(entry: &Entry, bytes: &[u8]) {
    let source = Source {
        format: requests::find(entry.name).expect("a row of the table"),
        inputs: vec![input(bytes)],
    };
    let fill = Fill { output: Some(3), ..Fill::default() };
    let options = Options { read: options(), clamp_input: true, fill, ..Options::of(Starts::Ignored) };
    match wavetank_trace::open(&source, &options) {
        Ok(mut loaded) => {
            while loaded.workload.open().expect("the first reading found no fault").is_some() {}
        }
        Err(error) => {
            assert!(error.to_string().starts_with("<memory>"), "{error} has no place");
        }
    }
}

/// A message without its numbers and names; it has a place and a hint.
fn placed(error: &Error) -> String {
    let said = error.to_string();
    let line = said.strip_prefix("<memory>:").unwrap_or_else(|| panic!("{said} has no place"));
    assert!(line.starts_with(|digit: char| digit.is_ascii_digit()), "{said} has no line");
    assert!(said.contains("\nhint: "), "{said} has no hint");
    let mut is_quoted = false;
    let kept = |letter: &char| {
        is_quoted ^= *letter == '"';
        !is_quoted && !letter.is_ascii_digit()
    };
    said.lines().next().unwrap_or_default().chars().filter(kept).take(60).collect()
}
