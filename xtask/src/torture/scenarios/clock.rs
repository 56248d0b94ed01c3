//! `clock`: time stands still for a process (SIGSTOP), or jumps under it (libfaketime, where it is
//! installed). Live workers, deadlines of keys and benchmarks go on; what is counted stays right.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::Entry;
use crate::torture::child::Running;
use crate::torture::keys::{self, Load, Promise};
use crate::torture::redis::Redis;
use crate::torture::round::{LIMIT, Round, ensure, words};
use crate::torture::server::Server;

pub(super) const ENTRY: Entry =
    Entry { name: "clock", about: "processes that are stopped for a while, and clocks that jump", run };

/// Where Debian has the library that makes the clock jump.
const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];
/// Hours, days, years; forward and back.
const JUMPS: [&str; 6] = ["+3600s", "-3600s", "+86400s", "-86400s", "+400000000s", "-100000000s"];

fn run(round: &mut Round) -> Result<(), String> {
    live(round)?;
    server(round)?;
    bench(round)?;
    let library = LIBRARIES.iter().find(|path| Path::new(path).exists());
    match library {
        Some(library) => jumps(round, library),
        None => {
            round.notes.push("clock: no jumps without libfaketime (Debian's package faketime)".into());
            Ok(())
        }
    }
}

/// Stops a process for a while, and lets it go on.
fn pause(running: &mut Running, length: Duration) -> Result<(), String> {
    running.signal(Signal::SIGSTOP)?;
    thread::sleep(length);
    running.signal(Signal::SIGCONT)
}

/// Live workers that are stopped finish everything, and the report says that the host did not keep up.
fn live(round: &mut Round) -> Result<(), String> {
    round.remove(&["live.json"]);
    let (requests, workers) = (round.draw.within(20, 60), round.draw.within(1, 3));
    let line = format!(
        "replay --input-tokens 500 --output-tokens 20 --request-count {requests} --arrival-interval-ms 10 \
         --num-workers {workers} --replay-mode online --report-json live.json"
    );
    let command = round.command(&words(&line));
    let mut running = round.start(command)?;
    thread::sleep(Duration::from_millis(round.draw.within(100, 300)));
    let length = Duration::from_millis(round.draw.within(300, 1200));
    pause(&mut running, length)?;
    let ended = running.finish(LIMIT)?.with(&[0])?;
    let report = round.json("live.json")?;
    round.cases += 1;
    let completed = report.pointer("/counts/completed").and_then(serde_json::Value::as_u64);
    ensure(completed == Some(requests), || ended.problem(&format!("{completed:?} of {requests} are done")))?;
    ensure(ended.stderr.contains("the host could not keep up"), || {
        ended.problem(&format!("nothing is said of a pause of {length:?}"))
    })
}

/// A server that is stopped under load keeps its clients and its promises, and deadlines go on.
fn server(round: &mut Round) -> Result<(), String> {
    round.remove(&["kv"]);
    let flags = words("--l1-size-gb 1 --l2 buffered:kv:1GiB --l2-timeout-ms 20000 --lease-seconds 1");
    let load = Load { clients: 2, keys: 20, promise: Promise::Kept, bytes: 5_000, deadlines: Some(4) };
    let mut keys = load.keys();
    let mut server = Server::start(round, &flags)?;
    let mut redis = server.redis()?;
    deadlines(&mut redis, "600")?;
    let lengths: Vec<u64> = (0..3).map(|_| round.draw.within(50, 500)).collect();
    let pauses = |server: &mut Server| {
        for length in &lengths {
            pause(&mut server.running, Duration::from_millis(*length))?;
            thread::sleep(Duration::from_millis(60));
        }
        pause(&mut server.running, Duration::from_millis(700))
    };
    let ((), done) = keys::work(&mut server, (load, &mut round.draw), &mut keys, pauses)?;
    check_deadlines(&mut redis)?;
    server.end()?;
    round.cases += done + 1;
    Ok(())
}

/// A key for a moment, one for so many milliseconds of it, and one for a quarter of an hour.
fn deadlines(redis: &mut Redis, soon_ms: &str) -> Result<(), String> {
    let sets: [&[&[u8]]; 2] =
        [&[b"SET", b"soon", b"1", b"PX", soon_ms.as_bytes()], &[b"SET", b"later", b"2", b"EX", b"900"]];
    for words in sets {
        redis.ask(words).map_err(|e| format!("a key with a deadline: {e}"))?;
    }
    Ok(())
}

