//! `wavetank bench` end to end: command lines in; report, log, files and exit code out.

mod bad_input;
mod block_layer;
mod calls;
mod hosts;
mod invariants;
mod invocations;
mod keys;
mod log_rules;
mod logs;
mod modes;
mod outputs;
mod package;
mod recordings;
mod scaling;
mod simulated;
mod suite;
mod trials;
mod trouble;

use std::fmt::Write as _;
use std::process::Stdio;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::report::Report;
use crate::sandbox::{Run, Running, Sandbox};

/// Users who ask for a tenth as much, ten times as often.
const SCALED: &str = "user_templates:
  chatbot: {context_range: [51, 410], generation_range: [5, 20], think_time_range: [0.01, 0.05]}
  coding: {context_range: [410, 2500], generation_range: [10, 50], think_time_range: [0.02, 0.1]}
  document: {context_range: [410, 1638], generation_range: [20, 80], think_time_range: [0.03, 0.15]}
";
/// Storage alone, for a second.
const SMALL: &str = "--model tiny-1b --config scaled.yaml --gpu-mem-gb 0 --duration 1 --cache-dir cache \
    --storage-capacity-gb 1";
/// Entries are booked and take no time.
const BOOKED: &str = "--model tiny-1b --config scaled.yaml --gpu-mem-gb 0 --backend null \
    --backend-option moves=no --generation-mode deterministic";
/// Bytes of a token of `tiny-1b`.
const TOKEN_BYTES: u64 = 24_576;
/// What is the user's in the cache directory.
const FOREIGN: (&str, &str) = ("cache/thesis.npy", "not ours");
/// Conversations of `talks.json`, and turns of each.
const TALKS: (u64, u64) = (12, 3);
/// Requests of `bursts.csv`.
const BURSTS: u64 = 20;
/// A run of a few seconds that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);
/// Benchmarks that run at a time.
const SEATS: usize = 2;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// The right to run a benchmark: too many at a time would only measure each other.
struct Seat;

impl Seat {
    fn take() -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken =
            FREED.wait_while(taken, |taken| *taken >= SEATS).unwrap_or_else(PoisonError::into_inner);
        *taken += 1;
        Self
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}

/// A directory on the drive with a cache directory in it that is not empty, and things to play.
struct Stand {
    sandbox: Sandbox,
}

impl Stand {
    fn new() -> Self {
        let sandbox = Sandbox::on_disk();
        sandbox.write("scaled.yaml", SCALED);
        sandbox.write("talks.json", talks());
        sandbox.write("bursts.csv", bursts());
        sandbox.write(FOREIGN.0, FOREIGN.1);
        Self { sandbox }
    }

    fn run(&self, arguments: &str) -> Run {
        let _seat = Seat::take();
        self.start(arguments).finish(LIMIT)
    }

    fn start(&self, arguments: &str) -> Running {
        self.sandbox.start(&format!("bench {arguments}"), Stdio::null())
    }

    /// Runs a benchmark that must succeed and returns its report.
    fn bench(&self, arguments: &str) -> Report {
        let run = self.run(&format!("{arguments} --output r.json"));
        assert_eq!(run.code, Some(0), "{arguments}: {}", run.stderr);
        self.is_clean(arguments);
        self.sandbox.report("r.json")
    }

    /// How many files there are of ours.
    fn entries(&self) -> usize {
        let shards = std::fs::read_dir(self.sandbox.path("cache/wavetank.store")).into_iter().flatten();
        let files = shards.filter_map(|shard| std::fs::read_dir(shard.ok()?.path()).ok());
        files.map(Iterator::count).sum()
    }

    /// Whether the user's files are all there is in the cache directory and there is no other.
    fn is_clean(&self, what: &str) {
        assert_eq!(self.sandbox.names_in("cache"), ["thesis.npy"], "{what}");
        assert_eq!(self.sandbox.read(FOREIGN.0), FOREIGN.1, "{what}");
        let left = self.sandbox.names_in("");
        assert!(!left.iter().any(|name| name.starts_with("wavetank_bench_")), "{what}: {left:?}");
    }
}

/// Conversations in the format of ShareGPT.
fn talks() -> String {
    let (count, turns) = TALKS;
    let said = |from: &str, words: u64| json!({ "from": from, "value": "tide ".repeat(words as usize) });
    let talk = |number: u64| {
        let turn = |turn: u64| [said("human", 20 + number + turn), said("gpt", 5 + turn)];
        let said: Vec<Value> = (0..turns).flat_map(turn).collect();
        json!({ "id": format!("talk{number}"), "conversations": said })
    };
    Value::from_iter((0..count).map(talk)).to_string()
}

/// Requests in the format of BurstGPT, 20 ms apart.
fn bursts() -> String {
    let mut text = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n".to_owned();
    for row in 0..BURSTS {
        let (at, asked, answered) = (row as f64 * 0.02, 100 + row, 10 + row);
        let total = asked + answered;
        writeln!(text, "{at:.2},ChatGPT,{asked},{answered},{total},Conversation log").expect("a text");
    }
    text
}

fn number(json: &Value, pointer: &str) -> f64 {
    let value = json.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing in {json:#}"));
    value.as_f64().unwrap_or_else(|| panic!("{pointer} is {value}"))
}

fn list<'j>(json: &'j Value, pointer: &str) -> &'j Vec<Value> {
    let value = json.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing in {json:#}"));
    value.as_array().unwrap_or_else(|| panic!("{pointer} is {value}"))
}
