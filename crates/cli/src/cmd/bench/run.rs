//! `wavetank bench` itself: one benchmark, its table and its files.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Args;
use serde_json::Value;
use wavetank::suite::Hardware;
use wavetank::{
    BenchArgs, BenchFiles, BenchObserver, BenchPlan, Benched, CallRecording, Error, Package, RecordedCalls,
    Result, Results, Run, bench, check_fio_job, package_name, run_parameters,
};
use wavetank_report::render;

use super::block_layer;
use super::flags::{BenchFlags, BenchOutputFlags};
use crate::cmd::picture_flags::PictureFlags;
use crate::cmd::recording_flags::RecordingFlags;
use crate::exit::Exit;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::live::Live;
use crate::{limits, output};

/// What is said of entries that could not be removed, because the run was ended at once.
pub(super) const LEFT_IN_CACHE: &str =
    "entries may be left in the cache directory; the next run there removes them";

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct OneFlags {
    #[command(flatten)]
    what: BenchFlags,
    #[command(flatten)]
    recording: RecordingFlags,
    #[command(flatten)]
    out: BenchOutputFlags,
}

pub(super) fn run(flags: OneFlags) -> Result<Exit> {
    let OneFlags { what, recording, out } = flags;
    let mut typed: BenchArgs = what.into();
    let log = typed.io_trace_log.clone();
    let plan = match &out.plan {
        Some(path) => {
            typed.io_trace_log = None;
            let ranks =
                BenchArgs { rank: typed.rank.take(), ranks: typed.ranks.take(), ..BenchArgs::default() };
            if typed != BenchArgs::default() {
                return Err(Error::usage("a plan is complete")
                    .at("--plan")
                    .hint("only output flags can be added; to change a plan, edit its JSON"));
            }
            BenchPlan::read(path)?.joined(&ranks)?
        }
        None => BenchPlan::of(&typed)?,
    };
    if out.fio_job.is_some() {
        check_fio_job(&plan)?;
    }
    let files = Files::of(&plan, &out, (log.as_deref(), recording.recording()?));
    files.keep_apart(&plan, &typed.profiles())?;
    let calls = files.calls.as_ref();
    [Some(&files.report), files.table.as_ref(), files.fio_job.as_ref(), calls.map(|calls| &calls.path)]
        .into_iter()
        .flatten()
        .try_for_each(|path| output::try_out(path))?;
    files.pictures.check("bench")?;
    let package = out.mlperf.as_deref().map(|folder| package(&plan, folder)).transpose()?;
    limits::raise_open_files();
    let stop = Interrupt::leaving(left_behind(&plan))?;
    stop.loaded.store(true, Ordering::Relaxed);
    // One line that is written over is enough for all ranks.
    let is_quiet = out.is_quiet() || plan.rank.is_some_and(|rank| rank.number > 0);
    if let Some(calls) = calls {
        output::complain(&format!("recording calls on the store in {}", calls.path.display()));
    }
    let mut live = Live::start(is_quiet, plan.trials);
    let mut news = live.news();
    let observer = BenchObserver { watch: &mut live, stop: &stop.raised, news: &mut news };
    let benched = bench(&plan, observer, BenchFiles { log: files.log.as_deref(), calls })?;
    drop(live);
    // What was measured is said before anything can go wrong with files.
    output::say(&summary(&plan, &benched))?;
    write(&plan, &benched.report, (&files.report, files.table.as_deref()))?;
    output::say(&format!("Saved full report to: {}\n", files.report.display()))?;
    output::say(&benched.recordings.iter().map(recorded).collect::<String>())?;
    if let Some(path) = &files.fio_job {
        write_fio_job(&benched, path)?;
    }
    let run = Run { name: plan.model.name.clone(), report: benched.report.clone() };
    files.pictures.write("wavetank bench", &[run])?;
    if let Some((package, system)) = package {
        let Benched { report, trial_reports: trials, .. } = &benched;
        let results = Results { plan: &plan, report, trials, systems: &[system] };
        add(package, results, cut_short(&benched))?;
    }
    Ok(exit_code(&plan, &benched))
}

/// Where calls were recorded, and how many of them.
fn recorded(recording: &RecordedCalls) -> String {
    let RecordedCalls { files, calls, lost, .. } = recording;
    let name = files.first().map_or_else(String::new, |path| path.display().to_string());
    let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
    format!("Recorded {calls} calls on the store, {lost} lost: {name}{more}\n")
}

/// What a run that is ended at once may leave.
fn left_behind(plan: &BenchPlan) -> String {
    if plan.temporary_cache {
        let folder = std::env::temp_dir().join("wavetank_bench_*");
        return format!("entries may be left in {}: delete them", folder.display());
    }
    LEFT_IN_CACHE.to_owned()
}

/// Why it did not come to its end, if so.
fn cut_short(benched: &Benched) -> Option<&'static str> {
    match (benched.interrupted, &benched.failure) {
        (true, _) => Some("it was interrupted"),
        (false, Some(_)) => Some("it failed"),
        (false, None) => None,
    }
}

