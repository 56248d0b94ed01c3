//! `wavetank trace stats`: what a request trace holds.

use clap::Args;
use wavetank::{Result, Run, TraceStats, trace_stats};

use super::files::watched;
use super::source_flags::SourceFlags;
use crate::cmd::picture_flags::PictureFlags;
use crate::exit::Exit;
use crate::output;

#[derive(Args, Debug)]
pub(super) struct StatsFlags {
    #[command(flatten)]
    source: SourceFlags,
    /// As JSON, with distributions and rates over time.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pictures: PictureFlags,
}

pub(super) fn run(flags: &StatsFlags) -> Result<Exit> {
    flags.source.keep_apart(&flags.pictures.files())?;
    flags.pictures.check("trace_stats")?;
    watched(|meter| trace_stats(&flags.source.args(meter)), |stats| show(flags, &stats))
}

fn show(flags: &StatsFlags, stats: &TraceStats) -> Result<Exit> {
    output::say(&if flags.json { format!("{:#}\n", stats.json()) } else { stats.text() })?;
    let runs = [Run { name: flags.source.name(), report: stats.json() }];
    match flags.json {
        true => flags.pictures.write_beside_data("wavetank trace stats", &runs)?,
        false => flags.pictures.write("wavetank trace stats", &runs)?,
    }
    Ok(Exit::DONE)
}
