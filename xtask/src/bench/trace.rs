//! Inputs of benches, written once under `target/bench`: the trace unpacked, repeated, and cut to one line.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::FOLDER;
use crate::process;

const PACKED: &str = "../shared/data/traces/mooncake_conversation.jsonl.gz";

/// Time between the last arrival of one copy and the first of the next.
const PAUSE_MS: u64 = 1000;

/// One request of a trace in Mooncake's format.
struct Row {
    timestamp: u64,
    input_length: u64,
    output_length: u64,
    hash_ids: Vec<u64>,
}

/// The Mooncake conversation trace, unpacked.
pub(super) fn conversation() -> Result<String, String> {
    once("conversation.jsonl", |path| {
        if !Path::new(PACKED).exists() {
            return Err(format!("no {PACKED} beside the checkout"));
        }
        let file = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
        process::run(Command::new("gzip").args(["-dc", PACKED]).stdout(file))
    })
}

/// The trace `copies` times in a row, with no prefix shared between copies.
pub(super) fn repeated(trace: &str, copies: u64) -> Result<String, String> {
    once(&format!("conversation-x{copies}.jsonl"), |path| {
        let text = fs::read_to_string(trace).map_err(|e| format!("{trace}: {e}"))?;
        let text = repeat(&text, copies).map_err(|problem| format!("{trace}:{problem}"))?;
        fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
    })
}

/// The first request of the trace, alone.
pub(super) fn first_line(trace: &str) -> Result<String, String> {
    once("one-request.jsonl", |path| write_first(trace, 1, path))
}

/// The first requests of the trace.
pub(super) fn first_lines(trace: &str, count: usize) -> Result<String, String> {
    once(&format!("conversation-first-{count}.jsonl"), |path| write_first(trace, count, path))
}

fn write_first(trace: &str, count: usize, path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(trace).map_err(|e| format!("{trace}: {e}"))?;
    let first: String = text.split_inclusive('\n').take(count).collect();
    fs::write(path, first).map_err(|e| format!("{}: {e}", path.display()))
}

/// Has a file written unless it is there; a name is only given to a finished file.
pub(super) fn once(name: &str, write: impl FnOnce(&Path) -> Result<(), String>) -> Result<String, String> {
    let path = format!("{FOLDER}/{name}");
    if Path::new(&path).exists() {
        return Ok(path);
    }
    eprintln!("writing {path}");
    fs::create_dir_all(FOLDER).map_err(|e| format!("{FOLDER}: {e}"))?;
    let unfinished = format!("{path}.part");
    write(Path::new(&unfinished))?;
    fs::rename(&unfinished, &path).map_err(|e| format!("{path}: {e}"))?;
    Ok(path)
}

/// Shifts the times of each copy past the copy before, and its hash ids past all that were used.
fn repeat(text: &str, copies: u64) -> Result<String, String> {
    let rows =
        text.lines().zip(1..).map(|(line, at)| row(line).ok_or_else(|| format!("{at}: not a request")));
    let rows = rows.collect::<Result<Vec<Row>, String>>()?;
    let first = rows.iter().map(|row| row.timestamp).min().unwrap_or(0);
    let last = rows.iter().map(|row| row.timestamp).max().unwrap_or(0);
    let ids = rows.iter().flat_map(|row| &row.hash_ids).max().map_or(0, |max| max + 1);
    let mut out = String::with_capacity(text.len() * 12);
    for copy in 0..copies {
        for row in &rows {
            push_row(&mut out, row, copy * (last - first + PAUSE_MS), copy * ids);
        }
    }
    Ok(out)
}

fn row(line: &str) -> Option<Row> {
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |key: &str| value[key].as_u64();
    let ids = value["hash_ids"].as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<_>>>()?;
    Some(Row {
        timestamp: number("timestamp")?,
        input_length: number("input_length")?,
        output_length: number("output_length")?,
        hash_ids: ids,
    })
}

/// Spaced and ordered like the original, so that a byte costs the same to read.
fn push_row(out: &mut String, row: &Row, time: u64, id: u64) {
    let Row { timestamp, input_length, output_length, hash_ids } = row;
    let ids = hash_ids.iter().map(|hash| (hash + id).to_string()).collect::<Vec<_>>().join(", ");
    let _ = write!(out, r#"{{"timestamp": {}, "input_length": {input_length}, "#, timestamp + time);
    let _ = writeln!(out, r#""output_length": {output_length}, "hash_ids": [{ids}]}}"#);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"timestamp": 5, "input_length": 600, "output_length": 7, "hash_ids": [0, 3]}
{"timestamp": 25, "input_length": 10, "output_length": 1, "hash_ids": [1]}
"#;

    #[test]
    fn one_copy_is_the_trace_itself() {
        assert_eq!(repeat(TEXT, 1).as_deref(), Ok(TEXT));
    }

    #[test]
    fn copies_are_later_and_share_no_hash_id() {
        let second = r#"{"timestamp": 1025, "input_length": 600, "output_length": 7, "hash_ids": [4, 7]}
{"timestamp": 1045, "input_length": 10, "output_length": 1, "hash_ids": [5]}
"#;
        assert_eq!(repeat(TEXT, 2), Ok(format!("{TEXT}{second}")));
    }

    #[test]
    fn a_line_that_is_no_request_is_named() {
        assert_eq!(repeat(&format!("{TEXT}{{}}\n"), 2), Err("3: not a request".to_owned()));
    }
}
