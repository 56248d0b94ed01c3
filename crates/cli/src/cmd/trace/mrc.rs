//! `wavetank trace mrc`: hit ratio against capacity.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use wavetank::{CacheCurves, CacheRule, CurveArgs, Meter, Result, Run, Sample, cache_curves};

use super::files::watched;
use super::source_flags::SourceFlags;
use crate::cmd::picture_flags::PictureFlags;
use crate::exit::Exit;
use crate::output;

#[derive(Args, Debug)]
pub(super) struct MrcFlags {
    #[command(flatten)]
    source: SourceFlags,
    /// Eviction policies beside lru: rows of `wavetank list eviction`, or all [default: lru].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    policy: Vec<String>,
    /// Capacities in blocks, or in bytes for storage calls [default: chosen, with --points].
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    capacity: Vec<u64>,
    /// How many capacities are chosen, up to one that serves all there is to serve.
    #[arg(long, value_name = "N", default_value_t = 8, conflicts_with = "capacity",
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    points: u16,
    /// How much of the trace is looked at: 1 is all, 1/8 one block in eight [default: lru all as far as
    /// memory allows, other policies 1/8].
    #[arg(long, value_name = "PART")]
    sample: Option<Sample>,
    /// When a block that is there is served.
    #[arg(long, value_name = "RULE", value_enum, default_value_t = Rule::Prefix)]
    rule: Rule,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Write a line for each policy and capacity as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    pictures: PictureFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rule {
    /// If all earlier blocks of its prompt are there too
    Prefix,
    /// Always
    Each,
}

pub(super) fn run(flags: &MrcFlags) -> Result<Exit> {
    let csv = flags.csv.as_deref().map(|path: &Path| ("--csv", path));
    let outputs: Vec<_> = csv.into_iter().chain(flags.pictures.files()).collect();
    flags.source.keep_apart(&outputs)?;
    flags.pictures.check("trace_mrc")?;
    flags.csv.as_deref().map_or(Ok(()), output::try_out)?;
    watched(|meter| cache_curves(&asked(flags, meter)), |curves| show(flags, &curves))
}

fn asked(flags: &MrcFlags, meter: &Meter) -> CurveArgs {
    CurveArgs {
        trace: flags.source.args(meter),
        policies: flags.policy.clone(),
        capacities: flags.capacity.clone(),
        points: flags.points.into(),
        sample: flags.sample.unwrap_or_default(),
        rule: match flags.rule {
            Rule::Prefix => CacheRule::Prefix,
            Rule::Each => CacheRule::Each,
        },
    }
}

fn show(flags: &MrcFlags, curves: &CacheCurves) -> Result<Exit> {
    output::say(&if flags.json { format!("{:#}\n", curves.json()) } else { curves.text() })?;
    if let Some(path) = &flags.csv {
        output::write(path, |out| out.write_all(curves.csv().as_bytes()))?;
    }
    let runs = [Run { name: flags.source.name(), report: curves.json() }];
    match flags.json {
        true => flags.pictures.write_beside_data("wavetank trace mrc", &runs)?,
        false => flags.pictures.write("wavetank trace mrc", &runs)?,
    }
    Ok(Exit::DONE)
}
