//! A sweep on a Ray cluster has the rows of the same sweep here, byte for byte, also when a worker is killed
//! half-way.

use std::fs;
use std::process::Command;

use crate::process::{self, target_dir};
use crate::{Failure, no_arguments, peers, python};

const PACKAGES: &[&str] = &["ray==2.60.0", "maturin==1.16.0"];
const CHECKS: &str = include_str!("ray.py");
/// Points that take long enough to be met at work.
const TRACE: &str = "examples/conversation.jsonl";

/// Installs Ray and a wheel of this tree, and sweeps.
pub(super) fn check(args: &[String]) -> Result<(), Failure> {
    no_arguments(args)?;
    let python = peers::python("ray", PACKAGES)?;
    python::install(&python, &python::wheel(&python, "dev")?)?;
    let folder = std::path::absolute(target_dir().join("interop/ray")).map_err(|e| e.to_string())?;
    // What an earlier check left would be taken for this one's.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let trace = fs::canonicalize(TRACE).map_err(|e| format!("{TRACE}: {e}"))?;
    let script = folder.join("checks.py");
    fs::write(&script, CHECKS).map_err(|e| format!("{}: {e}", script.display()))?;
    let mut checks = Command::new(&python);
    checks.arg(&script).arg(trace).arg(&folder);
    // Ray keeps a token at home, and workers must not find the sources of the package.
    checks.env("HOME", &folder).current_dir(&folder);
    Ok(process::run(&mut checks)?)
}
