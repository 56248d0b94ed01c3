//! Jobs and their results as text, for whoever takes them to another process and back.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use wavetank_model::{Error, ErrorKind, Result};

use super::finished::Finished;
use super::job::Job;
use super::runner::{Runner, Stop};

/// What became of a job.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Answer {
    Finished(Finished),
    Failed(Failure),
}

/// An error as text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    kind: ErrorKind,
    message: String,
    place: Option<String>,
    hint: Option<String>,
}

/// Runs the job that `text` is, its inputs read from `places`; the result, or why there is none, as text.
pub fn answer(
    text: &str,
    places: &HashMap<PathBuf, PathBuf>,
    runner: &dyn Runner,
    stop: &AtomicBool,
) -> String {
    let answer = match run(text, places, runner, stop) {
        Ok(finished) => Answer::Finished(finished),
        Err(error) => Answer::Failed(Failure {
            kind: error.kind(),
            message: error.message().to_owned(),
            place: error.place().map(str::to_owned),
            hint: error.advice().map(str::to_owned),
        }),
    };
    serde_json::to_string(&answer).expect("texts and finite numbers")
}

fn run(
    text: &str,
    places: &HashMap<PathBuf, PathBuf>,
    runner: &dyn Runner,
    stop: &AtomicBool,
) -> Result<Finished> {
    let mut job = Job::of_json(text)?;
    job.relocate(places)?;
    job.plan.check().map_err(|error| job.named_error(error))?;
    let finished = runner.run(&job, &Stop::of(stop))?;
    finished.ok_or_else(|| Error::new(ErrorKind::Io, "was ended before its result was there"))
}

/// What [`answer`] said.
pub fn outcome(answer: &str) -> Result<Finished> {
    let read = serde_json::from_str(answer);
    match read.map_err(|error| Error::input(format!("not the result of a job: {error}")))? {
        Answer::Finished(finished) => Ok(finished),
        Answer::Failed(Failure { kind, message, place, hint }) => {
            let error = Error::new(kind, message);
            let error = place.into_iter().fold(error, Error::at);
            Err(hint.into_iter().fold(error, Error::hint))
        }
    }
}
