//! `wavetank trace lint`.

use clap::Args;
use serde_json::{Value, json};
use wavetank::{Error, Linted, Result, lint_trace};

use super::files::{self, InFlags};
use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(super) struct LintFlags {
    /// Files of one trace; FORMAT:FILE names a format, - is standard input.
    #[arg(value_name = "IN", required = true)]
    files: Vec<String>,
    #[command(flatten)]
    input: InFlags,
    /// Problems that are shown; all are counted.
    #[arg(long, value_name = "N", default_value_t = 100)]
    max: usize,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(flags: LintFlags) -> Result<Exit> {
    let LintFlags { files, input, max, json } = flags;
    let input = input.input(files);
    let mut shown = Vec::new();
    let mut said = Ok(());
    let work = |meter: &_| {
        let mut tell = |error: &Error| {
            if shown.len() < max && said.is_ok() {
                shown.push(as_json(error));
                said = if json { Ok(()) } else { output::say(&format!("{error}\n")) };
            }
        };
        lint_trace(&input, meter, &mut tell)
    };
    let mut linted = None;
    let code = files::watched(work, |found| {
        linted = Some(found);
        Ok(Exit::DONE)
    })?;
    said?;
    let Some(linted) = linted else { return Ok(code) };
    output::say(&if json { format!("{:#}\n", report(&linted, &shown)) } else { text(&linted, max) })?;
    Ok(if linted.problems == 0 { Exit::DONE } else { Exit::FAILED })
}

fn as_json(error: &Error) -> Value {
    json!({ "place": error.place(), "message": error.message(), "hint": error.advice() })
}

fn report(linted: &Linted, shown: &[Value]) -> Value {
    let Linted { requests, problems, sorts, skipped, notes } = linted;
    json!({
        "requests": requests, "problems": problems, "skipped": skipped, "sorts": sorts, "notes": notes,
        "shown": shown,
    })
}

fn text(linted: &Linted, max: usize) -> String {
    let Linted { requests, problems, sorts, notes, .. } = linted;
    let mut text: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
    if *problems > max as u64 {
        text += &format!("{} more problems are not shown (--max)\n", problems - max as u64);
    }
    let mut sorts: Vec<_> = sorts.iter().collect();
    sorts.sort_by_key(|(sort, count)| (std::cmp::Reverse(**count), sort.as_str()));
    for (sort, count) in sorts {
        text += &format!("{count:>10}  {sort}\n");
    }
    let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    text + &format!("{} right, {}\n", counted(*requests, "request"), counted(*problems, "problem"))
}
