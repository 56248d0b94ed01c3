//! What holds of every request format, by its sample `samples/NAME.EXT`: a new row of the table is tested as
//! soon as its sample lies there.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wavetank_model::Result;
use wavetank_trace::requests::{self, ALL, Entry, ReadOptions, Source, WriteOptions};
use wavetank_trace::{Decimal, Head, Input, Output, Row};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

/// The sample of a format, and what is read behind it: another file where names must not come again.
fn sample(entry: &Entry) -> (PathBuf, PathBuf) {
    let files = fs::read_dir(samples()).expect("a folder of samples");
    let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    files.sort();
    let begins = |path: &PathBuf, start: &str| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    let (start, more) = (format!("{}.", entry.name), format!("{}.more.", entry.name));
    let one = files.iter().find(|path| begins(path, &start) && !begins(path, &more));
    let one = one.unwrap_or_else(|| {
        panic!("the format {0} has no sample: add {1}/{0}.EXT", entry.name, samples().display())
    });
    (one.clone(), files.iter().find(|path| begins(path, &more)).unwrap_or(one).clone())
}

fn memory(bytes: &[u8]) -> Input {
    Input::Bytes(Arc::from(bytes))
}

fn rows(entry: &Entry, inputs: &[Input]) -> Result<Vec<Row>> {
    let mut reader = (entry.read)(inputs, &ReadOptions::default())?;
    let (mut rows, mut row) = (Vec::new(), Row::default());
    while reader.read(&mut row)? {
        rows.push(row.clone());
    }
    Ok(rows)
}

/// A row as one line: what is told, and nothing else.
fn told(row: &Row) -> String {
    let mut line = String::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(line, " {name}={value}");
        }
    };
    put("request", row.request.clone());
    put("session", row.session.clone());
    put("start_ms", row.start.map(|start| start.ms().to_string()));
    put("pause_ms", row.pause.map(|pause| Decimal::ms(pause).to_string()));
    put("wait_for", (!row.wait_for.is_empty()).then(|| row.wait_for.join(",")));
    put("tool_wait_ms", row.tool_wait.map(|wait| Decimal::ms(wait).to_string()));
    put("in", row.input_tokens.map(|tokens| tokens.to_string()));
    put("out", row.output_tokens.map(|tokens| tokens.to_string()));
    put("ids", (!row.ids.is_empty()).then(|| format!("{:x?}", row.ids)));
    put("priority", (row.priority != Default::default()).then(|| format!("{:?}", row.priority)));
    put("class", row.policy_class.clone());
    put("kind", row.kind.clone());
    line.trim_start().to_owned()
}

/// Broken by: a value of a row that is read otherwise, a request that is lost, a finding that is not told.
#[test]
fn a_sample_is_these_rows() {
    for entry in ALL {
        let input = Input::File(sample(entry).0);
        let mut reader = (entry.read)(&[input], &ReadOptions::default()).unwrap();
        let mut text = format!("tokens per id: {:?}\n", reader.tokens_per_id());
        let mut row = Row::default();
        while reader.read(&mut row).unwrap() {
            let _ = writeln!(text, "{}: {}", reader.line(), told(&row));
        }
        let findings = reader.findings();
        let _ = writeln!(text, "skipped: {}", findings.skipped);
        for note in findings.notes {
            let _ = writeln!(text, "note: {note}");
        }
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("format_{}", entry.name), text);
        });
    }
}

/// Rows of this format look like another's: it is read only by name.
const BY_NAME: &str = "mooncake_delta";

/// Broken by: a format that takes another one's files for its own.
#[test]
fn a_sample_is_of_one_format() {
    for entry in ALL.iter().filter(|entry| entry.name != BY_NAME) {
        let (one, more) = sample(entry);
        for path in [one, more] {
            let head = Head::of(fs::read(&path).unwrap());
            let fits: Vec<_> =
                ALL.iter().filter(|other| (other.recognises)(&head)).map(|it| it.name).collect();
            assert_eq!(fits, [entry.name], "{}", path.display());
            let path = path.display().to_string();
            assert_eq!(Source::of(&[&path], None).unwrap().format.name, entry.name);
            let named = format!("{}:{path}", entry.name.replace('_', "-"));
            assert_eq!(Source::of(&[&named], None).unwrap().paths(), [path]);
        }
    }
}

fn written(entry: &Entry, rows: &[Row]) -> Option<Vec<u8>> {
    let begin = entry.write?;
    let mut bytes = Vec::new();
    let options = WriteOptions { tokens_per_id: None };
    let mut writer = begin(Output::to(&mut bytes), &options).expect("memory");
    for row in rows {
        writer.write(row).expect("what was read can be written");
    }
    writer.finish().expect("memory");
    Some(bytes)
}

