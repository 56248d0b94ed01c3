//! `wavetank profile tier`: measures a backend of the store and writes what was seen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use wavetank::Result;
use wavetank::profile::tier::{self, Drift, Extent, TierArgs, TierProbe};
use wavetank_study::sweep::Onlooker;

use crate::exit::Exit;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::progress::PointProgress;
use crate::{limits, output};

#[derive(Args)]
pub(super) struct TierFlags {
    /// A directory that is there, `memory`, `cuda` (or `cuda:1`), or
    /// s3://bucket/prefix. Entries are kept in a folder of their own in it, and
    /// nothing stays.
    #[arg(value_name = "PATH|memory|cuda|s3://...")]
    target: String,
    /// Write the profile; JSON if the name ends in .json, else TOML.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// An earlier profile: show what changed since.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// The backend of a directory: direct unless given, or buffered.
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// An option of the backend; see `wavetank list backends`.
    #[arg(long, value_name = "NAME=VALUE")]
    backend_option: Vec<String>,
    /// Bytes of an entry: 4KiB to 64MiB by factors of 4 unless given.
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    sizes: Option<Vec<String>>,
    /// Operations in flight, of all threads together: 1, 4, 16 and 64 unless
    /// given.
    #[arg(long, value_name = "DEPTHS", value_delimiter = ',')]
    depths: Option<Vec<u32>>,
    /// Leave out points with more bytes in flight; 128MiB unless given.
    #[arg(long, value_name = "SIZE")]
    max_in_flight: Option<String>,
    /// Threads that ask, each with a queue of its own; one for every four cores,
    /// 8 at most, unless given, as `bench` has.
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// How often all points are gone through, to see how they differ; 3 unless
    /// given.
    #[arg(long, value_name = "N")]
    passes: Option<u32>,
    /// How long each point is measured, in all passes together; 0.3 unless given.
    #[arg(long, value_name = "SECONDS")]
    seconds_per_point: Option<f64>,
    /// How long writing goes on to see whether it falls; 10 unless given, 0 for
    /// not at all.
    #[arg(long, value_name = "SECONDS")]
    sustained_seconds: Option<f64>,
    /// How much of each size is written before it is measured, 4,096 entries at
    /// most; 0.5, or twice what is in flight, unless given.
    #[arg(long, value_name = "GIB")]
    size_gb: Option<f64>,
    /// What chooses entries and contents; 42 unless given.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Few points and short ones, to look at.
    #[arg(long)]
    quick: bool,
}

impl TierFlags {
    fn args(&self) -> TierArgs {
        TierArgs {
            target: self.target.clone(),
            backend: self.backend.clone(),
            backend_options: self.backend_option.clone(),
            sizes: self.sizes.clone(),
            depths: self.depths.clone(),
            max_in_flight: self.max_in_flight.clone(),
            threads: self.threads,
            passes: self.passes,
            seconds_per_point: self.seconds_per_point,
            sustained_seconds: self.sustained_seconds,
            size_gb: self.size_gb,
            seed: self.seed,
            extent: if self.quick { Extent::Quick } else { Extent::Whole },
        }
    }

    /// Finds out before it is measured what could not be written or read after it.
    fn check_files(&self) -> Result<()> {
        let named = [("--against", &self.against), ("--output", &self.output)];
        let files: Vec<(&str, &Path)> =
            named.iter().filter_map(|(flag, path)| Some((*flag, path.as_deref()?))).collect();
        output::keep_apart(&files)?;
        self.output.as_deref().map_or(Ok(()), output::try_out)
    }
}

pub(super) fn run(flags: &TierFlags) -> Result<Exit> {
    let plan = TierProbe::new(&flags.args())?;
    flags.check_files()?;
    let before = flags.against.as_deref().map(tier::read).transpose()?;
    limits::raise_open_files();
    let stop = Interrupt::leaving(plan.leaves())?;
    let progress = PointProgress::start(Arc::clone(&stop.loaded), "points");
    progress.expect(plan.steps(), 0);
    let measured = tier::measure(&plan, &stop.raised, &mut || progress.done());
    drop(progress);
    let is_interrupted = stop.raised.load(Ordering::Relaxed);
    let measured = match measured {
        Err(error) if is_interrupted => {
            output::complain(&format!("error: {error}"));
            return Ok(INTERRUPTED.into());
        }
        measured => measured?,
    };
    measured.notes.iter().for_each(|note| output::complain(&format!("warning: {note}")));
    output::say(&tier::table(&measured.profile))?;
    if let Some(path) = &flags.output {
        let text = tier::file_text(&measured.profile, path)?;
        output::write(path, |out| out.write_all(text.as_bytes()))?;
        output::say(&format!("Saved profile to: {}\n", path.display()))?;
    }
    if let Some(before) = &before {
        output::say(&tier::drift_table(&Drift::between(before, &measured.profile)))?;
    }
    Ok(if measured.profile.partial { INTERRUPTED.into() } else { Exit::DONE })
}
