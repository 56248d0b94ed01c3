//! Pictures of runs: reports as they were written, to one page, to plots and to the points behind them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wavetank_model::{Error, Result};
use wavetank_report::page::{self, Page, Run};
use wavetank_report::render::{html, plots, points_csv};
use wavetank_trace::Output;

use crate::whole::{cannot_write, make_folder, write_whole};

/// What a suite leaves in its folder.
const SUITE_REPORT: &str = "summary.json";

/// What plots are written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlotFormat {
    /// Lines and letters, which scale.
    #[default]
    Svg,
    /// Pixels.
    Png,
    /// Either.
    Both,
}

/// Where pictures of runs go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pictures {
    /// A page.
    pub html: Option<PathBuf>,
    /// A folder of plots.
    pub plots: Option<PathBuf>,
    /// What they are written as.
    pub plot_format: PlotFormat,
    /// The points of every plot as CSV; `.gz` and `.zst` compress.
    pub timeseries: Option<PathBuf>,
}

impl Pictures {
    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.html.is_none() && self.plots.is_none() && self.timeseries.is_none()
    }

    /// Writes what is asked for; a line for each says where it is.
    pub fn write(&self, page: &Page) -> Result<Vec<String>> {
        let mut said = Vec::new();
        if let Some(path) = &self.html {
            write_whole(path, |out| html::write(page, out))?;
            said.push(format!("Saved page to: {}", path.display()));
        }
        if let Some(folder) = &self.plots {
            let count = self.write_plots(page, folder)?;
            said.push(format!("Saved {count} plots to: {}", folder.display()));
        }
        if let Some(path) = &self.timeseries {
            make_folder(path).map_err(|error| cannot_write(path, &error))?;
            let (mut out, draft) = Output::draft(path)?;
            let written = points_csv::write(page, &mut out).and_then(|()| out.finish());
            written.map_err(|error| cannot_write(path, &error))?;
            draft.keep()?;
            said.push(format!("Saved points to: {}", path.display()));
        }
        Ok(said)
    }

    /// How many files were written.
    fn write_plots(&self, page: &Page, folder: &Path) -> Result<usize> {
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
        let mut count = 0;
        let svg = matches!(self.plot_format, PlotFormat::Svg | PlotFormat::Both);
        let png = matches!(self.plot_format, PlotFormat::Png | PlotFormat::Both);
        for plot in plots::all(page) {
            if svg {
                write_whole(&folder.join(format!("{}.svg", plot.name)), |out| {
                    out.write_all(plot.svg().as_bytes())
                })?;
            }
            if png {
                write_whole(&folder.join(format!("{}.png", plot.name)), |out| out.write_all(&plot.png()))?;
            }
            count += usize::from(svg) + usize::from(png);
        }
        Ok(count)
    }
}

/// Says before a long run whether reports of this kind have a page after it.
pub fn check_kind(kind: &str) -> Result<()> {
    if page::ALL.iter().any(|entry| entry.name == kind) {
        return Ok(());
    }
    Err(Error::unsupported(format!("there are no pictures of reports of `{kind}` in this release"))
        .hint(format!("reports of these have some: {}", kinds())))
}

