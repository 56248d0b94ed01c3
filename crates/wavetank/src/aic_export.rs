//! A grid of step times through the user's own Python environment, exported once and kept.
//!
//! `aic_export.py` asks an installed AISimulate for the passes of a grid. Its output is checked by the reader
//! of `grid` before it is kept in the cache folder as `wavetank/aic/DIGEST.csv`; beside it a JSON file says
//! which keys, interpreter and package it came from. While that package is installed no process is started
//! again; an upgrade replaces the package's metadata file, and with it the grid.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wavetank_sim::timing::TimingConfig;

const SCRIPT: &str = include_str!("aic_export.py");
/// An export takes seconds; importing a package from a cold network disk may take a minute.
const LIMIT: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(10);
/// Lines of standard error that are shown.
const SHOWN: usize = 12;

/// Where grids come from and where they are kept.
pub(crate) struct Exporter {
    /// The interpreter; none where there is none.
    python: Option<PathBuf>,
    /// The folder of kept grids; none where there is no home.
    cache: Option<PathBuf>,
    limit: Duration,
}

/// A grid on disk.
#[derive(Debug, PartialEq)]
pub(crate) struct Exported {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
}

/// What the script says about its grid.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Origin {
    /// The package and its version.
    pub(crate) package: String,
    /// The file that an upgrade of the package replaces.
    metadata: PathBuf,
    /// The engine whose kernels were measured, and its version.
    pub(crate) engine: String,
}

/// What is kept beside a grid.
#[derive(Deserialize, Serialize)]
struct Record {
    keys: Map<String, Value>,
    python: PathBuf,
    /// Name of the grid's file.
    grid: String,
    origin: Origin,
    /// What the package said on standard error.
    said: String,
}

