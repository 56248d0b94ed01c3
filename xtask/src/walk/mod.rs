//! `walk`: the way of a new user. The `console` and `bash` blocks of README and of the book's pages are run
//! by copy and paste on a fresh clone of the last commit, page by page and in order.
//!
//! A comment right before a block says what a fresh machine lacks, `<!-- walk: needs a GPU -->`, or what has
//! to be there first, `<!-- walk: first mkdir -p drive -->`.

mod block;
mod checkout;
mod page;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::Failure;
use checkout::Checkout;
use page::{Step, Task};

/// What a block may take unless `--seconds` says otherwise: the longest measures a device for half a minute.
const SECONDS: u64 = 300;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// Stands in for what `cargo build --release` would make.
    binary: Option<PathBuf>,
    /// Where the clone goes.
    folder: Option<PathBuf>,
    /// Only this page.
    page: Option<String>,
    seconds: u64,
}

impl Options {
    fn of(args: &[String]) -> Result<Self, Failure> {
        let mut options = Self { binary: None, folder: None, page: None, seconds: SECONDS };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| Failure::Usage(format!("`{arg}` needs a value")));
            match arg.as_str() {
                "--binary" => options.binary = Some(value()?.into()),
                "--folder" => options.folder = Some(value()?.into()),
                "--page" => options.page = Some(value()?.clone()),
                "--seconds" => {
                    let seconds = value()?.parse().ok().filter(|seconds| *seconds > 0);
                    let needs = || Failure::Usage("`--seconds` needs a whole number above 0".into());
                    options.seconds = seconds.ok_or_else(needs)?;
                }
                _ => return Err(Failure::Usage(format!("unexpected argument `{arg}`"))),
            }
        }
        Ok(options)
    }
}

/// What became of the blocks.
#[derive(Default)]
struct Outcome {
    run: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
}

/// The chore.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let options = Options::of(args)?;
    let checkout = Checkout::make(options.folder.clone(), options.binary.as_deref())?;
    let mut pages = page::pages(&checkout.tree)?;
    if let Some(wanted) = &options.page {
        pages.retain(|page| page == wanted);
        if pages.is_empty() {
            return Err(Failure::Usage(format!("`{wanted}` is not README.md or a page of docs/SUMMARY.md")));
        }
    }
    let limit = Duration::from_secs(options.seconds);
    let mut outcome = Outcome::default();
    for page in &pages {
        // What an earlier page left would hide what this one lacks.
        checkout.sweep()?;
        for step in page::steps(&checkout.tree, page)? {
            walk(&checkout, &step, limit, &mut outcome);
        }
    }
    told(&outcome)
}

fn walk(checkout: &Checkout, step: &Step, limit: Duration, outcome: &mut Outcome) {
    let script = match &step.task {
        Task::Run(script) => script,
        Task::Skip(reason) => {
            println!("{}: skipped, {reason}", step.place);
            return outcome.skipped.push(format!("{}: {reason}", step.place));
        }
    };
    outcome.run += 1;
    let start = Instant::now();
    match block::run(checkout, script, limit) {
        Ok(()) => println!("{}: ok, {:.1} s", step.place, start.elapsed().as_secs_f64()),
        Err(problem) => {
            println!("{}: FAILED, {problem}", step.place);
            outcome.failed.push(step.place.clone());
        }
    }
}

/// The summary; anything that failed is a failure of the chore.
fn told(outcome: &Outcome) -> Result<(), Failure> {
    let Outcome { run, failed, skipped } = outcome;
    println!("\nwalk: {run} blocks run, {} failed, {} skipped", failed.len(), skipped.len());
    for (what, places) in [("skipped", skipped), ("failed", failed)] {
        places.iter().for_each(|place| println!("  {what} {place}"));
    }
    match (failed.len(), run) {
        (0, 1..) => Ok(()),
        (0, 0) => Err(Failure::Failed("nothing was run".into())),
        _ => Err(Failure::Told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, Failure> {
        Options::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_taken_and_others_refused() {
        let Ok(taken) = options("--binary b --folder f --page README.md --seconds 9") else { panic!() };
        assert_eq!((taken.binary, taken.folder), (Some("b".into()), Some("f".into())));
        assert_eq!((taken.page.as_deref(), taken.seconds), (Some("README.md"), 9));
        for line in ["now", "--binary", "--seconds", "--seconds 0", "--seconds x"] {
            assert!(matches!(options(line), Err(Failure::Usage(_))), "{line}");
        }
    }

    #[test]
    fn what_failed_fails_and_so_does_a_walk_of_nothing() {
        assert!(told(&Outcome { run: 1, ..Outcome::default() }).is_ok());
        assert!(told(&Outcome::default()).is_err());
        assert!(told(&Outcome { run: 2, failed: vec!["a".into()], skipped: Vec::new() }).is_err());
    }
}
