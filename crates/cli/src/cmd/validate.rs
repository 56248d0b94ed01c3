//! `wavetank validate`: a measured run against its simulation.

use std::path::PathBuf;

use clap::Args;
use wavetank::{Result, Run};
use wavetank_report::render;
use wavetank_study::validate::Case;

use super::picture_flags::PictureFlags;
use crate::exit::Exit;
use crate::output;

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Flags {
    /// A directory with run.json, workload.jsonl[.gz], profile/ and measured.csv.
    #[arg(value_name = "DIR")]
    run: PathBuf,
    /// Exit with 1 if a statistic of TTFT, TPOT or E2E is off by more.
    #[arg(long, value_name = "PERCENT")]
    tolerance: Option<f64>,
    /// Write measured and simulated latencies of every request as CSV.
    #[arg(long, value_name = "FILE")]
    scatter: Option<PathBuf>,
    /// Where the report goes.
    #[arg(long, value_name = "FILE")]
    report_json: Option<PathBuf>,
    #[command(flatten)]
    pictures: PictureFlags,
}

pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let case = Case::open(&flags.run)?;
    flags.tolerance.map_or(Ok(()), |percent| case.check_tolerance(percent))?;
    keep_apart(flags, case.inputs())?;
    flags.pictures.check("validate")?;
    let validated = case.replay()?;
    for warning in &validated.warnings {
        output::complain(&format!("warning: {warning}"));
    }
    if let Some(path) = &flags.report_json {
        output::write(path, |out| render::json::write(&validated.report, out))?;
    }
    if let Some(path) = &flags.scatter {
        output::write(path, |out| validated.scatter(out))?;
    }
    output::say(&validated.table())?;
    let name = flags.run.file_name().unwrap_or(flags.run.as_os_str()).to_string_lossy().into_owned();
    flags.pictures.write("wavetank validate", &[Run { name, report: validated.report.clone() }])?;
    let failure = flags.tolerance.and_then(|percent| validated.failure(percent));
    if let Some(failure) = &failure {
        output::complain(&format!("failed: {failure}"));
    }
    Ok(Exit::from(u8::from(failure.is_some())))
}

/// Refuses output over what was read.
fn keep_apart(flags: &Flags, inputs: &[PathBuf]) -> Result<()> {
    let inputs = inputs.iter().map(|path| ("the run", path.as_path()));
    let outputs = [("--scatter", flags.scatter.as_deref()), ("--report-json", flags.report_json.as_deref())];
    let outputs = outputs.into_iter().filter_map(|(flag, path)| Some((flag, path?)));
    output::keep_apart(&inputs.chain(outputs).chain(flags.pictures.files()).collect::<Vec<_>>())
}
