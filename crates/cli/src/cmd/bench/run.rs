//! `wavetank bench` itself: one benchmark, its table and its files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::Args;
use serde_json::Value;
use wavetank::{BenchArgs, BenchObserver, BenchPlan, Benched, Error, Result, bench, run_parameters};
use wavetank_report::render;

use super::flags::{BenchFlags, BenchOutputFlags};
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::live::Live;
use crate::{limits, output};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct OneFlags {
    #[command(flatten)]
    what: BenchFlags,
    #[command(flatten)]
    out: BenchOutputFlags,
}

pub(super) fn run(flags: OneFlags) -> Result<ExitCode> {
    let OneFlags { what, out } = flags;
    let mut typed: BenchArgs = what.into();
    let log = typed.io_trace_log.clone();
    let plan = match &out.plan {
        Some(path) => {
            typed.io_trace_log = None;
            if typed != BenchArgs::default() {
                return Err(Error::usage("a plan is complete")
                    .at("--plan")
                    .hint("only output flags can be added; to change a plan, edit its JSON"));
            }
            BenchPlan::read(path)?
        }
        None => BenchPlan::of(&typed)?,
    };
    let report = output::report_path(out.output.as_deref(), "benchmark_results");
    keep_apart(&plan, &report, &out, log.as_deref())?;
    [Some(report.as_path()), out.xlsx_output.as_deref()]
        .into_iter()
        .flatten()
        .try_for_each(output::try_out)?;
    limits::raise_open_files();
    let stop = Interrupt::watch()?;
    stop.loaded.store(true, Ordering::Relaxed);
    let mut live = Live::start(out.is_quiet(), plan.trials);
    let mut news = live.news();
    let observer = BenchObserver { watch: &mut live, stop: &stop.raised, news: &mut news };
    let benched = bench(&plan, observer, log.as_deref())?;
    drop(live);
    // What was measured is said before anything can go wrong with files.
    output::say(&summary(&plan, &benched))?;
    write(&plan, &benched, &report, out.xlsx_output.as_deref())?;
    output::say(&format!("Saved full report to: {}\n", report.display()))?;
    Ok(exit_code(&plan, &benched))
}

fn keep_apart(plan: &BenchPlan, report: &Path, out: &BenchOutputFlags, log: Option<&Path>) -> Result<()> {
    let inputs: Vec<PathBuf> = plan
        .dataset
        .iter()
        .flat_map(|dataset| &dataset.files)
        .chain(&plan_files(plan))
        .map(PathBuf::from)
        .collect();
    let mut files: Vec<(&str, &Path)> = inputs.iter().map(|path| ("the input", path.as_path())).collect();
    files.push(("--output", report));
    files.extend(out.xlsx_output.as_deref().map(|path| ("--xlsx-output", path)));
    files.extend(log.map(|path| ("--io-trace-log", path)));
    output::keep_apart(&files)
}

fn plan_files(plan: &BenchPlan) -> Vec<String> {
    plan.validation_trace.iter().map(|path| path.display().to_string()).collect()
}

fn write(plan: &BenchPlan, benched: &Benched, report: &Path, table: Option<&Path>) -> Result<()> {
    output::write(report, |out| render::json::write(&benched.report, out))?;
    let Some(path) = table else { return Ok(()) };
    let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let parameters = run_parameters(plan);
    output::write(path, |out| {
        let sheet = if is_csv { render::storage::csv } else { render::storage::xlsx };
        sheet(&benched.report, &parameters, out)
    })
}

fn summary(plan: &BenchPlan, benched: &Benched) -> String {
    let partial = if benched.report["partial"] == true { " (partial)" } else { "" };
    let (users, model) = (plan.run.users, &plan.model.name);
    let title = format!("wavetank bench{partial}: {model}, {users} users");
    let table = render::storage::table(&title, &benched.summary, &benched.warnings);
    format!("{table}{}{}{}", scaling(benched), trials(benched), harness(benched))
}

/// What the harness could drive, beside which a drive's numbers can be trusted.
fn harness(benched: &Benched) -> String {
    let number = |path: &str| benched.report.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    format!(
        "Harness: an I/O thread with nothing behind it writes {:.1} GiB/s at {:.1} us an operation; this run \
         took {:.1} CPU-s in {:.1} s\n",
        number("/harness/write_gbps_per_thread"),
        number("/harness/operation_us"),
        number("/wall/cpu_seconds"),
        number("/wall/run_seconds"),
    )
}

/// What the autoscaler found.
fn scaling(benched: &Benched) -> String {
    let last = benched.report["autoscaling_stats"].as_array().and_then(|steps| steps.last());
    last.map_or_else(String::new, |step| {
        let reason = step["reason"].as_str().unwrap_or_default();
        let within = &benched.report["autoscaling_summary"]["most_users_within_target"];
        let within =
            within.as_u64().map_or(String::new(), |users| format!("; {users} kept within the target"));
        format!("Autoscaling: {} users at the end{within}; {reason}\n", step["users"])
    })
}

/// What the trials agree on.
fn trials(benched: &Benched) -> String {
    let trials = &benched.report["trials"];
    let (run, agreement) = (trials["run"].as_u64().unwrap_or(1), &trials["agreement"]);
    let advice = trials["advice"].as_str().map_or(String::new(), |advice| format!("; {advice}"));
    if run < 2 {
        return if benched.report["summary"]["clock"] == "wall" {
            format!("Trials: {}\n", advice.trim_start_matches("; "))
        } else {
            String::new()
        };
    }
    let number = |key: &str| agreement[key].as_f64().unwrap_or(0.0);
    format!(
        "Trials: {run}, {} median {:.2}, MAD {:.2}, CV {:.1} %, P95 {:.2}, P99 {:.2}, 95 % confidence \
         ±{:.1} %: {}{advice}\n",
        trials["metric"].as_str().unwrap_or_default(),
        number("median"),
        number("mad"),
        number("cv") * 100.0,
        number("p95"),
        number("p99"),
        number("ci95_percent"),
        agreement["verdict"].as_str().unwrap_or_default(),
    )
}

fn exit_code(plan: &BenchPlan, benched: &Benched) -> ExitCode {
    if benched.interrupted {
        return ExitCode::from(INTERRUPTED);
    }
    if let Some(why) = &benched.failure {
        output::complain(&format!("error: {why}"));
        return ExitCode::FAILURE;
    }
    let validated = benched.report.pointer("/validation/passed").is_none_or(|passed| passed == true);
    if plan.strict && !(benched.passed() && validated) {
        output::complain("the assessment failed, and --strict was asked for");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
