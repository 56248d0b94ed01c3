//! `wavetank sweep`: many replays in one process, and shards of them made one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::{Args, Subcommand};
use wavetank::{Error, Result, Run, processors};
use wavetank_study::sweep::{
    self, Local, MOST_POINTS, Setting, Shard, Spec, Start, Sweep, Swept, check_output, points_beside,
    write_output,
};

use super::picture_flags::PictureFlags;
use crate::exit::Exit;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::output;
use crate::progress::PointProgress;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Flags {
    /// What to try: a TOML file (docs/sweep.md describes it).
    #[arg(value_name = "SPEC", required = true)]
    spec: Option<PathBuf>,
    /// Where rows go; .csv, .json and .parquet say the format. May be given again
    /// [default: SPEC.sweep.json].
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// How many points run at a time [default: the processors there are].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Run a part of the points: 1/3, 2/3 and 3/3 are the whole.
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Forget the points that an earlier run finished.
    #[arg(long)]
    fresh: bool,
    /// Run as many points as the file asks for.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pictures: PictureFlags,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Make one sweep of the .json outputs of its shards.
    Merge(MergeFlags),
}

#[derive(Args)]
struct MergeFlags {
    /// Outputs of all shards.
    #[arg(value_name = "JSON", required = true)]
    shards: Vec<PathBuf>,
    /// Where rows go; .csv, .json and .parquet say the format. May be given again.
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Vec<PathBuf>,
    #[command(flatten)]
    pictures: PictureFlags,
}

pub(crate) fn run(flags: Flags) -> Result<Exit> {
    match (&flags.verb, &flags.spec) {
        (Some(Verb::Merge(flags)), _) => merge(flags),
        (None, Some(spec)) => sweep(spec, &flags),
        (None, None) => Err(Error::usage("which sweep?").hint("name its TOML file")),
    }
}

fn sweep(path: &Path, flags: &Flags) -> Result<Exit> {
    let spec = Spec::read(path)?;
    let shard = Shard::asked(flags.shard.as_deref())?;
    if spec.size() > MOST_POINTS && !flags.yes {
        return Err(Error::usage(format!("{} points", spec.size()))
            .at(path.display().to_string())
            .hint("--yes runs them all; [sweep] mode = \"random\" with samples = 1000 tries some"));
    }
    let outputs = match flags.output.is_empty() {
        true => vec![PathBuf::from(format!("{}.sweep.json", path.file_stem().unwrap_or_default().display()))],
        false => flags.output.clone(),
    };
    let store = points_beside(&outputs[0]);
    let threads = flags.threads.map_or_else(processors, usize::from);
    flags.pictures.check("sweep")?;
    let sweep = Sweep::prepare(&spec, shard, threads)?;
    let others = [("the spec", path), ("the finished points", &store)];
    check_outputs(&sweep, &outputs, &others.into_iter().chain(flags.pictures.files()).collect::<Vec<_>>())?;
    let start = if flags.fresh { Start::Fresh } else { Start::Resume };
    let stop = Interrupt::leaving(format!("finished points are in {}", store.display()))?;
    let swept = {
        let progress = PointProgress::start(Arc::clone(&stop.loaded), "points");
        sweep.run(&Setting {
            threads,
            stop: &stop.raised,
            runner: &Local::default(),
            store: Some((&store, start)),
            onlooker: &progress,
        })?
    };
    let name = path.file_stem().unwrap_or_default().display().to_string();
    finish(&swept, &outputs, (&flags.pictures, name))?;
    if stop.raised.load(Ordering::Relaxed) {
        output::complain(&format!("run it again to go on: finished points are in {}", store.display()));
        return Ok(Exit::from(INTERRUPTED));
    }
    let found_nothing = swept.search().is_some_and(|search| search["answer"].is_null());
    Ok(Exit::from(u8::from(found_nothing)))
}

fn merge(flags: &MergeFlags) -> Result<Exit> {
    let inputs: Vec<(&str, &Path)> = flags.shards.iter().map(|path| ("a shard", path.as_path())).collect();
    flags.pictures.check("sweep")?;
    check_files(&flags.output, &inputs.into_iter().chain(flags.pictures.files()).collect::<Vec<_>>())?;
    let mut shards = Vec::new();
    for path in &flags.shards {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        let report = serde_json::from_str(&text).map_err(|error| {
            Error::input(format!("not JSON: {error}"))
                .at(name.clone())
                .hint("merge takes what `wavetank sweep -o X.json` wrote")
        })?;
        shards.push((name, report));
    }
    finish(&sweep::merge(&shards)?, &flags.output, (&flags.pictures, "merged".to_owned()))?;
    Ok(Exit::DONE)
}

/// Refuses outputs that have no format, that are each other, `others` or an input of the sweep, or that
/// cannot be written.
pub fn check_outputs(sweep: &Sweep<'_>, outputs: &[PathBuf], others: &[(&str, &Path)]) -> Result<()> {
    let inputs = sweep.inputs();
    let named = outputs.iter().map(|path| ("--output", path.as_path()));
    output::spare(
        inputs.iter().map(|(path, _)| path.as_path()),
        &named.chain(others.iter().copied()).collect::<Vec<_>>(),
    )?;
    check_files(outputs, others)
}

fn check_files(outputs: &[PathBuf], others: &[(&str, &Path)]) -> Result<()> {
    outputs.iter().try_for_each(|path| check_output(path))?;
    let files = outputs.iter().map(|path| ("--output", path.as_path()));
    output::keep_apart(&others.iter().copied().chain(files).collect::<Vec<_>>())?;
    outputs.iter().try_for_each(|path| output::try_out(path))
}

/// Writes rows to files, each in the format that its name says.
pub fn write_outputs(swept: &Swept, outputs: &[PathBuf]) -> Result<()> {
    outputs.iter().try_for_each(|path| output::write(path, |out| write_output(swept, path, out)))
}

/// Warnings, files, the table, pictures under a name.
fn finish(swept: &Swept, outputs: &[PathBuf], (pictures, name): (&PictureFlags, String)) -> Result<()> {
    for warning in &swept.warnings {
        output::complain(&format!("warning: {warning}"));
    }
    write_outputs(swept, outputs)?;
    let names: Vec<String> = outputs.iter().map(|path| path.display().to_string()).collect();
    output::say(&format!("{}Saved rows to: {}\n", swept.table(), names.join(", ")))?;
    pictures.write("wavetank sweep", &[Run { name, report: swept.report() }])
}
