//! `wavetank bench suite`: what this machine can do, scenario by scenario.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Args;
use wavetank::suite::{Suite, SuiteArgs, SuiteObserver, SuitePlan, lasting, machine, outline};
use wavetank::{Error, GpuTier, Package, Result, TrialCount, choice, read_runs};
use wavetank_report::render;
use wavetank_report::suite::SuiteSummary;

use super::run::LEFT_IN_CACHE;
use crate::cmd::picture_flags::PictureFlags;
use crate::exit::Exit;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::suite_live::SuiteLive;
use crate::{limits, output};

/// The name of all runs of a submission.
const SUBMISSIONS: &str = "mlperf";

/// Run every scenario that this machine is able to, and compare them.
#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct SuiteFlags {
    #[command(flatten)]
    what: PlanFlags,
    /// Say what would run and for how long, and run nothing.
    #[arg(long, conflicts_with_all = ["resume", "html", "plots", "timeseries"])]
    dry_run: bool,
    /// Where results go: a folder of its own [default: wavetank_suite_TIME].
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    output: Option<PathBuf>,
    /// Go on with the suite in this folder; its plan is complete.
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Make a package of the submissions that are done, and run only these unless
    /// --workloads says otherwise; see `bench check`.
    #[arg(long, value_name = "DIR")]
    mlperf: Option<PathBuf>,
    #[command(flatten)]
    pictures: PictureFlags,
    /// Say nothing while it runs.
    #[arg(long)]
    quiet: bool,
}

