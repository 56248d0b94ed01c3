//! `wavetank compare`: two results, or two sets of repeats, side by side.

use std::path::PathBuf;

use clap::Args;
use wavetank::Result;
use wavetank_report::compare::{Comparison, Limits, Side, Verdict};
use wavetank_report::render::comparison::{self, Scope};

use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(crate) struct Flags {
    /// A report of replay or bench, or a result of vllm bench or AIPerf (`wavetank list results`); or a
    /// directory of repeats.
    before: PathBuf,
    /// The same, to compare with it.
    after: PathBuf,
    /// Exit with 1 if this holds: 'p99_ttft_ms > +5%' (relative), '> +3' (change), '> 500' (value).
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<String>,
    /// Exit with 1 if AFTER is off by more than so many percent of BEFORE in either direction: '5%' for
    /// requests and tokens per second and for mean, median and P99 of TTFT and TPOT, as far as both have
    /// them; 'p99_ttft_ms 10%' for one metric.
    #[arg(long, value_name = "[METRIC ]PERCENT")]
    within: Vec<String>,
    /// Every metric, not only the usual ones, and what one side lacks.
    #[arg(long)]
    all: bool,
    /// A Markdown table.
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let limits = Limits::parse(&flags.fail_if, &flags.within)?;
    let compared = Comparison::of(&Side::read(&flags.before)?, &Side::read(&flags.after)?)?;
    let judged = limits.judge(&compared)?;
    show(flags, &compared, &judged.verdict)?;
    let failed = comparison::failures(&judged);
    for text in &failed {
        output::complain(&format!("failed: {text}"));
    }
    Ok(Exit::from(u8::from(!failed.is_empty())))
}

fn show(flags: &Flags, compared: &Comparison, verdict: &Verdict) -> Result<()> {
    let scope = if flags.all { Scope::All } else { Scope::Headline };
    let render = if flags.markdown { comparison::markdown } else { comparison::table };
    output::say(&render(compared, scope))?;
    if verdict.judged.is_empty() { Ok(()) } else { output::say(&comparison::verdict(verdict)) }
}
