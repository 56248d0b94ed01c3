//! The python step of `ci`: a wheel of this tree in an environment of its own, and the tests of the package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, cargo, target_dir};
use crate::tally::Tally;
use crate::{Failure, no_arguments, peers};

/// What builds the package, what tests it, and what its tables and reports are for.
const PACKAGES: &[&str] = &[
    "maturin==1.16.0",
    "pytest==9.2.0",
    "numpy==2.4.6",
    "pandas==3.1.1",
    "pyarrow==26.0.1",
    "polars==2.1.0",
    "mypy==2.4.1",
    "nbclient==0.11.0",
    "nbformat==5.11.1",
    "ipykernel==7.4.0",
];

/// The chore: only that step.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    no_arguments(args)?;
    process::run(&mut cargo(&["build"]))?;
    Ok(tests(&mut Tally::default())?)
}

/// Builds, installs and tests the package beside the command, which is there.
pub(crate) fn tests(tally: &mut Tally) -> Result<(), String> {
    let python = peers::python("python", PACKAGES)?;
    let wheel = wheel(&python, "dev")?;
    install(&python, &wheel)?;
    let absolute = |path: PathBuf| std::path::absolute(path).map_err(|error| error.to_string());
    let mut pytest = Command::new(&python);
    pytest.args(["-m", "pytest", "--color=no", "-p", "no:cacheprovider"]);
    pytest.env("PYTHONDONTWRITEBYTECODE", "1");
    pytest.env("WAVETANK_WHEEL", absolute(wheel)?);
    pytest.env("WAVETANK_BINARY", absolute(process::test_binary())?);
    process::run_seen(peers::require(&mut pytest)?, |line| {
        if let Some(counts) = Tally::of_pytest(line) {
            *tally += counts;
        }
    })
}

/// A wheel of this tree, built with one of cargo's profiles.
pub(crate) fn wheel(python: &Path, profile: &str) -> Result<PathBuf, String> {
    let folder = target_dir().join("wheels").join(profile);
    // An older version would be found beside it.
    let _ = fs::remove_dir_all(&folder);
    let mut maturin = Command::new(python);
    maturin
        .args(["-m", "maturin", "build", "--quiet", "--strip", "--profile", profile, "--out"])
        .arg(&folder);
    process::run(process::built_once(&mut maturin))?;
    let mut files = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let first = files.next().and_then(Result::ok).map(|file| file.path());
    first.ok_or_else(|| format!("{}: there is no wheel", folder.display()))
}

/// Puts a wheel into an environment, in the place of an older one.
pub(crate) fn install(python: &Path, wheel: &Path) -> Result<(), String> {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    process::run(pip.args(["--force-reinstall", "--no-deps"]).arg(wheel))
}