#[derive(Args)]
struct PlanFlags {
    /// The same as --model.
    #[arg(value_name = "MODEL", conflicts_with = "model")]
    model_name: Option<String>,
    /// Model: a row of `wavetank list models`; submissions and capacity-autoscale have their
    /// own [default: llama3.1-8b].
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    /// Where entries are stored [default: /mnt/nvme or /mnt/ssd, or a folder for temporary
    /// files, the first that can be written to and is not in memory].
    #[arg(short, long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// How long a combination of tiers is measured [default: 120].
    #[arg(short, long, value_name = "SECONDS")]
    tier_duration: Option<f64>,
    /// How long storage is saturated [default: 180].
    #[arg(short, long, value_name = "SECONDS")]
    saturation_duration: Option<f64>,
    /// How long production is measured [default: 180].
    #[arg(short, long, value_name = "SECONDS")]
    realistic_duration: Option<f64>,
    /// How long users are added [default: 300].
    #[arg(short, long, value_name = "SECONDS")]
    autoscale_duration: Option<f64>,
    /// Only these scenarios, by name, separated by commas; `comparison` are the first ten,
    /// `mlperf` the three of a submission, `all` both [default: comparison; all with --quick].
    #[arg(short, long, value_name = "LIST", visible_alias = "only")]
    workloads: Option<String>,
    /// A usual number of users [default: 50].
    #[arg(short, long, value_name = "N")]
    users_baseline: Option<u32>,
    /// A large one [default: 10 per GiB of main memory, 50 to 300].
    #[arg(short = 'U', long, value_name = "N")]
    users_high: Option<u32>,
    /// Requests retrieve from documents; not in submissions.
    #[arg(short = 'R', long)]
    enable_rag: bool,
    /// So many documents [default: 10].
    #[arg(short = 'D', long, value_name = "N")]
    rag_num_docs: Option<u32>,
    /// Requests, names and contents follow from it; a submission's is 42 [default: 42].
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Run every scenario so often; auto goes on until the trials agree [default: 1; a
    /// submission at least 3].
    #[arg(long, value_name = "N|auto")]
    trials: Option<TrialCount>,
    /// Pause between two trials, and between scenarios [default: 0].
    #[arg(long, value_name = "SECONDS")]
    cooldown: Option<f64>,
    /// Empty the kernel's page cache before each trial, all over the machine; takes the
    /// superuser.
    #[arg(long)]
    drop_page_cache: bool,
    /// auto, cuda, sim (a modelled GPU) or off [default: auto: scenarios that need a GPU are
    /// skipped without one].
    #[arg(long, value_name = "KIND", value_parser = choice::<GpuTier>)]
    gpu_tier: Option<GpuTier>,
    /// What storage may hold; 0 is 95 % of what is free [default: 0].
    #[arg(long, value_name = "GIB")]
    storage_capacity_gb: Option<f64>,
    /// Threads that do I/O [default: a quarter of the cores, 1 to 8].
    #[arg(long, value_name = "N")]
    io_threads: Option<u32>,
    /// Pieces of 1 MiB at devices at a time, per thread [default: 32].
    #[arg(long, value_name = "N")]
    io_depth: Option<u32>,
    /// Seconds per scenario, few users, a small model: shows that everything works.
    #[arg(long)]
    quick: bool,
}

impl From<PlanFlags> for SuiteArgs {
    fn from(flags: PlanFlags) -> Self {
        Self {
            model: flags.model.or(flags.model_name),
            cache_dir: flags.cache_dir,
            tier_duration: flags.tier_duration,
            saturation_duration: flags.saturation_duration,
            realistic_duration: flags.realistic_duration,
            autoscale_duration: flags.autoscale_duration,
            workloads: flags.workloads,
            users_baseline: flags.users_baseline,
            users_high: flags.users_high,
            enable_rag: flags.enable_rag,
            rag_num_docs: flags.rag_num_docs,
            seed: flags.seed,
            trials: flags.trials,
            cooldown: flags.cooldown,
            drop_page_cache: flags.drop_page_cache,
            gpu_tier: flags.gpu_tier,
            storage_capacity_gb: flags.storage_capacity_gb,
            io_threads: flags.io_threads,
            io_depth: flags.io_depth,
            quick: flags.quick,
        }
    }
}

pub(super) fn run(flags: SuiteFlags) -> Result<Exit> {
    let SuiteFlags { what, dry_run, output: folder, resume, mlperf, pictures, quiet } = flags;
    output::keep_apart(&pictures.files())?;
    pictures.check("suite")?;
    let mut typed: SuiteArgs = what.into();
    if typed.quick && mlperf.is_some() {
        return Err(quick_is_no_submission());
    }
    if mlperf.is_some() && resume.is_none() {
        typed.workloads.get_or_insert_with(|| SUBMISSIONS.to_owned());
    }
    let package = || mlperf.as_deref().map(Package::open).transpose();
    let (mut suite, package) = match resume {
        Some(folder) => {
            let suite = resumed(&typed, &folder)?;
            if suite.plan().parameters.quick && mlperf.is_some() {
                return Err(quick_is_no_submission());
            }
            (suite, package()?)
        }
        None => {
            let plan = SuitePlan::of(&typed)?;
            if dry_run {
                output::say(&outline(&plan))?;
                return Ok(Exit::DONE);
            }
            // Before anything is begun: what cannot be packaged would be measured in vain.
            let package = package()?;
            let folder = folder.unwrap_or_else(|| output::stamped("wavetank_suite").into());
            (Suite::begin(plan, &folder)?, package)
        }
    };
    let stopped = play(&mut suite, quiet)?;
    let summary = suite.write_summary()?;
    output::say(&text(&suite, &summary))?;
    draw(&suite, &pictures)?;
    if let Some(mut package) = package {
        let count = suite.package(&mut package)?;
        let plural = if count == 1 { "" } else { "s" };
        let folder = package.folder().display();
        output::say(&format!("Saved package of {count} submission{plural} to: {folder}\n"))?;
    }
    Ok(exit_code(&suite, &summary, stopped))
}

/// Pictures of the summary, as it was written.
fn draw(suite: &Suite, pictures: &PictureFlags) -> Result<()> {
    if pictures.files().is_empty() {
        return Ok(());
    }
    pictures.write("wavetank bench suite", &read_runs(&[suite.folder().display().to_string()])?)
}

fn quick_is_no_submission() -> Error {
    Error::usage("is not for a suite with --quick: seconds of a small model are no submission")
        .at("--mlperf")
        .hint("leave --quick out, or --mlperf")
}

fn resumed(typed: &SuiteArgs, folder: &Path) -> Result<Suite> {
    if *typed != SuiteArgs::default() {
        return Err(Error::usage("the suite's plan is complete")
            .at("--resume")
            .hint("only --mlperf and --quiet can be added; start a suite of its own to change it"));
    }
    Suite::resume(folder)
}

/// Runs what is still to run; whether someone ended it.
fn play(suite: &mut Suite, quiet: bool) -> Result<bool> {
    let (count, seconds) = suite.to_run();
    if count == 0 {
        return Ok(false);
    }
    limits::raise_open_files();
    let folder = suite.folder().display();
    let stop =
        Interrupt::leaving(format!("{LEFT_IN_CACHE}; go on with: wavetank bench suite --resume {folder}"))?;
    stop.loaded.store(true, Ordering::Relaxed);
    let total = suite.plan().steps.len();
    let mut live = SuiteLive::start(quiet, total, seconds);
    live.announce(&announcement(suite, count, seconds));
    suite.run(SuiteObserver { watch: &mut live, stop: &stop.raised })?;
    Ok(stop.raised.load(Ordering::Relaxed))
}

/// How much is to be done, until when.
fn announcement(suite: &Suite, count: usize, seconds: f64) -> String {
    let quick = if suite.plan().parameters.quick { " (quick)" } else { "" };
    let until = jiff::Zoned::now().checked_add(jiff::SignedDuration::from_secs_f64(seconds));
    let until = until.map(|end| format!(", until about {}", end.strftime("%H:%M")));
    let plural = if count == 1 { "" } else { "s" };
    format!(
        "wavetank bench suite{quick}: {count} scenario{plural}, about {}{}",
        lasting(seconds),
        until.unwrap_or_default()
    )
}

fn text(suite: &Suite, summary: &SuiteSummary) -> String {
    let quick = if summary.quick { " (quick)" } else { "" };
    let partial = if summary.is_complete() { "" } else { " (partial)" };
    let warnings: String = suite.warnings().iter().map(|warning| format!("Warning: {warning}\n")).collect();
    let files = suite.folder().display();
    let saved = format!("Saved reports, summary.json and summary.xlsx to: {files}\n");
    let table = render::suite::table(summary);
    format!("wavetank bench suite{quick}{partial}\n{}{table}{warnings}{saved}", machine(suite.plan()))
}

fn exit_code(suite: &Suite, summary: &SuiteSummary, stopped: bool) -> Exit {
    if summary.is_complete() {
        return Exit::DONE;
    }
    let folder = suite.folder().display();
    let (what, code) =
        if stopped { ("interrupted", Exit::from(INTERRUPTED)) } else { ("scenarios failed", Exit::FAILED) };
    output::complain(&format!("{what}: what is missing is run by: wavetank bench suite --resume {folder}"));
    code
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use wavetank::{BenchArgs, BenchPlan};

    use super::*;
    use crate::cmd::bench::flags::BenchFlags;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        flags: BenchFlags,
    }

