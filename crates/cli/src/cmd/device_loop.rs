//! `wavetank loop`: a device is measured, serving is simulated with it, the simulated I/O is played on it,
//! and the difference is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use wavetank::profile::tier::{self, Extent, TierArgs, TierProbe};
use wavetank::{
    DevicePlan, Error, IoOperation, Keep, Observer, Plan, PlayedIo, ReplayArgs, Replayed, Result, Run,
    TierIo, Watch, replay,
};
use wavetank_model::{Nanos, ServeEvent, Sink, TierProfile};
use wavetank_report::render;
use wavetank_study::device_loop::{Closed, Residual};
use wavetank_study::sweep::Onlooker;

use super::picture_flags::PictureFlags;
use super::replay_flags::ReplayFlags;
use crate::exit::Exit;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::progress::{PointProgress, Progress, StepProgress};
use crate::{limits, output};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Flags {
    /// The device: a directory on it, `memory`, `cuda` (or `cuda:1`), or s3://bucket/prefix.
    #[arg(value_name = "PATH|memory|cuda|s3://...")]
    target: String,
    #[command(flatten)]
    what: ReplayFlags,
    /// How much of the device is the tier, which all workers share; like 200GiB.
    #[arg(long, value_name = "SIZE", help_heading = "Loop")]
    capacity: String,
    /// A profile of the device that was taken before (wavetank profile tier), instead of a new one.
    #[arg(long, value_name = "FILE", help_heading = "Loop")]
    profile: Option<PathBuf>,
    /// The backend of a directory: direct unless given, or buffered.
    #[arg(long, value_name = "NAME", help_heading = "Loop")]
    backend: Option<String>,
    /// Measure few points and short ones.
    #[arg(long, help_heading = "Loop", conflicts_with = "profile")]
    quick: bool,
    /// Play the I/O of so many simulated seconds [default: 60].
    #[arg(long, value_name = "SECONDS", help_heading = "Loop")]
    play_seconds: Option<f64>,
    /// Exit with 1 if the mean or the P95 of reads or writes is off by more.
    #[arg(long, value_name = "PERCENT", help_heading = "Loop")]
    tolerance: Option<f64>,
    /// Where the report goes; the profile and the simulated I/O, as a trace of calls, go beside it.
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    report_json: Option<PathBuf>,
    #[command(flatten)]
    pictures: PictureFlags,
}

/// Where everything goes.
struct Files {
    report: PathBuf,
    profile: Option<PathBuf>,
    io: PathBuf,
}

pub(crate) fn run(flags: Flags) -> Result<Exit> {
    let probe = TierProbe::new(&TierArgs {
        target: flags.target.clone(),
        backend: flags.backend.clone(),
        extent: if flags.quick { Extent::Quick } else { Extent::Whole },
        ..TierArgs::default()
    })?;
    // A plan may look at how standard input begins, and wait for it.
    let stop = Interrupt::leaving(probe.leaves())?;
    let play_for = seconds(flags.play_seconds)?;
    let tolerance = percent(flags.tolerance)?;
    let typed: ReplayArgs = flags.what.into();
    let device = DevicePlan::of(&typed, &flags.capacity)?;
    let (number, room) = (device.tier, device.room_bytes());
    let files = files(
        &flags.report_json,
        flags.profile.as_deref(),
        &flags.pictures,
        device.inputs().chain(typed.files()),
    )?;
    limits::raise_open_files();
    let profile = match &flags.profile {
        Some(path) => tier::read(path),
        None => measure(&probe, &stop),
    };
    if stop.raised.load(Ordering::Relaxed) {
        output::complain("interrupted while the device was measured: nothing was simulated");
        return Ok(INTERRUPTED.into());
    }
    let profile = profile?;
    if let Some(path) = &files.profile {
        let text = tier::file_text(&profile, path)?;
        output::write(path, |out| out.write_all(text.as_bytes()))?;
    }
    let (simulated, operations) = simulate(&device.measured(&profile)?, number, &stop)?;
    let (operations, left_out) = within(operations, play_for);
    if operations.is_empty() && stop.raised.load(Ordering::Relaxed) {
        output::complain("interrupted before anything was asked of the device: nothing was played");
        return Ok(INTERRUPTED.into());
    }
    if operations.is_empty() {
        return Err(Error::usage("the simulation asked nothing of the device").hint(
            "prompts that nothing is reused of, or a cache above it that holds everything, leave it idle; \
             fewer num_gpu_blocks or a longer trace make use of it",
        ));
    }
    IoOperation::write_all(&operations, &files.io)?;
    let played = play(&probe, room, &operations, &stop.raised)?;
    let closed = Closed {
        profile: &profile,
        caveats: &probe.caveats(&profile),
        simulated: &simulated,
        operations: &operations,
        left_out,
        played: &played,
    };
    let residual = Residual::of(&closed);
    tell(&closed, &residual, &files, (&flags.pictures, &flags.target))?;
    let failure = tolerance.and_then(|most| residual.failure(most));
    if let Some(failure) = &failure {
        output::complain(&format!("failed: {failure}"));
    }
    Ok(match played.interrupted {
        true => INTERRUPTED.into(),
        false => Exit::from(u8::from(failure.is_some())),
    })
}

