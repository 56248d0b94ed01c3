//! LMCache reads what we write and works with our server. It is installed by a script beside the checkout
//! (6 GB from PyPI).

mod resp;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::Failure;
use crate::process::{self, cargo, target_dir};

const INSTALL: &str = "../shared/tools/peer-lmcache";
const SAMPLES: &str = "../shared/data/lct";
/// Samples of the newest arguments, which are read and written again.
const AGAIN: [&str; 3] = ["big.lct.gz", "hybrid.lct", "small.lct"];
/// Recordings whose calls the reference makes again.
const REPLAYED: [&str; 4] = ["calls", "parts", "capped", "grids"];
/// What stands in our files besides calls.
const OURS: &str = "wavetank.";
const MARKS: [&str; 2] = ["wavetank.continued", "wavetank.capped"];

/// Has the reference's own reader and codec decode files, and writes what they see beside them.
const DECODE: &str = r#"
import json, struct, sys
from lmcache.v1.mp_observability.trace.codecs import decode_args
from lmcache.v1.mp_observability.trace.reader import TraceReader

def plain(value):
    kind = type(value).__name__
    if kind == "ObjectKey":
        return [value.chunk_hash.hex(), value.model_name, value.kv_rank, value.object_group_id]
    if kind == "MemoryLayoutDesc":
        return {"shapes": [list(shape) for shape in value.shapes], "dtypes": [str(d) for d in value.dtypes]}
    if kind == "PrefetchLockMode":
        return value.name
    if kind in ("PrefetchTaskSpec", "GroupedObjectKeys"):
        return {name: plain(getattr(value, name)) for name in FIELDS[kind]}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value

FIELDS = {
    "PrefetchTaskSpec": ("key_groups", "num_kv_readers", "fetching_policy", "lock_mode"),
    "GroupedObjectKeys": ("keys", "object_group_id", "layout_desc", "sliding_window_size"),
}

for path in sys.argv[1:]:
    with TraceReader(path) as reader, open(path + ".seen", "w") as out:
        for record in reader.records():
            args = {name: plain(value) for name, value in decode_args(record.args).items()}
            bits = lambda seconds: struct.pack(">d", seconds).hex()
            seen = {"qualname": record.qualname, "t_mono": bits(record.t_mono), "args": args}
            out.write(json.dumps(dict(seen, t_wall=bits(record.t_wall))) + "\n")
"#;

/// Counts of records by name.
type Counts = BTreeMap<String, u64>;

/// One recording of ours, in one file or more.
struct Written {
    name: String,
    files: Vec<String>,
    expected: String,
    marks: u64,
}

/// Installs it, in the directory that is named, and checks.
pub(super) fn check(args: &[String]) -> Result<(), Failure> {
    if let [_, second, ..] = args {
        return Err(Failure::Usage(format!("unexpected argument `{second}`")));
    }
    if !Path::new(INSTALL).exists() {
        return Err(Failure::Failed(format!("no {INSTALL} beside the checkout")));
    }
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let python = PathBuf::from(process::text_of(INSTALL, &words)?);
    process::run(&mut cargo(&["build"]))?;
    let written = write()?;
    let checks = [
        decoded(&python, &written),
        counted(&python, &written),
        replayed(&python, &written),
        resp::served(&python),
    ];
    let failed = checks.concat();
    failed.iter().for_each(|problem| println!("FAILED {problem}"));
    if failed.is_empty() { Ok(()) } else { Err(Failure::Told) }
}

/// Has every kind of recording written.
fn write() -> Result<Vec<Written>, String> {
    let folder = target_dir().join("interop");
    let told = fs::remove_dir_all(&folder)
        .or_else(|e| if e.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(e) });
    told.and_then(|()| fs::create_dir_all(&folder)).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command =
        cargo(&["run", "--quiet", "--profile", "test", "-p", "wavetank-trace", "--example", "interop", "--"]);
    command.arg(&folder).args(AGAIN.map(|name| Path::new(SAMPLES).join(name)));
    let output = command.output().map_err(|e| format!("interop: {e}"))?;
    let problem = String::from_utf8_lossy(&output.stderr);
    let told: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("interop: {e}: {problem}"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |row: &Value| Written {
        name: text(&row["name"]),
        files: row["files"].as_array().into_iter().flatten().map(text).collect(),
        expected: text(&row["expected"]),
        marks: row["marks"].as_u64().unwrap_or(0),
    };
    Ok(told.as_array().into_iter().flatten().map(row).collect())
}