/// Adds a benchmark to a package, unless it was cut short: what an earlier one left there is worth more.
pub(super) fn add(mut package: Package, results: Results<'_>, cut_short: Option<&str>) -> Result<()> {
    let folder = package.folder().display().to_string();
    if let Some(why) = cut_short {
        return output::say(&format!("Not added to the package {folder}: {why}\n"));
    }
    package.add(package_name(results.plan), results)?;
    package.seal()?;
    output::say(&format!("Saved package to: {folder}\n"))
}

/// A package that can take what comes, and the machine that it describes.
fn package(plan: &BenchPlan, folder: &Path) -> Result<(Package, Hardware)> {
    if plan.is_simulated() {
        return Err(Error::usage("is not for a simulation: nothing was measured")
            .at("--mlperf")
            .hint("leave out --simulate"));
    }
    if plan.rank.is_some() {
        return Err(Error::usage("is not for a rank alone")
            .at("--mlperf")
            .hint("give it to `wavetank bench merge`, which has all ranks"));
    }
    Ok((Package::open(folder)?, Hardware::of(plan)?))
}

/// Where results go; each rank has its own.
struct Files {
    report: PathBuf,
    table: Option<PathBuf>,
    fio_job: Option<PathBuf>,
    log: Option<PathBuf>,
    calls: Option<CallRecording>,
    pictures: PictureFlags,
}

impl Files {
    fn of(
        plan: &BenchPlan,
        out: &BenchOutputFlags,
        (log, calls): (Option<&Path>, Option<CallRecording>),
    ) -> Self {
        let given = out.output.as_deref();
        let own = |path: &Path| plan.rank.map_or_else(|| path.to_owned(), |rank| rank.file(path));
        let report = match (plan.rank, given) {
            (None, given) => output::report_path(given, "benchmark_results"),
            (Some(rank), None) => rank.report_name().into(),
            (Some(rank), Some(folder)) if folder.is_dir() => folder.join(rank.report_name()),
            (Some(rank), Some(path)) => rank.file(path),
        };
        Self {
            report,
            table: out.xlsx_output.as_deref().map(own),
            fio_job: out.fio_job.as_deref().map(own),
            log: log.map(own),
            pictures: out.pictures.clone().with_names(own),
            calls: calls.map(|calls| CallRecording { path: own(&calls.path), ..calls }),
        }
    }

    fn keep_apart(&self, plan: &BenchPlan, profiles: &[PathBuf]) -> Result<()> {
        let inputs = [bench_inputs(plan), profiles.to_vec()].concat();
        let mut files: Vec<(&str, &Path)> = inputs.iter().map(|path| ("the input", path.as_path())).collect();
        files.push(("--output", &self.report));
        files.extend(self.table.as_deref().map(|path| ("--xlsx-output", path)));
        files.extend(self.fio_job.as_deref().map(|path| ("--fio-job", path)));
        files.extend(self.log.as_deref().map(|path| ("--io-trace-log", path)));
        files.extend(self.pictures.files());
        if let Some(calls) = &self.calls {
            output::keep_parts_apart(calls, &files)?;
            files.push(("--trace-output", &calls.path));
        }
        output::keep_apart(&files)
    }
}

/// The files that a benchmark reads.
pub fn bench_inputs(plan: &BenchPlan) -> Vec<PathBuf> {
    let datasets = plan.dataset.iter().flat_map(|dataset| &dataset.files).map(PathBuf::from);
    datasets.chain(plan.validation_trace.clone()).collect()
}

/// Writes the report, and the table if one was asked for.
pub(super) fn write(plan: &BenchPlan, report: &Value, to: (&Path, Option<&Path>)) -> Result<()> {
    output::write(to.0, |out| render::json::write(report, out))?;
    let Some(path) = to.1 else { return Ok(()) };
    let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let parameters = run_parameters(plan);
    output::write(path, |out| {
        let sheet = if is_csv { render::storage::csv } else { render::storage::xlsx };
        sheet(report, &parameters, out)
    })
}

fn write_fio_job(benched: &Benched, path: &Path) -> Result<()> {
    let Some(job) = &benched.fio_job else {
        return Err(Error::usage("nothing went to storage: there is no job").at("--fio-job"));
    };
    output::write(path, |out| out.write_all(job.as_bytes()))?;
    output::say(&format!("Saved fio job to: {}\n", path.display()))
}

fn summary(plan: &BenchPlan, benched: &Benched) -> String {
    let partial = if benched.report["partial"] == true { " (partial)" } else { "" };
    let (users, model) = (plan.run.users, &plan.model.name);
    let rank = plan.rank.map_or(String::new(), |rank| format!(", {}", rank.title()));
    let title = format!("wavetank bench{partial}: {model}, {users} users{rank}");
    let table = render::storage::table(&title, &benched.summary, &benched.warnings);
    let seen = block_layer::table(&benched.report["block_layer"]["traced"]);
    format!(
        "{table}{}{seen}{}{}",
        scaling(benched),
        trials(&benched.report, &benched.warnings),
        harness(benched)
    )
}

