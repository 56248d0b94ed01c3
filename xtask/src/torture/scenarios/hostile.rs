//! `hostile`: traces, configurations, plans, reports, recordings and flags that are wrong in ways nobody
//! thought of. The command refuses them or runs; it does not panic, crash, hang, or take memory without end.

mod flags;
mod mutation;
mod samples;

use std::time::Duration;

use nix::sys::signal::Signal;

use super::Entry;
use crate::torture::child::Ended;
use crate::torture::round::{Round, ensure, words};
use samples::Sample;

pub(super) const ENTRY: Entry =
    Entry { name: "hostile", about: "wrong files, configurations and flags, 1,000 a round", run };

/// Inputs of a round.
const INPUTS: u64 = 1000;
/// Memory and files of one command: what takes more of them grows without end.
const LIMITS: &str = "trap '' XFSZ; ulimit -v 8388608; ulimit -f 131072";
/// A command that takes longer may be right to: a number was made large. It has to end when asked to.
const PATIENCE: Duration = Duration::from_secs(5);
/// From being asked to the end.
const OBEDIENCE: Duration = Duration::from_secs(20);
/// Commands that fail a check with exit code 1.
const CHECKS: [&str; 7] =
    ["trace lint", "trace info", "trace replay", "compare", "validate", "bench", "sweep"];

fn run(round: &mut Round) -> Result<(), String> {
    let samples = samples::collect(round)?;
    let flags = flags::collect(round)?;
    for number in 0..INPUTS {
        // A third are flags, the rest files.
        let line = match round.draw.below(3) {
            0 => flags::wrong(&mut round.draw, &flags),
            _ => spoilt(round, &samples, number)?,
        };
        suffer(round, &line)?;
        round.cases += 1;
    }
    Ok(())
}

/// A command on a changed sample.
fn spoilt(round: &mut Round, samples: &[Sample], number: u64) -> Result<Vec<String>, String> {
    let sample = &samples[round.draw.place(samples.len())];
    let bytes = mutation::mutated(&mut round.draw, &sample.bytes);
    let name = format!("in{number}{}", sample.ending);
    round.write(&name, bytes)?;
    let line = round.draw.pick(sample.lines);
    // Split first: a sample's name has no spaces, and stands where FILE stands.
    Ok(words(line).into_iter().map(|word| word.replace("FILE", &name)).collect())
}

/// Runs the command within its limits, and removes what it read if all is well.
fn suffer(round: &mut Round, line: &[String]) -> Result<(), String> {
    let command = round.limited(LIMITS, line);
    let mut running = round.start(command)?;
    let is_asked = running.wait(PATIENCE)?.is_none();
    if is_asked {
        running.signal(Signal::SIGINT)?;
    }
    let ended =
        running.finish(OBEDIENCE).map_err(|problem| format!("though it was asked to end, {problem}"))?;
    check(&ended, line, is_asked)?;
    let inputs: Vec<&str> = line.iter().map(String::as_str).filter(|word| word.starts_with("in")).collect();
    round.remove(&inputs);
    round.remove(&["out.jsonl", "out.json", "out.html", "out.csv"]);
    Ok(())
}

fn check(ended: &Ended, line: &[String], is_asked: bool) -> Result<(), String> {
    ended.is_sound()?;
    let verb = line.join(" ");
    let is_check = CHECKS.iter().any(|check| verb.starts_with(check));
    match ended.code() {
        Some(0) => Ok(()),
        Some(1) if is_check => Ok(()),
        Some(2) => {
            ensure(ended.stderr.contains("error: "), || ended.problem("it refuses and does not say why"))
        }
        Some(130) if is_asked => Ok(()),
        // Where there is nothing to lose, a request to end needs no handler.
        None if is_asked => Ok(()),
        _ => Err(ended.problem(&format!("{}", ended.status))),
    }
}
