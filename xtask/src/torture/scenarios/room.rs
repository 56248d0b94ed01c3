//! `room`: drives that are full and files that may not grow, under reports, sweeps, traces, benchmarks and
//! servers. A file is whole or not there, an exit code says which, and with room the same command succeeds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Entry;
use crate::torture::child::Ended;
use crate::torture::drive::Drive;
use crate::torture::keys::{self, Load, Promise};
use crate::torture::round::{LIMIT, Round, ensure, words};
use crate::torture::server::Server;

pub(super) const ENTRY: Entry =
    Entry { name: "room", about: "drives that are full, and files that may not grow", run };

/// Of each kind of output in a round.
const TRIES: u64 = 2;
/// A command and the files it writes, which are in `out`.
const WRITERS: [(&str, &[&str]); 5] = [
    (
        "replay trace.jsonl --num-workers 2 --report-json out/r.json --per-request-jsonl out/q.jsonl \
         --html out/p.html --timeseries out/t.csv.gz",
        &["r.json", "q.jsonl", "p.html", "t.csv.gz"],
    ),
    ("sweep spec.toml -o out/s.csv -o out/s.json -o out/s.parquet", &["s.csv", "s.json", "s.parquet"]),
    ("trace convert trace.jsonl out/c.jsonl.zst --to agentic_mooncake", &["c.jsonl.zst"]),
    ("trace mrc trace.jsonl --csv out/m.csv", &["m.csv"]),
    (
        "bench --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0.1 --backend null --storage-capacity-gb 0.5 \
         --generation-mode deterministic --num-users 4 --duration 5 --max-requests 20 --quiet \
         --output out/b.json --xlsx-output out/b.csv",
        &["b.json", "b.csv"],
    ),
];
const SPEC: &str =
    "[base]\ntrace = \"trace.jsonl\"\n[axes]\nnum_workers = [1, 2, 3]\nseed = { from = 1, count = 3 }\n";

fn run(round: &mut Round) -> Result<(), String> {
    fs::copy("examples/conversation.jsonl", round.path("trace.jsonl")).map_err(|e| e.to_string())?;
    round.write("spec.toml", SPEC)?;
    for (line, files) in WRITERS {
        let sizes = reference(round, line, files)?;
        for _ in 0..TRIES {
            squeezed(round, (line, files), &sizes)?;
        }
    }
    cache(round)?;
    behind(round)
}

/// What the files are with all the room there is.
fn reference(round: &mut Round, line: &str, files: &[&str]) -> Result<BTreeMap<String, u64>, String> {
    round.remove(&["out"]);
    fs::create_dir(round.path("out")).map_err(|e| e.to_string())?;
    round.done(&words(line))?;
    let size = |file: &&str| {
        let path = round.path("out").join(file);
        let file_size = fs::metadata(&path).map_err(|e| format!("{}: {e}", path.display()))?.len();
        Ok(((*file).to_owned(), file_size))
    };
    files.iter().map(size).collect()
}

/// The same with too little room, on a small drive or with a limit on every file, and then with enough.
fn squeezed(
    round: &mut Round,
    (line, files): (&str, &[&str]),
    sizes: &BTreeMap<String, u64>,
) -> Result<(), String> {
    let whole: u64 = sizes.values().sum();
    let room = round.draw.below(whole + whole / 4 + 4096);
    let wants_drive = round.draw.chance(2, 3);
    round.remove(&["out"]);
    let drive = if wants_drive { drive(round, room)? } else { None };
    let (folder, prefix) = match &drive {
        Some(drive) => (drive.path(""), ":".to_owned()),
        // In blocks of 512 bytes; what it says goes to files, too.
        None => (round.path("out"), format!("trap '' XFSZ; ulimit -f {}; exec >/dev/null", 16 + room / 512)),
    };
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let there = line.replace("out/", &format!("{}/", folder.display()));
    let command = round.limited(&prefix, &words(&there));
    let ended = round.start(command)?.finish(LIMIT)?.with(&[0, 2])?;
    check(&ended, &folder, files)?;
    round.cases += 1;
    drive.as_ref().map_or(Ok(()), Drive::make_room)?;
    round.done(&words(&there)).map_err(|problem| format!("there is room again, and yet: {problem}"))?;
    // Nothing but what was asked for is there, and what a sweep keeps to go on from.
    let names = fs::read_dir(&folder).into_iter().flatten().flatten();
    let strange = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .find(|name| !files.contains(&name.as_str()) && !name.ends_with(".points.jsonl"));
    ensure(strange.is_none(), || format!("{strange:?} is left by: {line}"))
}