    /// Broken by: a flag of a scenario that is not in its line, or a line that a shell would split otherwise.
    #[test]
    fn the_line_of_a_scenario_makes_its_plan() {
        let folder = tempfile::tempdir().unwrap();
        let usual = SuiteArgs {
            workloads: Some("all".to_owned()),
            cache_dir: Some(folder.path().to_owned()),
            storage_capacity_gb: Some(1.0),
            gpu_tier: Some(GpuTier::Sim),
            ..SuiteArgs::default()
        };
        let quick = SuiteArgs { quick: true, ..usual.clone() };
        let much = SuiteArgs {
            enable_rag: true,
            rag_num_docs: Some(7),
            trials: Some(TrialCount::Number(4)),
            seed: Some(5),
            io_threads: Some(2),
            io_depth: Some(9),
            cooldown: Some(1.5),
            drop_page_cache: true,
            ..usual.clone()
        };
        for args in [usual, quick, much] {
            let suite = SuitePlan::of(&args).unwrap();
            assert_eq!(suite.ready().count(), 13);
            for (step, ready) in suite.ready() {
                let line = ready.command.strip_prefix("wavetank ").unwrap();
                let typed: BenchArgs = Typed::parse_from(line.split(' ')).flags.into();
                assert_eq!(BenchPlan::of(&typed).unwrap(), ready.plan, "{}: {line}", step.name);
            }
        }
    }
}
