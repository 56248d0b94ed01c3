//! Repository chores, run as `cargo xtask <command>`. The table [`COMMANDS`] lists them.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod bench;
mod book;
mod ci;
mod fences;
mod fuzz;
mod interop;
mod kernel_profiles;
mod links;
mod parity;
mod peers;
mod process;
mod profiles;
mod python;
mod release;
mod sanitize;
mod supply;
mod tally;
mod tidy;
mod torture;
mod walk;

use std::path::Path;
use std::process::ExitCode;

use process::cargo;

/// One chore and what it does.
struct Chore {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

/// Why a chore did not end well.
enum Failure {
    /// The command line is wrong: exit code 2, with the usage text.
    Usage(String),
    /// A step failed: exit code 1.
    Failed(String),
    /// A step failed and its output already says so: exit code 1.
    Told,
}

impl From<String> for Failure {
    fn from(problem: String) -> Self {
        Self::Failed(problem)
    }
}

const COMMANDS: &[Chore] = &[
    Chore { name: "ci", about: "every check of a change, in order, up to the first failure", run: ci::run },
    Chore { name: "tidy", about: "the layout and style rules that no other tool checks", run: tidy::run },
    Chore {
        name: "bless",
        about: "rewrite snapshots and the output that pages show, from this tree",
        run: bless,
    },
    Chore { name: "bench", about: "bench NAME [--reps N] [--peer] [--record]: measure", run: bench::run },
    Chore {
        name: "fuzz",
        about: "fuzz [TARGET] [--minutes N] [--seed N] [--guided]: broken input for readers and doors",
        run: fuzz::run,
    },
    Chore {
        name: "interop",
        about: "interop [aiperf | lmcache [DIR] | ray]: tools of others work with ours (6 GB)",
        run: interop::run,
    },
    Chore {
        name: "torture",
        about: "torture [--minutes N | --hours N] [--seed N] [--only NAME] [--release]: faults and load",
        run: torture::run,
    },
    Chore { name: "peers", about: "install the servers and launchers that tests work with", run: peers::run },
    Chore { name: "python", about: "the wheel, and the tests of the Python package", run: python::run },
    Chore {
        name: "supply",
        about: "licences, bans, sources, advisories, unused dependencies, and what is inside (SBOM)",
        run: supply::run,
    },
    Chore {
        name: "sanitize",
        about: "sanitize [address|thread|memcheck]: the tests of unsafe code, watched",
        run: sanitize::run,
    },
    Chore {
        name: "release",
        about: "release [--glibc 2.17] [--check]: the binary and what is inside; --check builds it twice",
        run: release::run,
    },
    Chore { name: "examples", about: "write examples/ again", run: examples },
    Chore { name: "profiles", about: "write the built-in timing profiles again", run: profiles::run },
    Chore {
        name: "book",
        about: "book [--install]: the pages of docs/ as a book, by mdBook",
        run: book::run,
    },
    Chore {
        name: "walk",
        about: "walk [--binary FILE] [--folder DIR] [--page FILE] [--seconds N]: run what pages show",
        run: walk::run,
    },
    Chore {
        name: "measure",
        about: "measure -- CMD...: cost of one command, as JSON",
        run: bench::measure::run,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(problem)) => {
            eprintln!("error: {problem}\n\n{}", usage());
            ExitCode::from(2)
        }
        Err(Failure::Failed(problem)) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
        Err(Failure::Told) => ExitCode::FAILURE,
    }
}

/// Finds the chore and runs it from the repository's root, so that every path is relative to it.
fn dispatch(args: &[String]) -> Result<(), Failure> {
    let (name, rest) = args.split_first().ok_or_else(|| Failure::Usage("no command".into()))?;
    let chore = COMMANDS.iter().find(|chore| chore.name == name);
    let chore = chore.ok_or_else(|| Failure::Usage(format!("unknown command `{name}`")))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::env::set_current_dir(&root).map_err(|e| format!("{}: {e}", root.display()))?;
    (chore.run)(rest)
}

fn usage() -> String {
    let rows: String = COMMANDS.iter().map(|c| format!("  {:<10}{}\n", c.name, c.about)).collect();
    let (tortures, benches) = (torture::lines(), bench::names());
    format!("usage: cargo xtask COMMAND\n\n{rows}\ntortures:\n{tortures}\nbenches: {benches}")
}

/// Refuses arguments where a chore takes none.
fn no_arguments(args: &[String]) -> Result<(), Failure> {
    match args.first() {
        None => Ok(()),
        Some(arg) => Err(Failure::Usage(format!("unexpected argument `{arg}`"))),
    }
}

fn bless(args: &[String]) -> Result<(), Failure> {
    no_arguments(args)?;
    let mut tests = cargo(&["test", "--workspace"]);
    Ok(process::run(tests.env("INSTA_UPDATE", "always").env("WAVETANK_BLESS", "1"))?)
}

fn examples(args: &[String]) -> Result<(), Failure> {
    no_arguments(args)?;
    let program = ["run", "--release", "-p", "wavetank-trace", "--example", "generate_examples"];
    Ok(process::run(&mut cargo(&program))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_wrong_command_line_is_a_usage_failure() {
        let lines = ["", "tdiy", "bless now", "examples now", "tidy now", "ci now", "bench", "bench nothing"];
        let more = ["fuzz --now", "fuzz --minutes", "interop a", "interop aiperf b", "walk now", "book now"];
        let others = ["torture now", "supply now", "sanitize now", "release now"];
        for line in lines.into_iter().chain(more).chain(others) {
            assert!(matches!(dispatch(&words(line)), Err(Failure::Usage(_))), "{line}");
        }
    }

    #[test]
    fn usage_names_every_command_and_bench() {
        let text = usage();
        assert!(COMMANDS.iter().all(|c| text.contains(&format!("  {:<10}{}", c.name, c.about))), "{text}");
        assert!(
            text.ends_with(
                "benches: calls, kv, mrc, online, replay, residual, router, serve, store, suite, sweep, \
                 tiers, trace"
            ),
            "{text}"
        );
    }
}