/// A reference's program beside its python.
fn lmcache(python: &Path, words: &[&str]) -> Result<Output, String> {
    let mut command = Command::new(python.with_file_name("lmcache"));
    command.args(words).env("LMCACHE_DISABLE_BANNER", "1").env("LMCACHE_LOG_LEVEL", "WARNING");
    command.output().map_err(|e| format!("lmcache {}: {e}", words.join(" ")))
}

/// Check a: the reference's decoder sees what we meant, record by record.
fn decoded(python: &Path, written: &[Written]) -> Vec<String> {
    let mut command = Command::new(python);
    command.args(["-c", DECODE]).args(written.iter().flat_map(|row| &row.files));
    if let Err(problem) = process::run(command.env("LMCACHE_LOG_LEVEL", "WARNING")) {
        return vec![format!("decode: {problem}")];
    }
    let check = |row: &Written| match compared(row) {
        Ok((records, cells)) => {
            let (name, files, marks) = (&row.name, row.files.len(), row.marks);
            println!(
                "decode {name}: {records} records, {cells} keys, {marks} marks in {files} files: the same"
            );
            None
        }
        Err(problem) => Some(format!("decode {}: {problem}", row.name)),
    };
    written.iter().filter_map(check).collect()
}

/// Records and keys that are the same in both.
fn compared(row: &Written) -> Result<(u64, u64), String> {
    let (mut marks, mut records, mut cells) = (0, 0, 0);
    let mut expected = lines(&row.expected)?;
    for file in &row.files {
        for seen in lines(&format!("{file}.seen"))? {
            let seen = seen?;
            if MARKS.iter().any(|mark| seen["qualname"] == *mark) {
                marks += 1;
                continue;
            }
            let meant = expected.next().transpose()?.unwrap_or(Value::Null);
            if seen != meant {
                return Err(format!("record {records} is {seen}, not {meant}"));
            }
            records += 1;
            cells += keys(&seen["args"]);
        }
    }
    match (expected.next(), marks == row.marks) {
        (None, true) => Ok((records, cells)),
        (Some(_), _) => Err(format!("only {records} records")),
        (None, false) => Err(format!("{marks} marks, not {}", row.marks)),
    }
}

/// Lists under the name `keys`, wherever they are.
fn keys(args: &Value) -> u64 {
    let rows = args["spec"]["key_groups"].as_array().into_iter().flatten();
    rows.chain([args]).map(|row| row["keys"].as_array().map_or(0, Vec::len) as u64).sum()
}

fn lines(path: &str) -> Result<impl Iterator<Item = Result<Value, String>> + use<>, String> {
    let file = fs::File::open(path).map_err(|e| format!("{path}: {e}"))?;
    let path = path.to_owned();
    Ok(BufReader::new(file).lines().map(move |line| {
        let line = line.map_err(|e| format!("{path}: {e}"))?;
        serde_json::from_str(&line).map_err(|e| format!("{path}: {e}"))
    }))
}

/// Check b: `trace info` of both counts the same, or both refuse.
fn counted(python: &Path, written: &[Written]) -> Vec<String> {
    let mut files: Vec<String> = written.iter().flat_map(|row| row.files.clone()).collect();
    let samples = fs::read_dir(SAMPLES).into_iter().flatten().flatten();
    let samples = samples.map(|entry| entry.path().display().to_string());
    files.extend(samples.filter(|path| path.ends_with(".lct")));
    files.sort();
    let check = |file: &String| {
        let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
        let told = theirs(python, file).and_then(|theirs| Ok((theirs, ours(file)?)));
        match told {
            Ok((theirs, ours)) if theirs == ours => {
                let said = ours.map_or("both refuse it".to_owned(), |counts| {
                    format!("{} records of {} kinds", counts.values().sum::<u64>(), counts.len())
                });
                println!("info {name}: {said}");
                None
            }
            Ok((theirs, ours)) => Some(format!("info {name}: the reference has {theirs:?}, we {ours:?}")),
            Err(problem) => Some(format!("info {name}: {problem}")),
        }
    };
    files.iter().filter_map(check).collect()
}

fn theirs(python: &Path, file: &str) -> Result<Option<Counts>, String> {
    let output = lmcache(python, &["trace", "info", file])?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| operations(&text)).transpose()
}

/// The lines after `ops:`.
fn operations(text: &str) -> Result<Counts, String> {
    let (_, list) = text.split_once("ops:").ok_or_else(|| format!("no counts in {text}"))?;
    // What follows them is not indented as far.
    let rows = list.lines().skip(1).map_while(|line| line.strip_prefix("    ")?.split_once(": "));
    let count = |(name, count): (&str, &str)| Some((name.to_owned(), count.trim().parse().ok()?));
    Ok(rows.filter_map(count).collect())
}