impl Exporter {
    /// `WAVETANK_PYTHON`, else `python3` on `PATH`; `XDG_CACHE_HOME`, else `.cache` at home.
    pub(crate) fn of_environment() -> Self {
        let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let python = given("WAVETANK_PYTHON").unwrap_or_else(|| "python3".into());
        let folder = given("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| given("HOME").map(|home| Path::new(&home).join(".cache")));
        Self {
            python: on_path(&python, given("PATH")),
            cache: folder.map(|folder| folder.join("wavetank").join("aic")),
            limit: LIMIT,
        }
    }

    /// One of a machine without Python.
    #[cfg(test)]
    pub(crate) fn absent() -> Self {
        Self { python: None, cache: None, limit: LIMIT }
    }

    /// The grid of `keys`, from the cache or exported now; an error is a sentence.
    pub(crate) fn grid(&self, keys: &Map<String, Value>) -> Result<Exported, String> {
        let python = self.python.as_deref().ok_or("there is no python3 on PATH and no WAVETANK_PYTHON")?;
        let cache = self.cache.as_deref().ok_or("there is no folder to keep it: set XDG_CACHE_HOME")?;
        let asked = Value::Object(keys.clone()).to_string();
        let record = cache.join(digest(&[SCRIPT, &asked, &python.to_string_lossy()]) + ".json");
        if let Some(kept) = kept(&record, keys, python) {
            return Ok(kept);
        }
        let place = Workplace::new(cache).map_err(|error| unkept(cache, &error))?;
        let said = self.run(python, &asked, &place)?;
        let (origin, csv) = parsed(&place).map_err(|why| format!("{}: {why}", python.display()))?;
        let grid = digest(&[SCRIPT, &asked, &origin.package]) + ".csv";
        let path = cache.join(&grid);
        let entry = Record { keys: keys.clone(), python: python.to_owned(), grid, origin, said };
        place
            .keep("grid.csv", &csv, &path)
            .and_then(|()| place.keep("record.json", &format!("{:#}\n", serde_json::json!(entry)), &record))
            .map_err(|error| unkept(cache, &error))?;
        Ok(Exported { path, origin: entry.origin })
    }

    /// Runs the script to its end; its standard error on success.
    fn run(&self, python: &Path, asked: &str, place: &Workplace) -> Result<String, String> {
        let files = || Ok((File::create(place.0.join("stdout"))?, File::create(place.0.join("stderr"))?));
        let (stdout, stderr) = files().map_err(|error: io::Error| unkept(&place.0, &error))?;
        let status = self
            .finish(
                Command::new(python)
                    .arg(place.0.join("aic_export.py"))
                    .arg(asked)
                    .stdin(Stdio::null())
                    .stdout(stdout)
                    .stderr(stderr),
            )
            .map_err(|error| format!("{} cannot be run: {error}", python.display()))?;
        let said = fs::read(place.0.join("stderr")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        match status {
            Some(status) if status.success() => Ok(said),
            Some(status) => Err(format!("{} failed ({status}): {}", python.display(), tail(&said))),
            None => Err(format!(
                "{} was ended after {} s: {}",
                python.display(),
                self.limit.as_secs_f64(),
                tail(&said)
            )),
        }
    }

    /// Waits for the end; none where the time ran out.
    fn finish(&self, command: &mut Command) -> io::Result<Option<ExitStatus>> {
        let mut child = command.spawn()?;
        let started = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if started.elapsed() >= self.limit {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            thread::sleep(PAUSE);
        }
    }
}

/// `program` as a file; a name without a folder is looked for on `path`.
fn on_path(program: &OsString, path: Option<OsString>) -> Option<PathBuf> {
    let named = Path::new(program);
    if named.components().count() > 1 {
        return Some(named.to_owned());
    }
    std::env::split_paths(&path?).map(|folder| folder.join(named)).find(|file| file.is_file())
}

/// The grid that `record` speaks of, while the package it came from is there.
fn kept(record: &Path, keys: &Map<String, Value>, python: &Path) -> Option<Exported> {
    let Record { keys: of, python: with, grid, origin, .. } =
        serde_json::from_str(&fs::read_to_string(record).ok()?).ok()?;
    let path = record.with_file_name(grid);
    let holds = of == *keys && with == python && origin.metadata.is_file() && grid_of(&path).build().is_ok();
    holds.then_some(Exported { path, origin })
}

/// The timing model of a file.
pub(crate) fn grid_of(path: &Path) -> TimingConfig {
    let path = Value::from(path.to_string_lossy());
    TimingConfig { name: "grid".to_owned(), parameters: Map::from_iter([("path".to_owned(), path)]) }
}

/// What the script printed: a line of JSON, then a CSV that the reader takes.
fn parsed(place: &Workplace) -> Result<(Origin, String), String> {
    let printed = fs::read_to_string(place.0.join("stdout")).map_err(|error| error.to_string())?;
    let (first, csv) = printed.split_once('\n').unwrap_or((&printed, ""));
    let origin = serde_json::from_str(first).map_err(|error| format!("printed no grid: {error}"))?;
    let checked = place.0.join("checked.csv");
    fs::write(&checked, csv).map_err(|error| error.to_string())?;
    grid_of(&checked).build().map_err(|error| {
        let place = checked.display().to_string();
        format!("printed a wrong grid: {}", error.to_string().replace(&place, "line").replace('\n', "; "))
    })?;
    Ok((origin, csv.to_owned()))
}

fn unkept(folder: &Path, error: &io::Error) -> String {
    format!("{} cannot be written: {error}; XDG_CACHE_HOME names another folder", folder.display())
}

/// The last lines of `text`.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n  ")
}

/// FNV-1a of 64 bits: short names; what they stand for is compared in full.
fn digest(parts: &[&str]) -> String {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// A folder of one export, inside the cache so that its files can be renamed into place.
struct Workplace(PathBuf);

impl Workplace {
    fn new(cache: &Path) -> io::Result<Self> {
        static EXPORTS: AtomicU32 = AtomicU32::new(0);
        let number = EXPORTS.fetch_add(1, Ordering::Relaxed);
        let folder = cache.join(format!(".export-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let place = Self(folder);
        fs::write(place.0.join("aic_export.py"), SCRIPT)?;
        Ok(place)
    }

    /// Writes `text` under `name` and moves it to `path` in one step.
    fn keep(&self, name: &str, text: &str, path: &Path) -> io::Result<()> {
        let file = self.0.join(name);
        fs::write(&file, text)?;
        fs::rename(file, path)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // What is left is a hidden folder of some kilobytes.
        drop(fs::remove_dir_all(&self.0));
    }
}

#[cfg(test)]
mod tests;
