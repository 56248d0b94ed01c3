//! `wavetank bench residual`: a simulated benchmark held against real runs of the same plan.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use wavetank::{Error, Result};
use wavetank_report::render;
use wavetank_study::residual::Residuals;

use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(super) struct Flags {
    /// The report of `bench --simulate`.
    #[arg(value_name = "SIMULATED")]
    simulated: PathBuf,
    /// Reports of the same without --simulate; several show how far runs are from each other.
    #[arg(required = true, value_name = "REAL")]
    real: Vec<PathBuf>,
    /// Write the rows as JSON.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Exit with 1 when a row is out of its bound: bytes and hits 1 %, means 15 %, P95 25 %.
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(flags: &Flags) -> Result<Exit> {
    for input in flags.real.iter().chain([&flags.simulated]) {
        let output = flags.output.as_deref().map(|path| ("--output", path));
        let files: Vec<(&str, &Path)> = [("the input", input.as_path())].into_iter().chain(output).collect();
        output::keep_apart(&files)?;
    }
    let simulated = read(&flags.simulated)?;
    let real = flags.real.iter().map(|path| Ok((path.as_path(), read(path)?)));
    let residuals =
        Residuals::of((&flags.simulated, &simulated), &real.collect::<Result<Vec<(&Path, Value)>>>()?)?;
    let runs =
        if residuals.runs == 1 { "1 real run".to_owned() } else { format!("{} real runs", residuals.runs) };
    output::say(&format!("wavetank bench residual: simulated against {runs}\n{}\n", residuals.table()))?;
    if let Some(path) = &flags.output {
        output::write(path, |out| render::json::write(&json!(residuals), out))?;
    }
    Ok(if flags.strict && !residuals.passed() { Exit::FAILED } else { Exit::DONE })
}

fn read(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    serde_json::from_str(&text).map_err(|error| {
        Error::input(format!("not a report of a storage benchmark: {error}")).at(path.display().to_string())
    })
}
