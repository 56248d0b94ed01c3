//! Request traces of all formats, compressed or not: whatever the bytes, by every format to their end.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use rand::RngExt;
use wavetank_model::{Draw, Error};
use wavetank_trace::requests::{self, ReadOptions, Source, Texts, TokenCount, WriteOptions};
use wavetank_trace::{Fill, Head, Input, Options, Output, Row, Starts};

use super::Entry;
use crate::said::{Met, sketch};
use crate::texts;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "requests",
    about: "request traces of all formats, texts of conversations among them",
    samples: &["crates/trace/tests/samples"],
    seeds,
    changed,
    check,
    // What an archive of 32 KiB may unpack to line by line, besides the inputs.
    most_memory: 256 << 20,
};

/// Texts of no format.
fn seeds() -> Vec<Vec<u8>> {
    let none =
        [b"".as_slice(), b"[]", b"{}", b"a,b\n1,2\n", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"];
    none.map(<[u8]>::to_vec).to_vec()
}

/// A change of a text, or an archive of one.
fn changed(bytes: &[u8], other: &[u8], draw: &mut Draw) -> Vec<u8> {
    let changed = texts::changed(bytes, other, draw);
    if draw.random_range(0..20u32) == 0 { packed(&changed, draw) } else { changed }
}

fn packed(bytes: &[u8], draw: &mut Draw) -> Vec<u8> {
    if draw.random() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(bytes).and_then(|()| packer.finish()).expect("memory takes every byte")
    } else {
        zstd::encode_all(bytes, 1).expect("memory takes every byte")
    }
}

/// Reads `bytes` by every format, whatever they are.
fn check(bytes: &[u8]) -> Met {
    let head = Head::of(bytes.to_vec());
    let ways = requests::ALL.iter().map(|entry| {
        let guess = if (entry.recognises)(&head) { "+" } else { "" };
        format!("{guess}{}", read(entry, bytes))
    });
    Met::Read(ways.collect::<Vec<_>>().join(" "))
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
fn read(entry: &requests::Entry, bytes: &[u8]) -> String {
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
fn again(entry: &requests::Entry, rows: &[Row]) {
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
fn open(entry: &requests::Entry, bytes: &[u8]) {
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
    sketch(&said)
}
