//! `recorder`: storage calls are recorded into a file that takes them too slowly, may not grow, or has a
//! largest size. Nothing waits for it; what is not in it is counted, and the recording says the same as who
//! made it.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Entry;
use crate::process;
use crate::torture::redis::command;
use crate::torture::round::{Round, ensure, words};
use crate::torture::server::Server;

pub(super) const ENTRY: Entry =
    Entry { name: "recorder", about: "recordings that cannot keep up, may not grow or are full", run };

/// Commands that are sent at once.
const BATCH: u64 = 500;
/// A write of one object is recorded as so many calls, a read of what is in memory as so many.
const CALLS: [u64; 2] = [2, 4];

/// A recording as both sides have it: calls in it, calls that are not.
#[derive(Debug, PartialEq, Eq)]
struct Sides {
    calls: u64,
    lost: u64,
}

fn run(round: &mut Round) -> Result<(), String> {
    slow(round)?;
    stuck(round)?;
    capped(round)
}

/// The speed at which a pipe is read.
const SLOWLY: u8 = 0;
const FAST: u8 = 1;
const TO_ITS_END: u8 = 2;

/// A pipe that is read slowly, then fast: what a slow drive is, without one.
fn slow(round: &mut Round) -> Result<(), String> {
    round.remove(&["pipe.lct", "got.lct"]);
    process::run(Command::new("mkfifo").arg(round.path("pipe.lct")))?;
    let mut options = File::options();
    let pipe = options.read(true).write(true).custom_flags(nix::libc::O_NONBLOCK);
    let pipe = pipe.open(round.path("pipe.lct")).map_err(|e| format!("pipe.lct: {e}"))?;
    let speed = AtomicU8::new(SLOWLY);
    let got = round.path("got.lct");
    let gets = BATCH * round.draw.within(60, 240);
    let said = thread::scope(|scope| {
        let reader = scope.spawn(|| drain(pipe, &got, &speed));
        let served = overrun(round, gets, &speed);
        speed.store(TO_ITS_END, Ordering::Relaxed);
        reader.join().map_err(|_| "the reader broke".to_owned())?.map_err(|e| format!("the pipe: {e}"))?;
        served
    })?;
    let found = info(round, "got.lct")?;
    round.cases += 1;
    ensure(said == found, || format!("the server says {said:?}, its recording {found:?}"))?;
    let made = CALLS[0] + CALLS[1] * gets;
    ensure(said.calls + said.lost == made, || format!("{made} calls were made: {said:?}"))
}

/// A server that records into the pipe answers more reads than fit.
fn overrun(round: &mut Round, gets: u64, speed: &AtomicU8) -> Result<Sides, String> {
    let server = Server::start(round, &words("--l1-size-gb 0.1 --trace-output pipe.lct"))?;
    read_often(&server, gets)?;
    speed.store(FAST, Ordering::Relaxed);
    recorded(&server.end()?.stdout)
}

/// One write and then reads of it, all answered at once whatever the recording does.
fn read_often(server: &Server, gets: u64) -> Result<(), String> {
    let mut redis = server.redis()?;
    let failed = |e: std::io::Error| format!("a client: {e}");
    redis.ask(&[b"SET", b"key", b"value"]).map_err(failed)?;
    let batch = command(&[b"GET", b"key"]).repeat(BATCH as usize);
    for _ in 0..gets / BATCH {
        redis.send(&batch).map_err(failed)?;
        for _ in 0..BATCH {
            let found = redis.reply().map_err(failed)?;
            ensure(found.as_deref() == Some(b"value"), || format!("a read gives {found:?}"))?;
        }
    }
    Ok(())
}