/// Ids of this format are made of tokens, which ids cannot be turned back into: it is written without.
const WITHOUT_IDS: &str = "llmservingsim";

/// Broken by: a writer that loses or changes what its reader tells.
#[test]
fn what_is_written_is_what_was_read() {
    let mut formats = 0;
    for entry in ALL {
        let mut read = rows(entry, &[Input::File(sample(entry).0)]).unwrap();
        if entry.name == WITHOUT_IDS {
            read.iter_mut().for_each(|row| row.ids.clear());
        }
        let Some(bytes) = written(entry, &read) else { continue };
        let again = rows(entry, &[memory(&bytes)]).unwrap();
        assert_eq!(read, again, "{}", entry.name);
        assert!(written(entry, &again).unwrap() == bytes, "{}: other bytes the second time", entry.name);
        formats += 1;
    }
    assert!(formats >= 4);
}

/// Broken by: a reader that opens files past the layer that unpacks them.
#[test]
fn packed_files_are_the_same() {
    for entry in ALL {
        let bytes = fs::read(sample(entry).0).unwrap();
        let plain = rows(entry, &[memory(&bytes)]).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&bytes).unwrap();
        let packed = [gzip.finish().unwrap(), zstd::encode_all(&bytes[..], 1).unwrap()];
        for packed in packed {
            assert_eq!(rows(entry, &[memory(&packed)]).unwrap(), plain, "{}", entry.name);
        }
    }
}

/// Broken by: a second file that is not read, or is read as part of the first.
#[test]
fn two_files_have_the_rows_of_both() {
    let lengths = |rows: &[Row]| {
        let mut all: Vec<_> = rows.iter().map(|r| (r.start, r.input_tokens, r.output_tokens)).collect();
        all.sort();
        all
    };
    for entry in ALL {
        let (one, more) = sample(entry);
        let [one, more] = [one, more].map(Input::File);
        let mut each = rows(entry, std::slice::from_ref(&one)).unwrap();
        each.extend(rows(entry, std::slice::from_ref(&more)).unwrap());
        assert_eq!(lengths(&rows(entry, &[one, more]).unwrap()), lengths(&each), "{}", entry.name);
    }
}

/// Reads to the end, over all mistakes; tells how many there were.
fn endure(entry: &Entry, bytes: &[u8]) -> u64 {
    let mut errors = 0;
    let mut met = |error: wavetank_model::Error| {
        let said = error.to_string();
        let line = said.strip_prefix("<memory>:").unwrap_or_else(|| panic!("{}: {said}", entry.name));
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        assert!(digits > 0 && line[digits..].starts_with(": "), "{}: {said}", entry.name);
        assert!(said.contains("\nhint: "), "{}: {said}", entry.name);
        errors += 1;
    };
    let mut reader = match (entry.read)(&[memory(bytes)], &ReadOptions::default()) {
        Ok(reader) => reader,
        Err(error) => {
            met(error);
            return errors;
        }
    };
    let mut row = Row::default();
    for _ in 0..bytes.len() + 2 {
        match reader.read(&mut row) {
            Ok(true) => {}
            Ok(false) => return errors,
            Err(error) => met(error),
        }
    }
    panic!("{} goes on and on:\n{}", entry.name, String::from_utf8_lossy(bytes));
}

/// Broken by: an error without its line or without a hint, a reader that never ends after one, a panic.
#[test]
fn damage_is_told_with_its_line() {
    for entry in ALL {
        let bytes = fs::read(sample(entry).0).unwrap();
        assert_eq!(endure(entry, &bytes), 0, "{}", entry.name);
        let mut told = 0;
        for at in 0..bytes.len() {
            for byte in [b'x', b'"', b'-', b'\n', b'9', 0xff] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                told += endure(entry, &changed);
            }
        }
        for at in (0..bytes.len()).step_by(7) {
            told += endure(entry, &bytes[..at]);
        }
        assert!(told > bytes.len() as u64 / 4, "{}: only {told} mistakes found", entry.name);
    }
}

#[test]
fn storage_calls_are_no_requests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.csv").display().to_string();
    fs::write(&path, "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n1,Write,5,Tier-0,a,Prefill\n")
        .unwrap();
    let error = Source::of(&[&path], None).err().unwrap().to_string();
    assert!(
        error.contains("calls.csv: is a trace of storage calls") && error.contains("wavetank trace replay")
    );
}

#[test]
fn names_are_in_order_and_found_with_dashes() {
    assert!(ALL.is_sorted_by_key(|entry| entry.name));
    for entry in ALL {
        assert_eq!(requests::find(&entry.name.replace('_', "-")).unwrap().name, entry.name);
    }
}
