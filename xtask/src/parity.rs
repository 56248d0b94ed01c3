//! The parity step of `ci`: `wavetank replay` against recorded reference runs, which live beside the checkout
//! in `../shared`.

use std::path::Path;
use std::process::Command;

use crate::process::{self, cargo};
use crate::tally::Tally;

const SCRIPT: &str = "../shared/tools/parity";

/// Builds the release binary and compares every recorded case.
pub(crate) fn run(tally: &mut Tally) -> Result<(), String> {
    if !Path::new(SCRIPT).exists() {
        println!("skipped: no {SCRIPT} beside the checkout");
        return Ok(());
    }
    process::run(&mut cargo(&["build", "--release"]))?;
    let mut script = Command::new("python3");
    script.arg(SCRIPT).arg("--bin").arg(process::release_binary());
    process::run_seen(&mut script, |line| {
        if let Some(counts) = Tally::of_parity(line) {
            *tally += counts;
        }
    })
}