/// By standard input: a file would be read with the parts after it, which the reference does not know.
fn ours(file: &str) -> Result<Option<Counts>, String> {
    let mut command = Command::new(process::test_binary());
    let input = fs::File::open(file).map_err(|e| format!("{file}: {e}"))?;
    let output = command.args(["trace", "info", "-", "--format", "lct", "--json"]).stdin(input).output();
    let output = output.map_err(|e| format!("wavetank: {e}"))?;
    match output.status.code() {
        Some(0) => {}
        Some(2) => return Ok(None),
        code => return Err(format!("wavetank trace info ended with {code:?}")),
    }
    let info: Value = serde_json::from_slice(&output.stdout).map_err(|e| format!("wavetank: {e}"))?;
    serde_json::from_value(info["operations"].clone()).map(Some).map_err(|e| format!("wavetank: {e}"))
}

/// Check c: the reference makes our calls again, skips what is ours, and fails at none.
fn replayed(python: &Path, written: &[Written]) -> Vec<String> {
    let rows = written.iter().filter(|row| REPLAYED.contains(&row.name.as_str()));
    let check = |row: &Written| match row
        .files
        .iter()
        .map(|file| replay(python, file))
        .collect::<Result<Vec<_>, _>>()
    {
        Ok(told) => {
            println!("replay {}: {}", row.name, told.join("; "));
            None
        }
        Err(problem) => Some(format!("replay {}: {problem}", row.name)),
    };
    rows.filter_map(check).collect()
}

fn replay(python: &Path, file: &str) -> Result<String, String> {
    let counts = ours(file)?.ok_or("we refuse it")?;
    let total: u64 = counts.values().sum();
    let skipped: u64 = counts.iter().filter(|(name, _)| name.starts_with(OURS)).map(|(_, count)| count).sum();
    let size = ["--l1-size-gb", "0.05", "--eviction-policy", "LRU", "--no-csv"];
    let output = lmcache(python, &[&["trace", "replay", file], &size[..]].concat())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let told = ["replayed", "skipped", "failed"].map(|what| told_count(&text, what));
    let wanted = [total - skipped, skipped, 0].map(Some);
    let [replayed, skipped, failed] = wanted.map(Option::unwrap_or_default);
    if told == wanted && output.status.success() {
        return Ok(format!("{replayed} replayed, {skipped} skipped, {failed} failed"));
    }
    let problem = String::from_utf8_lossy(&output.stderr);
    let problem = problem.lines().last().unwrap_or_default();
    Err(format!("{told:?}, not {wanted:?}; {}: {problem}", output.status))
}

/// The number in a line like `Records failed:   0`.
fn told_count(text: &str, what: &str) -> Option<u64> {
    let label = format!("Records {what}:");
    text.lines().find_map(|line| line.trim().strip_prefix(&label)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_understood() {
        let info = "Trace file: a\n  total_records:   3\n  ops:\n    a.b: 1\n    wavetank.gap: 2\n\
                    \x20 events:\n    instances: 5\n";
        let counts = operations(info).unwrap();
        assert_eq!(counts, Counts::from([("a.b".to_owned(), 1), ("wavetank.gap".to_owned(), 2)]));
        assert_eq!(operations("  ops: (none)\n"), Ok(Counts::new()));
        assert!(operations("Traceback").is_err());
        assert_eq!(told_count("x\nRecords failed:      7\n", "failed"), Some(7));
        assert_eq!(told_count("x\n", "failed"), None);
    }

    /// Broken by: a record that is missing, added, changed, or a mark that is taken for a call.
    #[test]
    fn records_are_compared_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let row = |marks| Written {
            name: "x".to_owned(),
            files: vec![path("x")],
            expected: path("expected"),
            marks,
        };
        let [call, mark] = [r#"{"qualname":"a","args":{"keys":[1,2]}}"#, r#"{"qualname":"wavetank.capped"}"#];
        let seen = |lines: &[&str]| fs::write(path("x.seen"), lines.join("\n")).unwrap();
        fs::write(path("expected"), [call, call].join("\n")).unwrap();
        seen(&[call, mark, call]);
        assert_eq!(compared(&row(1)), Ok((2, 4)));
        assert!(compared(&row(0)).unwrap_err().contains("1 marks, not 0"));
        seen(&[call, mark]);
        assert!(compared(&row(1)).unwrap_err().contains("only 1 records"));
        seen(&[call, call, call]);
        assert!(compared(&row(0)).unwrap_err().contains("record 2 is "));
    }
}
