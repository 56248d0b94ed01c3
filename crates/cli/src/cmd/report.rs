//! `wavetank report`: pictures of one or more runs, side by side.

use std::path::{Path, PathBuf};

use clap::Args;
use wavetank::{Error, Result, page, read_runs};

use super::picture_flags::{PlotFlags, named_files, save, try_out};
use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(crate) struct Flags {
    /// Reports of runs, or folders of suites, each as FILE or NAME=FILE.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// Write a page: one file that opens without a network.
    #[arg(short, long, value_name = "FILE", visible_alias = "html")]
    output: Option<PathBuf>,
    /// What the page is called [default: the runs].
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    #[command(flatten)]
    plots: PlotFlags,
}

pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let files = named_files(flags.output.as_deref().map(|path| ("--output", path)), &flags.plots);
    if files.is_empty() {
        return Err(Error::usage("nothing to write was asked for")
            .at("wavetank report")
            .hint("give -o report.html, --plots DIR or --timeseries FILE"));
    }
    let runs = read_runs(&flags.runs)?;
    for word in &flags.runs {
        let input = word.split_once('=').map_or(word.as_str(), |(_, path)| path);
        output::keep_apart(&[[("the run", Path::new(input))].as_slice(), &files].concat())?;
    }
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let title = flags.title.clone().unwrap_or_else(|| match names.as_slice() {
        [first, second, third, _, ..] => {
            format!("wavetank report: {first}, {second}, {third} and {} more", names.len() - 3)
        }
        few => format!("wavetank report: {}", few.join(", ")),
    });
    let page = page(&title, &runs)?;
    try_out(&files)?;
    save(&flags.plots.pictures(flags.output.as_deref()), &page)?;
    Ok(Exit::DONE)
}