/// What has pictures.
fn kinds() -> String {
    page::ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

/// Reads reports: a file, the folder of a suite, or `NAME=FILE`. Those without a name are called as their
/// files are, with as much of the folder as tells them apart.
pub fn read_runs(words: &[String]) -> Result<Vec<Run>> {
    let given: Vec<(Option<&str>, PathBuf)> = words.iter().map(|word| split(word)).collect();
    let paths: Vec<&Path> = given.iter().map(|(_, path)| path.as_path()).collect();
    let mut taken = HashSet::new();
    for name in given.iter().filter_map(|(name, _)| *name) {
        if !taken.insert(name.to_owned()) {
            return Err(Error::usage("two runs have this name")
                .at(name)
                .hint("give each its own: NAME=FILE"));
        }
    }
    let mut runs = Vec::new();
    for (number, (name, path)) in given.iter().enumerate() {
        let report = read(path)?;
        if !page::ALL.iter().any(|entry| (entry.is)(&report)) {
            let error = Error::input("not a report that has a page").at(path.display().to_string());
            return Err(error.hint(format!("reports of these have one: {}", kinds())));
        }
        let name = name.map_or_else(|| distinct(number, &paths, &mut taken), str::to_owned);
        runs.push(Run { name, report });
    }
    Ok(runs)
}

/// Name and file. A file whose own name has the sign is itself.
fn split(word: &str) -> (Option<&str>, PathBuf) {
    match word.split_once('=') {
        Some((name, path)) if !name.is_empty() && !Path::new(word).exists() => (Some(name), path.into()),
        _ => (None, word.into()),
    }
}

/// The shortest end of a path that no other path has, with a number where all of it is not enough.
fn distinct(number: usize, paths: &[&Path], taken: &mut HashSet<String>) -> String {
    let parts = |path: &Path| -> Vec<String> {
        let bare = path.with_extension("");
        let words = bare.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
        words.collect()
    };
    let end = |path: &Path, length: usize| {
        let parts = parts(path);
        parts[parts.len().saturating_sub(length)..].join("/")
    };
    let mine = paths[number];
    let is_own = |length: &usize| {
        let others = paths.iter().enumerate().filter(|(other, _)| *other != number);
        others.map(|(_, path)| end(path, *length)).all(|other| other != end(mine, *length))
    };
    let longest = parts(mine).len().max(1);
    let name = end(mine, (1..=longest).find(is_own).unwrap_or(1));
    let numbered = (2..).map(|count| format!("{name} ({count})"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| taken.insert(name.clone())).unwrap_or_default()
}

fn read(path: &Path) -> Result<Value> {
    let suite = path.join(SUITE_REPORT);
    let file = if path.is_dir() { suite.as_path() } else { path };
    if path.is_dir() && !suite.is_file() {
        return Err(Error::input(format!("is a folder without {SUITE_REPORT}"))
            .at(path.display().to_string())
            .hint("name reports, or the folder of a suite"));
    }
    let text = fs::read(file).map_err(|error| Error::io(file, error))?;
    serde_json::from_slice(&text).map_err(|error| {
        let place = format!("{}:{}:{}", file.display(), error.line(), error.column());
        let what = error.to_string();
        let what = what.rsplit_once(" at line").map_or(what.as_str(), |(what, _)| what).to_owned();
        Error::input(format!("is not JSON: {what}"))
            .at(place)
            .hint("a report is what --report-json or --output wrote")
            .source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_called_as_briefly_as_tells_them_apart() {
        let names = |paths: &[&str]| {
            let paths: Vec<&Path> = paths.iter().map(Path::new).collect();
            let mut taken = HashSet::from(["mine".to_owned()]);
            (0..paths.len()).map(|number| distinct(number, &paths, &mut taken)).collect::<Vec<_>>()
        };
        assert_eq!(names(&["a.json", "x/b.json"]), ["a", "b"]);
        assert_eq!(names(&["x/r.json", "y/r.json", "y/s.json"]), ["x/r", "y/r", "s"]);
        assert_eq!(names(&["r.json", "r.json", "mine.json"]), ["r", "r (2)", "mine (2)"]);
    }

    /// Broken by: a run of an hour that ends with what could have been said before it.
    #[test]
    fn what_has_no_pictures_is_said_early() {
        assert!(page::ALL.iter().all(|entry| check_kind(entry.name).is_ok()));
        let said = check_kind("nothing").unwrap_err().to_string();
        assert!(said.contains("`nothing`") && said.contains("replay"), "{said}");
    }

    #[test]
    fn a_name_comes_before_its_file() {
        assert_eq!(split("kv=a/b.json"), (Some("kv"), PathBuf::from("a/b.json")));
        assert_eq!(split("a/b.json"), (None, PathBuf::from("a/b.json")));
        assert_eq!(split("=b"), (None, PathBuf::from("=b")));
    }
}
