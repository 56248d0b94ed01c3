//! `wavetank bench merge`: one report of those that the ranks of a benchmark wrote.

use std::path::{Path, PathBuf};

use clap::Args;
use wavetank::{Merged, Missing, Package, Result, Results, merge};
use wavetank_report::render::storage;

use super::run::{add, write};
use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(super) struct Flags {
    /// The reports of all ranks, in any order.
    #[arg(required = true, value_name = "REPORT")]
    reports: Vec<PathBuf>,
    /// Merge what there is, although ranks are missing.
    #[arg(long)]
    partial: bool,
    /// Where the merged report goes [default: merged_results_TIME.json].
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a table too: .xlsx, or .csv.
    #[arg(long, value_name = "FILE")]
    xlsx_output: Option<PathBuf>,
    /// Add all trials to a package that can be submitted, with the description of every rank's
    /// machine; not if a part is missing. See `bench check`.
    #[arg(long, value_name = "DIR")]
    mlperf: Option<PathBuf>,
}

pub(super) fn run(flags: &Flags) -> Result<Exit> {
    let report = output::report_path(flags.output.as_deref(), "merged_results");
    let table = flags.xlsx_output.as_deref();
    keep_apart(flags, &report)?;
    let package = flags.mlperf.as_deref().map(Package::open).transpose()?;
    let missing = if flags.partial { Missing::Noted } else { Missing::Refused };
    let merged = merge(&flags.reports, missing)?;
    output::say(&summary(&merged))?;
    write(&merged.plan, &merged.report, (&report, table))?;
    output::say(&format!("Saved merged report to: {}\n", report.display()))?;
    if let Some(package) = package {
        let Merged { plan, report, trial_reports: trials, systems, .. } = &merged;
        let results = Results { plan, report, trials, systems };
        add(package, results, merged.is_partial.then_some("it is partial"))?;
    }
    Ok(exit_code(&merged))
}

fn keep_apart(flags: &Flags, report: &Path) -> Result<()> {
    for input in &flags.reports {
        let mut files = vec![("the input", input.as_path()), ("--output", report)];
        files.extend(flags.xlsx_output.as_deref().map(|path| ("--xlsx-output", path)));
        output::keep_apart(&files)?;
    }
    Ok(())
}

fn summary(merged: &Merged) -> String {
    let partial = if merged.is_partial { " (partial)" } else { "" };
    let (users, model, ranks) = (merged.plan.run.users, &merged.plan.model.name, merged.names.len());
    let title = format!("wavetank bench merge{partial}: {model}, {ranks} ranks of {users} users");
    let table = storage::table(&title, &merged.summary, &merged.warnings);
    let trials = &merged.report["trials"];
    let trials = match trials["run"].as_u64() {
        Some(run) if run > 1 => format!("Trials: {run}, of which trial {} is shown\n", trials["reported"]),
        _ => String::new(),
    };
    format!("{table}{}{trials}", storage::ranks(&merged.names, &merged.summary))
}

/// As of one benchmark: ranks that did not come to their end are no failure of merging, unless it is strict.
fn exit_code(merged: &Merged) -> Exit {
    let validated = merged.report.pointer("/validation/passed").is_none_or(|passed| passed == true);
    let wrong = [
        (!(merged.passed() && validated), "the assessment failed"),
        (merged.is_partial, "it is partial"),
        (!merged.is_at_a_time, "the ranks did not measure at the same time"),
    ];
    let wrong: Vec<&str> = wrong.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
    if merged.plan.strict && !wrong.is_empty() {
        output::complain(&format!("{}, and --strict was asked for", wrong.join(", ")));
        return Exit::FAILED;
    }
    Exit::DONE
}
