//! Flags of pictures, shared by every verb whose report has some.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use wavetank::{Error, ErrorKind, Page, Pictures, PlotFormat, Result, Run, check_kind, page};

use crate::output;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Pictures")]
pub(crate) struct PictureFlags {
    /// Write a page with pictures: one file that opens without a network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    plots: PlotFlags,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Pictures")]
pub(super) struct PlotFlags {
    /// Write every picture into this folder.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// As what [default: svg].
    #[arg(long, value_name = "FORMAT", requires = "plots", value_enum)]
    plot_format: Option<Format>,
    /// Write the points of every picture as CSV (.gz and .zst compress).
    #[arg(long, value_name = "FILE")]
    timeseries: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines and letters, light or dark as its reader is
    Svg,
    /// Pixels, light
    Png,
    /// Either
    Both,
}

impl PlotFlags {
    /// With a page, or without.
    pub(super) fn pictures(&self, html: Option<&Path>) -> Pictures {
        let plot_format = match self.plot_format {
            None | Some(Format::Svg) => PlotFormat::Svg,
            Some(Format::Png) => PlotFormat::Png,
            Some(Format::Both) => PlotFormat::Both,
        };
        let (plots, timeseries) = (self.plots.clone(), self.timeseries.clone());
        Pictures { html: html.map(Path::to_owned), plots, plot_format, timeseries }
    }
}

impl PictureFlags {
    /// The same flags for a part of a run: `own` makes the names of its files.
    pub(super) fn with_names(mut self, own: impl Fn(&Path) -> PathBuf) -> Self {
        for path in [&mut self.html, &mut self.plots.plots, &mut self.plots.timeseries].into_iter().flatten()
        {
            *path = own(path);
        }
        self
    }

    /// The files that will be written.
    pub(crate) fn files(&self) -> Vec<(&'static str, &Path)> {
        named_files(self.html.as_deref().map(|path| ("--html", path)), &self.plots)
    }

    /// Refuses before a run what could not be written after it.
    pub(crate) fn check(&self, kind: &str) -> Result<()> {
        let Some((flag, _)) = self.files().first().copied() else { return Ok(()) };
        check_kind(kind).map_err(|error| error.within(flag))?;
        try_out(&self.files())
    }

    /// Writes what was asked for, and says where it is.
    pub(crate) fn write(&self, title: &str, runs: &[Run]) -> Result<()> {
        let pictures = self.plots.pictures(self.html.as_deref());
        if pictures.is_empty() { Ok(()) } else { save(&pictures, &page(title, runs)?) }
    }

    /// The same where standard output is data: what it says goes to standard error.
    pub(crate) fn write_beside_data(&self, title: &str, runs: &[Run]) -> Result<()> {
        let pictures = self.plots.pictures(self.html.as_deref());
        if !pictures.is_empty() {
            pictures.write(&page(title, runs)?)?.iter().for_each(|line| output::complain(line));
        }
        Ok(())
    }
}

/// A page and what is beside it, with the flags they were typed with.
pub(super) fn named_files<'f>(
    page: Option<(&'static str, &'f Path)>,
    plots: &'f PlotFlags,
) -> Vec<(&'static str, &'f Path)> {
    let beside = [("--plots", plots.plots.as_deref()), ("--timeseries", plots.timeseries.as_deref())];
    page.into_iter().chain(beside.into_iter().filter_map(|(flag, path)| Some((flag, path?)))).collect()
}

/// Finds out whether files can be written and a folder can be filled.
pub(super) fn try_out(files: &[(&str, &Path)]) -> Result<()> {
    for (flag, path) in files {
        if *flag != "--plots" {
            output::try_out(path)?;
        } else if path.exists() && !path.is_dir() {
            return Err(Error::new(ErrorKind::Io, "is a file, not a folder")
                .at(format!("{flag} {}", path.display()))
                .hint("plots go into a folder, which is made if it is not there"));
        } else {
            output::try_out(&path.join(".wavetank"))?;
        }
    }
    Ok(())
}

/// Writes pictures, and says where they are.
pub(super) fn save(pictures: &Pictures, page: &Page) -> Result<()> {
    let said = pictures.write(page)?;
    output::say(&said.iter().map(|line| format!("{line}\n")).collect::<String>())
}
