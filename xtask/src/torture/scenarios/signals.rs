//! `signals`: storms of signals at any moment of a run. One request to end is obeyed: exit code 130 (0 of a
//! server), what is written says that it is partial, nothing stays in the cache directory. Several end the
//! process at once; one that nobody expects kills it. The same command works afterwards in any case.

mod victims;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::Entry;
use crate::torture::child::Ended;
use crate::torture::draw::Draw;
use crate::torture::round::{LIMIT, Round, ensure, words};
use victims::{INTERRUPTED, PROFILE, VICTIMS, Victim, WRITTEN};

pub(super) const ENTRY: Entry =
    Entry { name: "signals", about: "storms of signals at any moment of a run", run };

/// Storms of a round.
const STORMS: usize = 2 * VICTIMS.len();

/// Requests to end.
const REQUESTS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// What nobody needs to know about.
const NOISE: [Signal; 4] = [Signal::SIGPIPE, Signal::SIGWINCH, Signal::SIGCONT, Signal::SIGURG];
/// What ends a process that does not expect it.
const SUDDEN: [Signal; 3] = [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGKILL];

const SPEC: &str =
    "[base]\ninput_tokens = 500\noutput_tokens = 50\nrequest_count = 200\nnum_workers = 2\n[axes]\n";
/// What is the user's in the cache directory.
const FOREIGN: &str = "thesis.npy";

/// How a file is called that is not written to its end.
const PART: &str = ".part-";
/// How a folder is called in which a device is measured.
const PROBE: &str = "wavetank-profile-";

/// What comes to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storm {
    /// One request to end, among what does not matter.
    Asked,
    /// Several.
    Urged,
    /// What nobody expects.
    Sudden,
}

fn run(round: &mut Round) -> Result<(), String> {
    prepare(round)?;
    for number in 0..STORMS {
        let victim = &VICTIMS[number % VICTIMS.len()];
        let storm = round.draw.one(&[Storm::Asked, Storm::Asked, Storm::Urged, Storm::Sudden]);
        let ended = strike(round, victim, storm)?;
        let told = |problem: String| ended.problem(&format!("{}, {storm:?}: {problem}", victim.name));
        check(round, victim, storm, &ended).map_err(told)?;
        sweep_up(round);
        if let Some((_, line)) = victim.resumed.filter(|(record, _)| round.path(record).exists()) {
            round.done(&words(line))?;
            is_clean(round).map_err(|problem| format!("{problem} by {} that went on", victim.name))?;
        }
        round.remove(&WRITTEN);
        round.done(&words(victim.brief))?;
        is_clean(round).map_err(|problem| format!("{problem} by {} that ran to its end", victim.name))?;
        round.cases += 1;
    }
    Ok(())
}

/// Who is ended at once has no time to remove what was half written, or what was measured with.
fn sweep_up(round: &Round) {
    for (folder, mark) in [("", PART), ("cache", PROBE)] {
        let left = names(round, folder).into_iter().filter(|name| name.starts_with(mark));
        left.for_each(|name| round.remove(&[format!("{folder}/{name}").trim_start_matches('/')]));
    }
}

/// What victims need.
fn prepare(round: &mut Round) -> Result<(), String> {
    round.write("long.toml", format!("{SPEC}seed = {{ from = 1, count = 50000 }}\n"))?;
    round.write("short.toml", format!("{SPEC}seed = {{ from = 1, count = 2 }}\n"))?;
    fs::create_dir(round.path("cache")).map_err(|e| e.to_string())?;
    round.write(&format!("cache/{FOREIGN}"), "not ours")?;
    let line = "bench --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0.2 --backend null \
        --storage-capacity-gb 0.5 --generation-mode none --num-users 4 --duration 30 --max-requests 20 \
        --warmup 0 --quiet --output b.json --trace-output calls.lct";
    round.done(&words(line))?;
    round.done(&words(PROFILE))?;
    Ok(())
}

/// Starts a victim and lets a storm come over it.
fn strike(round: &mut Round, victim: &Victim, storm: Storm) -> Result<Ended, String> {
    round.remove(&WRITTEN);
    let command = round.hearing(&words(victim.line));
    let mut running = round.start(command)?;
    thread::sleep(Duration::from_millis(round.draw.magnitude(1500)));
    for signal in signals(&mut round.draw, storm) {
        running.signal(signal)?;
        thread::sleep(Duration::from_micros(round.draw.magnitude(20_000)));
    }
    running.finish(LIMIT)
}

fn signals(draw: &mut Draw, storm: Storm) -> Vec<Signal> {
    let mut signals: Vec<Signal> = (0..draw.below(6)).map(|_| draw.one(&NOISE)).collect();
    match storm {
        Storm::Asked => signals.insert(draw.place(signals.len() + 1), draw.one(&REQUESTS)),
        Storm::Urged => signals.extend((0..draw.within(2, 6)).map(|_| draw.one(&REQUESTS))),
        Storm::Sudden => signals.push(draw.one(&SUDDEN)),
    }
    signals
}

fn check(round: &Round, victim: &Victim, storm: Storm, ended: &Ended) -> Result<(), String> {
    ended.is_sound()?;
    let report = report(round, victim)?;
    match (ended.code(), storm) {
        // It came before there was anybody to hear it: nothing was begun.
        (None, Storm::Asked | Storm::Urged) => {
            let is_begun = report.is_some() || ended.stderr.lines().count() > 0;
            ensure(!is_begun, || format!("killed by signal {:?} amid its work", ended.status.signal()))
        }
        (None, Storm::Sudden) => ensure(report.is_none(), || "killed, and yet it has a report".to_owned()),
        (Some(code), Storm::Asked) => {
            ensure(code == victim.asked, || format!("exit code {code}, not {}", victim.asked))?;
            is_partial(victim, report.as_ref())?;
            is_clean(round)
        }
        (Some(code), _) => {
            ensure([victim.asked, INTERRUPTED].contains(&code), || format!("exit code {code}"))?;
            is_partial(victim, report.as_ref())
        }
    }
}

/// What it has written as its report, which is whole.
fn report(round: &Round, victim: &Victim) -> Result<Option<Value>, String> {
    let path = victim.report.map(|report| round.path(report.file)).filter(|path| path.exists());
    let read = path.map(|path| {
        let text = fs::read(&path).map_err(|e| e.to_string())?;
        serde_json::from_slice(&text).map_err(|e| format!("a report that is not whole: {e}"))
    });
    read.transpose()
}

/// A report of what was interrupted says so.
fn is_partial(victim: &Victim, report: Option<&Value>) -> Result<(), String> {
    let said = victim.report.zip(report).map(|(written, report)| (written.is_partial)(report));
    ensure(said != Some(false), || "a report that does not say that it is partial".to_owned())
}

/// The user's file is all there is in the cache directory, and nothing else lies about.
fn is_clean(round: &Round) -> Result<(), String> {
    let cache = names(round, "cache");
    ensure(cache == [FOREIGN], || format!("{cache:?} are left in the cache directory"))?;
    let strange = names(round, "tmp").into_iter().find(|name| !name.starts_with("run"));
    ensure(strange.is_none(), || format!("{strange:?} is left among temporary files"))?;
    let part = names(round, "").into_iter().find(|name| name.starts_with(PART));
    ensure(part.is_none(), || format!("{part:?} is left"))
}

fn names(round: &Round, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(round.path(folder)).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