fn seconds(typed: Option<f64>) -> Result<Nanos> {
    let seconds = typed.unwrap_or(60.0);
    match (0.001..=86_400.0).contains(&seconds) {
        true => Ok(Nanos::from_seconds(seconds)),
        false => Err(Error::usage("must be between 0.001 and 86400").at("--play-seconds")),
    }
}

fn percent(typed: Option<f64>) -> Result<Option<f64>> {
    match typed.is_none_or(|percent| percent.is_finite() && percent >= 0.0) {
        true => Ok(typed),
        false => Err(Error::usage("must be 0 or more").at("--tolerance")),
    }
}

/// Refuses files that are each other or that are read, before anything is measured.
fn files<'a>(
    typed: &Option<PathBuf>,
    profile: Option<&Path>,
    pictures: &PictureFlags,
    others: impl Iterator<Item = &'a Path>,
) -> Result<Files> {
    let report = output::report_path(typed.as_deref(), "wavetank_loop_report");
    let inputs = profile.map(|path| ("--profile", path));
    let profile = inputs.is_none().then(|| report.with_extension("profile.toml"));
    let io = report.with_extension("io.csv");
    let outputs = [("--report-json", report.as_path()), ("the simulated I/O", io.as_path())];
    let outputs = outputs.into_iter().chain(profile.as_deref().map(|path| ("the profile", path)));
    let outputs: Vec<_> = outputs.chain(pictures.files()).collect();
    output::keep_apart(&inputs.into_iter().chain(outputs.iter().copied()).collect::<Vec<_>>())?;
    output::spare(others, &outputs)?;
    pictures.check("loop")?;
    outputs.iter().try_for_each(|(_, path)| output::try_out(path))?;
    Ok(Files { report, profile, io })
}

fn measure(probe: &TierProbe, stop: &Interrupt) -> Result<TierProfile> {
    let progress = PointProgress::start(Arc::clone(&stop.loaded), "points");
    progress.expect(probe.steps(), 0);
    let measured = tier::measure(probe, &stop.raised, &mut || progress.done());
    drop(progress);
    let measured = measured?;
    measured.notes.iter().for_each(|note| output::complain(&format!("warning: {note}")));
    Ok(measured.profile)
}

/// The simulation, and what it asked of tier number `tier`.
fn simulate(plan: &Plan, tier: u8, stop: &Interrupt) -> Result<(Replayed, Vec<IoOperation>)> {
    let mut watcher = Watcher { shown: Progress::start(Arc::clone(&stop.loaded)), io: TierIo::of(tier) };
    let keep = Keep { records: false, pictures: false };
    let replayed = replay(plan, Observer { watch: &mut watcher, stop: &stop.raised, keep })?;
    Ok((replayed, watcher.io.finish()))
}

struct Watcher {
    shown: Progress,
    io: TierIo,
}

impl Watch for Watcher {
    fn expect(&mut self, requests: u64) {
        self.shown.expect(requests);
    }
}

impl Sink<ServeEvent<'_>> for Watcher {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.shown.record(event);
        self.io.record(event);
    }
}

/// Those of the first time, from the first of them on, and how many more there were.
fn within(mut operations: Vec<IoOperation>, time: Nanos) -> (Vec<IoOperation>, u64) {
    let first = operations.first().map_or(Nanos::ZERO, |it| it.at);
    let count = operations.partition_point(|it| it.at.since(first) <= time);
    let left_out = (operations.len() - count) as u64;
    operations.truncate(count);
    operations.iter_mut().for_each(|it| it.at = Nanos(it.at.since(first).0));
    (operations, left_out)
}

fn play(
    probe: &TierProbe,
    room_bytes: u64,
    operations: &[IoOperation],
    stop: &AtomicBool,
) -> Result<PlayedIo> {
    let mut progress = StepProgress::start(operations.len() as u64, "operations");
    let mut steps = operations.iter().map(|operation| {
        progress.advance();
        Ok(operation.step())
    });
    tier::play(probe, room_bytes, &mut steps, stop)
}

fn tell(
    closed: &Closed<'_>,
    residual: &Residual,
    files: &Files,
    (pictures, target): (&PictureFlags, &str),
) -> Result<()> {
    let report = residual.report(closed);
    for warning in residual.warnings(closed) {
        output::complain(&format!("warning: {warning}"));
    }
    output::write(&files.report, |out| render::json::write(&report, out))?;
    let left_out = match closed.left_out {
        0 => String::new(),
        more => format!(", the first of {}", closed.operations.len() as u64 + more),
    };
    output::say(&format!(
        "wavetank loop\n{}\nPlayed {} operations in {:.1} s{left_out}\nSaved simulated I/O to: {}\n\
         Saved full report to: {}\n",
        residual.table(),
        closed.operations.len(),
        closed.played.seconds,
        files.io.display(),
        files.report.display()
    ))?;
    pictures.write("wavetank loop", &[Run { name: target.to_owned(), report }])
}
