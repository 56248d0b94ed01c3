//! `wavetank list`: every choice there is.

use clap::Args;
use wavetank::catalog::{self, Kind};
use wavetank::{Error, Result, memory_table};

use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(crate) struct Flags {
    /// One kind only: autoscale, autoscale-args, backends, calls, checks, engine-args, engines, eviction,
    /// exporters, formats, gpus, media, models, profiles, queues, results, router-args, routers, scenarios,
    /// sglang-args, timing or wrappers.
    kind: Option<String>,
    /// Say what each choice does.
    #[arg(short, long)]
    verbose: bool,
    /// With models: how much memory a context of so many tokens takes.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    context: Option<u64>,
}

pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    if let Some(tokens) = flags.context {
        if flags.kind.as_deref() != Some("models") {
            return Err(Error::usage("goes with models only")
                .at("--context")
                .hint("wavetank list models --context 8192"));
        }
        output::say(&memory_table(tokens))?;
        return Ok(Exit::DONE);
    }
    let kinds: Vec<&Kind> = match &flags.kind {
        Some(name) => vec![catalog::kind(name)?],
        None => catalog::KINDS.iter().collect(),
    };
    let describe = if flags.verbose { described } else { named };
    let text: Vec<String> = kinds.into_iter().map(describe).collect();
    output::say(&text.join("\n"))?;
    Ok(Exit::DONE)
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