/// A small drive, or none where that is not permitted.
fn drive(round: &mut Round, room: u64) -> Result<Option<Drive>, String> {
    let drive = Drive::mount(&round.path("drive"), room)?;
    if drive.is_none() {
        round
            .notes
            .push("room: this machine lets no process mount a drive; files are limited instead".into());
    }
    Ok(drive)
}

/// A command that says it is done wrote everything; one that does not says what it could not write, and
/// left no part of a file.
fn check(ended: &Ended, folder: &Path, files: &[&str]) -> Result<(), String> {
    if ended.code() == Some(2) {
        ensure(ended.stderr.contains("error: "), || ended.problem("it fails and does not say why"))?;
    }
    for file in files {
        let path = folder.join(file);
        if !path.exists() {
            ensure(ended.code() == Some(2), || {
                ended.problem(&format!("it is done and {file} is not there"))
            })?;
            continue;
        }
        is_whole(&path).map_err(|what| ended.problem(&format!("{file} is there and not whole: {what}")))?;
    }
    Ok(())
}

/// Whether a file can be read to its end, as far as its name says what it is.
fn is_whole(path: &Path) -> Result<(), String> {
    let bytes = fs::read(path).map_err(|e| e.to_string())?;
    let name = path.to_string_lossy();
    let ends_with =
        |end: &[u8]| ensure(bytes.ends_with(end), || format!("{} bytes, another end", bytes.len()));
    if name.ends_with(".json") {
        serde_json::from_slice::<Value>(&bytes).map_err(|e| e.to_string())?;
    } else if name.ends_with(".jsonl") {
        ends_with(b"}\n")?;
    } else if name.ends_with(".html") {
        ends_with(b"</html>\n")?;
    } else if name.ends_with(".csv") {
        ends_with(b"\n")?;
    } else if name.ends_with(".parquet") {
        ends_with(b"PAR1")?;
    } else if name.ends_with(".gz") {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text)
            .map_err(|e| e.to_string())?;
    }
    ensure(!bytes.is_empty(), || "it is empty".to_owned())
}

/// A benchmark whose cache directory is on a full drive: what it measured is reported as partial, and
/// nothing of it stays on the drive.
fn cache(round: &mut Round) -> Result<(), String> {
    for _ in 0..TRIES {
        let room = (4 << 20) + round.draw.below(60 << 20);
        let Some(drive) = drive(round, room)? else { return Ok(()) };
        round.remove(&["b.json"]);
        let line = format!(
            "bench --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0 --backend buffered --cache-dir {} \
             --storage-capacity-gb 2 --num-users 4 --duration 1 --generation-mode none --warmup 0 --quiet \
             --output b.json",
            drive.path("").display()
        );
        let ended = round.run(&words(&line))?.with(&[0, 1, 2])?;
        round.cases += 1;
        let left = drive.names();
        ensure(left.is_empty(), || ended.problem(&format!("{left:?} are left on the drive")))?;
        if ended.code() != Some(2) {
            let is_partial = round.json("b.json")?["partial"].clone();
            let is_said = is_partial == (ended.code() == Some(1));
            ensure(is_said, || ended.problem(&format!("the report says partial: {is_partial}")))?;
        }
    }
    Ok(())
}

/// A server whose directory is on a full drive serves from memory, and from there too when there is room.
fn behind(round: &mut Round) -> Result<(), String> {
    let Some(drive) = drive(round, 1 << 20)? else { return Ok(()) };
    let place: PathBuf = drive.path("kv");
    let flags = words(&format!(
        "--l1-size-gb 1 --l2 buffered:{}:1GiB --l2-timeout-ms 20000 --drain-seconds 20",
        place.display()
    ));
    let load = Load { clients: 2, keys: 40, promise: Promise::Kept, bytes: 20_000, deadlines: Some(4) };
    let mut keys = load.keys();
    let mut server = Server::start(round, &flags)?;
    let wait = |_: &mut Server| {
        thread::sleep(Duration::from_millis(300));
        Ok(())
    };
    let ((), full) = keys::work(&mut server, (load, &mut round.draw), &mut keys, wait)?;
    drive.make_room()?;
    let ((), roomy) = keys::work(&mut server, (load, &mut round.draw), &mut keys, wait)?;
    server.end()?;
    // What had no room behind memory is gone with it, and nothing else is served in its place.
    let server = Server::start(round, &flags)?;
    let load = Load { promise: Promise::KeptOrGone, ..load };
    round.cases += full + roomy + keys::check_after_kill(&server, load, &mut keys)?;
    server.end()?;
    Ok(())
}
