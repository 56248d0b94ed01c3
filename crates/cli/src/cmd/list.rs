//! `wavetank list`: every choice there is.

use std::process::ExitCode;

use clap::Args;
use wavetank::Result;
use wavetank::catalog::{self, Kind};

use crate::output;

#[derive(Args)]
pub(crate) struct Flags {
    /// One kind only: backends, engine-args, engines, eviction, formats, gpus, models, profiles,
    /// queues, router-args, routers, sglang-args, timing or wrappers.
    kind: Option<String>,
    /// Say what each choice does.
    #[arg(short, long)]
    verbose: bool,
}

pub(crate) fn run(flags: &Flags) -> Result<ExitCode> {
    let kinds: Vec<&Kind> = match &flags.kind {
        Some(name) => vec![catalog::kind(name)?],
        None => catalog::KINDS.iter().collect(),
    };
    let describe = if flags.verbose { described } else { named };
    let text: Vec<String> = kinds.into_iter().map(describe).collect();
    output::say(&text.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn named(kind: &Kind) -> String {
    let names: String = kind.rows().iter().map(|row| format!("  {}\n", row.name)).collect();
    format!("{} ({})\n{names}", kind.name, kind.about)
}

fn described(kind: &Kind) -> String {
    let rows = kind.rows();
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let lines: String = rows.iter().map(|row| format!("  {:width$}  {}\n", row.name, row.about)).collect();
    format!("{} ({})\n{lines}", kind.name, kind.about)
}
