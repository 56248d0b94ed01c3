//! `wavetank bench check`: whether a package can be submitted.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use wavetank::{Checked, Result, check_package};

use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(super) struct CheckFlags {
    /// What `bench --mlperf DIR` wrote.
    #[arg(value_name = "DIR")]
    package: PathBuf,
}

pub(super) fn run(flags: &CheckFlags) -> Result<Exit> {
    let checked = check_package(&flags.package)?;
    output::say(&text(&checked))?;
    Ok(if checked.passed() { Exit::DONE } else { Exit::FAILED })
}

fn text(checked: &Checked) -> String {
    let mut text = String::new();
    let mut of = "";
    for finding in &checked.findings {
        if finding.of != of {
            of = &finding.of;
            let _ = writeln!(text, "{of}");
        }
        let (mark, what) = match &finding.result {
            Ok(what) => ('\u{2713}', what),
            Err(what) => ('\u{2717}', what),
        };
        let _ = writeln!(text, "  {mark} {}: {what}", finding.rule);
    }
    for note in &checked.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let failed = checked.findings.iter().filter(|finding| finding.result.is_err()).count();
    let verdict =
        if failed == 0 { "it can be submitted".to_owned() } else { format!("{failed} rules are broken") };
    let _ = writeln!(text, "{verdict}");
    text
}
