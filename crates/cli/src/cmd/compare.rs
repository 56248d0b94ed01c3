//! `wavetank compare`: two reports, or two sets of repeats, side by side.

use crate::exit::Exit;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use wavetank::{Error, Result};
use wavetank_report::compare::{Comparison, Condition, Side};
use wavetank_report::render::comparison::{self, Scope};

use crate::output;

#[derive(Args)]
pub(crate) struct Flags {
    /// A report, or a directory of reports of the same plan (repeats).
    before: PathBuf,
    /// The same, to compare with it.
    after: PathBuf,
    /// Exit with 1 if this holds: 'p99_ttft_ms > +5%' (relative), '> +3' (change), '> 500' (value).
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<String>,
    /// Every metric, not only the usual ones.
    #[arg(long)]
    all: bool,
    /// A Markdown table.
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let conditions: Vec<_> =
        flags.fail_if.iter().map(|text| Condition::parse(text)).collect::<Result<_>>()?;
    let (before, after) = (side(&flags.before)?, side(&flags.after)?);
    let compared = Comparison::of(&before, &after);
    let scope = if flags.all { Scope::All } else { Scope::Headline };
    let render = if flags.markdown { comparison::markdown } else { comparison::table };
    let mut failed = Vec::new();
    for (condition, text) in conditions.iter().zip(&flags.fail_if) {
        if condition.holds(&compared)? {
            failed.push(text);
        }
    }
    output::say(&render(&compared, [&before, &after], scope))?;
    for text in &failed {
        output::complain(&format!("failed: {text}"));
    }
    Ok(Exit::from(u8::from(!failed.is_empty())))
}

/// The reports under `path`.
fn side(path: &Path) -> Result<Side> {
    let io = |error| Error::io(path, error);
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(io)?;
        files = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        if files.is_empty() {
            return Err(Error::input("no .json file in it").at(path.display().to_string()));
        }
    }
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).map_err(|error| Error::io(file, error))?;
        Ok((file.display().to_string(), text))
    };
    let texts: Vec<_> = files.iter().map(read).collect::<Result<_>>()?;
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
    Side::of(&name, &texts)
}