/// What the harness could drive, beside which a drive's numbers can be trusted.
fn harness(benched: &Benched) -> String {
    let number = |path: &str| benched.report.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    if benched.report["harness"].is_null() {
        let (run, wall) = (number("/summary/elapsed_time"), number("/wall/run_seconds"));
        return format!("Simulated: {run:.1} s went by in {wall:.1} s\n");
    }
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

/// What the trials agree on; advice that is a warning already is not repeated.
fn trials(report: &Value, warnings: &[String]) -> String {
    let trials = &report["trials"];
    let advice = trials["advice"].as_str().filter(|advice| !warnings.iter().any(|known| known == advice));
    let count = |key: &str| trials[key].as_u64().unwrap_or(1);
    let (run, compared) = (count("run"), count("compared"));
    if run < 2 {
        let advice = advice.filter(|_| report["summary"]["clock"] == "wall");
        return advice.map_or_else(String::new, |advice| format!("Trials: {advice}\n"));
    }
    let count = if compared < run { format!("{compared} of {run} compared") } else { run.to_string() };
    let agreement = &trials["agreement"];
    let metric = trials["metric"].as_str().unwrap_or_default();
    let median = agreement["median"].as_f64().unwrap_or(0.0);
    let verdict = agreement["verdict"].as_str().unwrap_or_default();
    let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
    format!(
        "Trials: {count}, {metric} median {median:.2}{}{}: {verdict}{advice}\n",
        spreads(agreement),
        pooled(&trials["pooled_latency_ms"]["end_to_end"]),
    )
}

/// How far trials lie apart, as far as that is known.
fn spreads(agreement: &Value) -> String {
    let mad = agreement["mad"].as_f64().map(|mad| format!(", MAD {mad:.2}"));
    let cv = agreement["cv"].as_f64().map(|cv| format!(", CV {:.1} %", cv * 100.0));
    let half = agreement["ci95_percent"].as_f64().map(|half| format!(", 95 % confidence ±{half:.1} %"));
    [mad, cv, half].into_iter().flatten().collect()
}

/// Latencies of all trials as if they were one run.
fn pooled(latency: &Value) -> String {
    match (latency["samples"].as_u64(), latency["p95"].as_f64(), latency["p99"].as_f64()) {
        (Some(1..), Some(p95), Some(p99)) => {
            format!(", end-to-end of all P95 {p95:.2} ms, P99 {p99:.2} ms")
        }
        _ => String::new(),
    }
}

fn exit_code(plan: &BenchPlan, benched: &Benched) -> Exit {
    if let Some(why) = &benched.failure {
        output::complain(&format!("error: {why}"));
    }
    if benched.interrupted {
        return Exit::from(INTERRUPTED);
    }
    if benched.failure.is_some() {
        return Exit::FAILED;
    }
    let validated = benched.report.pointer("/validation/passed").is_none_or(|passed| passed == true);
    if plan.strict && !(benched.passed() && validated) {
        output::complain("the assessment failed, and --strict was asked for");
        return Exit::FAILED;
    }
    Exit::DONE
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ADVICE: &str = "give --trials 3";

    fn report(run: u64, compared: u64, agreement: Value) -> Value {
        json!({
            "summary": { "clock": "wall" },
            "trials": {
                "run": run, "compared": compared, "metric": "wall_clock", "advice": ADVICE,
                "agreement": agreement,
                "pooled_latency_ms": { "end_to_end": { "samples": 9, "p95": 4.0, "p99": 5.0 } },
            },
        })
    }

    /// Broken by: a spread of 0 where none is known, percentiles of a metric that is better when it is
    /// higher, or silence about trials that are not compared.
    #[test]
    fn only_what_is_known_of_trials_is_said() {
        let one = json!({ "median": 8.0, "p95": 8.0, "mad": null, "cv": null, "ci95_percent": null,
            "verdict": "too few trials to tell" });
        assert_eq!(
            trials(&report(2, 1, one.clone()), &[ADVICE.to_owned()]),
            "Trials: 1 of 2 compared, wall_clock median 8.00, end-to-end of all P95 4.00 ms, P99 5.00 ms: \
             too few trials to tell\n"
        );
        let three = json!({ "median": 8.0, "p95": 9.0, "mad": 0.5, "cv": 0.1, "ci95_percent": 12.0,
            "verdict": "steady" });
        assert_eq!(
            trials(&report(3, 3, three), &[]),
            "Trials: 3, wall_clock median 8.00, MAD 0.50, CV 10.0 %, 95 % confidence ±12.0 %, end-to-end of \
             all P95 4.00 ms, P99 5.00 ms: steady; give --trials 3\n"
        );
        assert_eq!(trials(&report(1, 1, one.clone()), &[]), "Trials: give --trials 3\n");
        assert_eq!(trials(&report(1, 1, one), &[ADVICE.to_owned()]), "", "it is said once");
    }
}
