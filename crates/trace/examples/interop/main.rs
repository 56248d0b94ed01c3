//! Writes recordings for the reference to read, and beside each what stands in it as we mean it, a line of
//! JSON per record. Run by `cargo xtask interop`.
//!
//! `interop FOLDER [SAMPLE]...`: samples are read and written again. Prints what was written, as JSON.

mod calls;
mod spelled;

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wavetank_model::{KeyTable, Nanos, Recorded, StorageCall};
use wavetank_trace::calls::lct::{FRAME_LIMIT, Header, LctOptions, Reader, Recording, Writer, Written};
use wavetank_trace::{Input, Output};

type Done<T> = Result<T, Box<dyn Error>>;

/// When the recordings began.
const BEGAN_S: f64 = 1_794_704_663.25;
const CONFIG: &str = r#"{"l1_manager_config": {"memory_config": {"size_in_bytes": 53687091}}}"#;

#[allow(clippy::print_stdout, reason = "a tool talks to its caller")]
fn main() -> Done<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (folder, samples) = arguments.split_first().ok_or("usage: interop FOLDER [SAMPLE]...")?;
    let mut told = vec![
        recorded(folder, "calls", LctOptions::default())?,
        recorded(folder, "parts", LctOptions { rotate_bytes: Some(6_000), cap_bytes: None })?,
        recorded(folder, "capped", LctOptions { rotate_bytes: None, cap_bytes: Some(9_000) })?,
        grids(folder)?,
    ];
    for sample in samples {
        told.push(again(folder, sample)?);
    }
    println!("{:#}", Value::Array(told));
    Ok(())
}

fn header() -> Header {
    let mut header = Header::storage(BEGAN_S, CONFIG.to_owned());
    header.level_meta.insert("recorder".to_owned(), "wavetank".into());
    header.level_meta.insert("process".to_owned(), 7.into());
    header
}

/// Calls of every kind, with what is ours beside them, as a recording in files.
fn recorded(folder: &Path, name: &str, options: LctOptions) -> Done<Value> {
    let (calls, table) = calls::every_kind();
    let mut recording = Recording::create(&folder.join(format!("{name}.lct")), header(), options)?;
    for call in &calls {
        recording.write(call, &table)?;
    }
    let Written { files, calls: kept, lost, .. } = recording.finish()?;
    let mut kept = calls[..kept as usize].to_vec();
    if lost > 0 {
        // What came last has the time of the last call.
        let at = calls.last().map_or(Nanos::ZERO, |call| call.at);
        kept.push(Recorded::plain(at, StorageCall::Gap { lost }));
    }
    let marks = files.len() - 1 + usize::from(lost > 0);
    Files { folder, name, paths: files, marks }.hold(&kept, &table)
}

/// Prefetches of every form, by the plain writer.
fn grids(folder: &Path) -> Done<Value> {
    let (calls, table) = calls::grids();
    let path = folder.join("grids.lct");
    let mut writer = Writer::begin(Output::create(&path)?, &header())?;
    calls.iter().try_for_each(|call| writer.record(call, &table))?;
    writer.finish()?;
    Files { folder, name: "grids", paths: vec![path], marks: 0 }.hold(&calls, &table)
}

/// A recording of the reference, read and written again.
fn again(folder: &Path, sample: &Path) -> Done<Value> {
    let mut reader = Reader::open(&Input::File(sample.to_owned()), FRAME_LIMIT)?;
    let name =
        sample.file_name().unwrap_or_default().to_string_lossy().replace(".lct", "").replace(".gz", "");
    let name = &format!("again-{name}");
    let path = folder.join(format!("{name}.lct"));
    let mut writer = Writer::begin(Output::create(&path)?, reader.header())?;
    let mut calls = Vec::new();
    while let Some(call) = reader.advance()? {
        writer.record(&call, reader.keys())?;
        calls.push(call);
    }
    writer.finish()?;
    Files { folder, name, paths: vec![path], marks: 0 }.hold(&calls, reader.keys())
}

/// Files that were written, as one recording.
struct Files<'w> {
    folder: &'w Path,
    name: &'w str,
    paths: Vec<PathBuf>,
    /// Records that say where a recording goes on, or stops.
    marks: usize,
}

impl Files<'_> {
    /// Writes what stands in them, and says so.
    fn hold(&self, calls: &[Recorded], keys: &KeyTable) -> Done<Value> {
        let Self { folder, name, paths, marks } = self;
        let expected = folder.join(format!("{name}.jsonl"));
        let mut lines = BufWriter::new(File::create(&expected)?);
        for call in calls {
            writeln!(lines, "{}", spelled::record(call, keys, BEGAN_S))?;
        }
        lines.flush()?;
        Ok(json!({"name": name, "files": paths, "expected": expected, "marks": marks}))
    }
}