/// Everything that comes through the pipe, into a file.
fn drain(mut pipe: File, path: &Path, speed: &AtomicU8) -> std::io::Result<()> {
    let mut got = File::create(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        // Who writes has ended before this is said, so that an empty pipe stays empty.
        let speed = speed.load(Ordering::Relaxed);
        let most = if speed == SLOWLY { 1024 } else { buffer.len() };
        match pipe.read(&mut buffer[..most]) {
            Ok(count) => got.write_all(&buffer[..count])?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if speed == TO_ITS_END {
                    return Ok(());
                }
                thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
        }
        if speed == SLOWLY {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A file that may not grow beyond a size ends the recording and not the server.
fn stuck(round: &mut Round) -> Result<(), String> {
    round.remove(&["stuck.lct"]);
    let gets = BATCH * round.draw.within(10, 100);
    let blocks = round.draw.within(8, 4000);
    let prefix = format!("trap '' XFSZ; ulimit -f {blocks}");
    let flags = "serve --port 0 --http-port 0 --l1-size-gb 0.1 --trace-output stuck.lct";
    let command = round.limited(&prefix, &words(flags));
    let server = Server::await_doors(round, command)?;
    read_often(&server, gets)?;
    let ended = server.end()?;
    let said = recorded(&ended.stdout)?;
    let found = info(round, "stuck.lct")?;
    round.cases += 1;
    let made = CALLS[0] + CALLS[1] * gets;
    ensure(said.calls + said.lost == made, || format!("{made} calls were made: {said:?}"))?;
    // Of a write that failed halfway more can be in the file than is known to be.
    let is_there = (said.calls..=made).contains(&found.calls);
    ensure(is_there, || format!("the server says {said:?}, its recording {found:?}"))?;
    let is_said = said.lost == 0 || ended.stderr.contains("recording");
    ensure(is_said, || ended.problem(&format!("nobody is told that calls are lost: {said:?}")))
}

/// A benchmark's recording in parts and with a largest size.
fn capped(round: &mut Round) -> Result<(), String> {
    round.remove(&["capped.lct", "capped.json"]);
    let (rotate, cap) = (round.draw.within(10, 40), round.draw.within(20, 100));
    let line = format!(
        "bench --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0.2 --backend null --storage-capacity-gb 0.5 \
         --generation-mode none --num-users 8 --duration 30 --max-requests 60 --warmup 0 --quiet \
         --output capped.json --trace-output capped.lct --trace-rotate-mb {} --trace-cap-mb {}",
        rotate as f64 / 1000.0,
        cap as f64 / 1000.0,
    );
    round.done(&words(&line))?;
    let report = round.json("capped.json")?;
    let number = |key: &str| report["recording"][key].as_u64().unwrap_or(u64::MAX);
    let said = Sides { calls: number("calls"), lost: number("lost") };
    // The first file leads to the others.
    let found = info(round, "capped.lct")?;
    let files = report["recording"]["files"].as_array().cloned().unwrap_or_default();
    files.iter().filter_map(Value::as_str).for_each(|file| round.remove(&[file]));
    round.cases += 1;
    ensure(said == found, || format!("the report says {said:?}, its {} files {found:?}", files.len()))
}

/// What a server says of its recording when it ends.
fn recorded(stdout: &str) -> Result<Sides, String> {
    let line = stdout.lines().find(|line| line.starts_with("Recorded "));
    let numbers = line.and_then(|line| {
        let (calls, lost) = line.rsplit_once(": ")?.1.split_once(" calls, ")?;
        Some(Sides { calls: calls.parse().ok()?, lost: lost.split(' ').next()?.parse().ok()? })
    });
    numbers.ok_or_else(|| format!("the server says nothing of its recording: {stdout}"))
}

/// What `trace info` says of it. Marks are records too, and no calls.
fn info(round: &mut Round, file: &str) -> Result<Sides, String> {
    let ended = round.done(&["trace", "info", file, "--json"])?;
    let info: Value = serde_json::from_str(&ended.stdout).map_err(|e| format!("{file}: {e}"))?;
    let count = |pointer: &str| info.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let marks = ["gap", "capped", "continued"].map(|mark| count(&format!("/operations/wavetank.{mark}")));
    ensure(info["left_out"]["damaged"] == serde_json::json!([]), || format!("{file} is damaged: {info}"))?;
    let calls = count("/total_records") - marks.iter().sum::<u64>();
    Ok(Sides { calls, lost: count("/left_out/lost_calls") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_server_are_read() {
        let said = "Evicted: 0\nRecorded in f.lct: 98304 calls, 301698 lost\n";
        assert_eq!(recorded(said), Ok(Sides { calls: 98304, lost: 301_698 }));
        assert!(recorded("Evicted: 0\n").is_err());
    }
}