/// The one is gone, and the other is there with what is left of its time.
fn check_deadlines(redis: &mut Redis) -> Result<(), String> {
    let mut ask = |words: &[&[u8]]| redis.ask(words).map_err(|e| format!("a key with a deadline: {e}"));
    let soon = ask(&[b"GET", b"soon"])?;
    ensure(soon.is_none(), || format!("a key is there after its deadline: {soon:?}"))?;
    let (later, left) = (ask(&[b"GET", b"later"])?, ask(&[b"TTL", b"later"])?);
    let left = left.and_then(|text| String::from_utf8(text).ok()?.parse::<i64>().ok());
    let is_right = later.as_deref() == Some(b"2") && left.is_some_and(|left| (800..=900).contains(&left));
    ensure(is_right, || format!("a key before its deadline: {later:?}, {left:?} seconds left"))
}

/// A benchmark with an autoscaler that is stopped comes to its end.
fn bench(round: &mut Round) -> Result<(), String> {
    round.remove(&["cache", "b.json"]);
    let command = round.command(&words(BENCH));
    let mut running = round.start(command)?;
    thread::sleep(Duration::from_millis(round.draw.within(200, 600)));
    pause(&mut running, Duration::from_millis(round.draw.within(300, 1000)))?;
    running.finish(LIMIT)?.with(&[0])?;
    round.cases += 1;
    sane(round)
}

const BENCH: &str = "bench --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0.1 --backend buffered \
    --cache-dir cache --storage-capacity-gb 1 \
    --generation-mode fast --num-users 4 --duration 2 --warmup 0 --quiet \
    --enable-autoscaling --scale-interval 1 --output b.json";

/// A whole report whose window is about as long as was asked for.
fn sane(round: &Round) -> Result<(), String> {
    let report = round.json("b.json")?;
    let seconds = report.pointer("/summary/elapsed_time").and_then(serde_json::Value::as_f64);
    ensure(report["partial"] == false && seconds.is_some_and(|it| (1.5..30.0).contains(&it)), || {
        format!("partial {}, elapsed_time {seconds:?}", report["partial"])
    })
}

/// The time of day jumps under a server and a benchmark; what they promise is measured in other clocks.
fn jumps(round: &mut Round, library: &str) -> Result<(), String> {
    round.remove(&["kv", "cache", "b.json"]);
    round.write("offset", "+0s")?;
    let fake = |round: &Round, words: &[String]| {
        let mut command = round.command(words);
        command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", round.path("offset"));
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command
    };
    let flags =
        words("serve --port 0 --http-port 0 --l1-size-gb 1 --l2 buffered:kv:1GiB --l2-timeout-ms 20000");
    let command = fake(round, &flags);
    let mut server = Server::await_doors(round, command)?;
    let load = Load { clients: 2, keys: 20, promise: Promise::Kept, bytes: 5_000, deadlines: None };
    let mut keys = load.keys();
    let mut redis = server.redis()?;
    deadlines(&mut redis, "300")?;
    let (offset, jumps) = (round.path("offset"), [(); 3].map(|()| round.draw.pick(&JUMPS)));
    let jump = |_: &mut Server| {
        for jump in jumps {
            fs::write(&offset, jump).map_err(|e| e.to_string())?;
            thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    };
    let ((), done) = keys::work(&mut server, (load, &mut round.draw), &mut keys, jump)?;
    // A deadline is a time of day, as in Redis: it may have come, and what it is of is not another value.
    let later = redis.ask(&[b"GET", b"later"]).map_err(|e| format!("after jumps {jumps:?}: {e}"))?;
    ensure(later.is_none() || later.as_deref() == Some(b"2"), || {
        format!("after jumps {jumps:?}: {later:?}")
    })?;
    server.end()?;
    let command = fake(round, &words(BENCH));
    let running = round.start(command)?;
    for jump in jumps {
        thread::sleep(Duration::from_millis(400));
        round.write("offset", jump)?;
    }
    running.finish(LIMIT)?.with(&[0])?;
    round.cases += done + 2;
    sane(round).map_err(|problem| format!("after jumps {jumps:?}: {problem}"))
}
