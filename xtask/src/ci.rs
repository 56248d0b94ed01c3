//! `ci`: every check of a change, in order, up to the first failure. The last line is `N passed, M failed`.

use std::process::Command;
use std::time::Instant;

use crate::process::{self, cargo};
use crate::tally::Tally;
use crate::{Failure, fuzz, no_arguments, parity, peers, python, supply, tidy, torture};

/// One check. It adds the tests it ran to the tally.
struct Step {
    name: &'static str,
    run: fn(&mut Tally) -> Result<(), String>,
}

const STEPS: &[Step] = &[
    Step { name: "format", run: |_| process::run(&mut cargo(&["fmt", "--all", "--check"])) },
    Step { name: "clippy", run: |_| process::run(&mut clippy()) },
    Step { name: "docs", run: |_| process::run(&mut docs()) },
    Step { name: "tidy", run: |_| tidy::check_repository() },
    Step { name: "supply", run: |_| supply::at_hand() },
    Step { name: "peers", run: |_| peers::install() },
    Step { name: "tests", run: tests },
    Step { name: "python", run: python::tests },
    Step { name: "fuzz", run: |_| fuzz::short() },
    Step { name: "torture", run: |_| torture::short() },
    Step { name: "parity", run: parity::run },
];

/// Runs the steps. The tally comes last even after a failure, and a red run never shows zero failures.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    no_arguments(args)?;
    let (tally, result) = run_steps(STEPS);
    if let Err(problem) = &result {
        println!("\n{problem}");
    }
    println!("{tally}");
    result.map_err(|_| Failure::Told)
}

fn run_steps(steps: &[Step]) -> (Tally, Result<(), String>) {
    let mut tally = Tally::default();
    for step in steps {
        println!("\n== {} ==", step.name);
        let start = Instant::now();
        let result = (step.run)(&mut tally);
        println!("== {}: {:.1} s ==", step.name, start.elapsed().as_secs_f64());
        if let Err(problem) = result {
            tally.failed = tally.failed.max(1);
            return (tally, Err(format!("step `{}` failed: {problem}", step.name)));
        }
    }
    (tally, Ok(()))
}

fn clippy() -> Command {
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn docs() -> Command {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// All of them, also behind a crate that fails, so that a run tells everything that is red.
fn tests(tally: &mut Tally) -> Result<(), String> {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    process::run_seen(peers::require(&mut command)?, |line| {
        if let Some(counts) = Tally::of_cargo_test(line) {
            *tally += counts;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_pass(tally: &mut Tally) -> Result<(), String> {
        *tally += Tally { passed: 2, failed: 0 };
        Ok(())
    }

    #[test]
    fn tallies_of_all_steps_are_summed() {
        let steps = [Step { name: "a", run: two_pass }, Step { name: "b", run: two_pass }];
        assert_eq!(run_steps(&steps), (Tally { passed: 4, failed: 0 }, Ok(())));
    }

    #[test]
    fn the_first_failure_stops_the_run_and_counts() {
        let fails = Step { name: "lint", run: |_| Err("no".into()) };
        let steps = [Step { name: "a", run: two_pass }, fails, Step { name: "b", run: two_pass }];
        let expected = (Tally { passed: 2, failed: 1 }, Err("step `lint` failed: no".into()));
        assert_eq!(run_steps(&steps), expected);
    }

    #[test]
    fn counted_failures_are_not_counted_again() {
        let fails = |tally: &mut Tally| {
            *tally += Tally { passed: 0, failed: 3 };
            Err("no".into())
        };
        assert_eq!(run_steps(&[Step { name: "tests", run: fails }]).0, Tally { passed: 0, failed: 3 });
    }
}
