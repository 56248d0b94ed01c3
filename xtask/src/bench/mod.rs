//! `bench NAME`: what the release build costs on fixed cases, beside the tools it is compared with. A new
//! bench is one file and one row of [`BENCHES`].

mod calls;
mod cases;
mod fio;
mod kv;
mod machine;
pub(crate) mod measure;
mod mrc;
mod online;
mod outcome;
mod peer;
mod rate;
mod record;
mod replay;
mod requests;
mod residual;
mod router;
mod serve;
mod store;
mod suite;
mod sweep;
mod table;
mod tiers;
mod trace;

use crate::Failure;

/// Where inputs and reports of benches live, relative to the repository.
const FOLDER: &str = "target/bench";

/// Something to measure.
struct Bench {
    name: &'static str,
    measure: fn(&Options) -> Result<Page, String>,
}

/// What a bench found, as Markdown.
struct Page {
    /// What was done, and how to read the table.
    method: String,
    table: String,
}

const BENCHES: &[Bench] = &[
    Bench { name: "calls", measure: calls::measure },
    Bench { name: "kv", measure: kv::measure },
    Bench { name: "mrc", measure: mrc::measure },
    Bench { name: "online", measure: online::measure },
    Bench { name: "replay", measure: |options| cases::measure(&replay::SUITE, options) },
    Bench { name: "residual", measure: residual::measure },
    Bench { name: "router", measure: router::measure },
    Bench { name: "serve", measure: serve::measure },
    Bench { name: "store", measure: store::measure },
    Bench { name: "suite", measure: suite::measure },
    Bench { name: "sweep", measure: sweep::measure },
    Bench { name: "tiers", measure: |options| cases::measure(&tiers::SUITE, options) },
    Bench { name: "trace", measure: requests::measure },
];

/// What the user typed after the bench's name.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    reps: usize,
    peer: bool,
    record: bool,
}

/// The names of all benches, for the usage text.
pub(crate) fn names() -> String {
    BENCHES.iter().map(|bench| bench.name).collect::<Vec<_>>().join(", ")
}

pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let (name, flags) = args.split_first().ok_or_else(|| Failure::Usage("which bench?".into()))?;
    let bench = BENCHES.iter().find(|bench| bench.name == name);
    let bench = bench.ok_or_else(|| Failure::Usage(format!("unknown bench `{name}`")))?;
    let options = Options::parse(flags).map_err(Failure::Usage)?;
    let revision = machine::revision();
    let page = (bench.measure)(&options)?;
    print!("{}", page.table);
    if options.record {
        let file = record::write(bench.name, &page, &revision)?;
        eprintln!("recorded in {}", file.display());
    }
    Ok(())
}

impl Options {
    fn parse(flags: &[String]) -> Result<Self, String> {
        let mut options = Self { reps: 5, peer: false, record: false };
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            match flag.as_str() {
                "--peer" => options.peer = true,
                "--record" => options.record = true,
                "--reps" => options.reps = repetitions(flags.next())?,
                _ => return Err(format!("unknown option `{flag}`")),
            }
        }
        Ok(options)
    }
}

fn repetitions(value: Option<&String>) -> Result<usize, String> {
    let number = value.and_then(|value| value.parse().ok()).filter(|&reps| reps > 0);
    number.ok_or_else(|| "--reps takes a number from 1".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        assert_eq!(parse(""), Ok(Options { reps: 5, peer: false, record: false }));
        assert_eq!(parse("--record --reps 2 --peer"), Ok(Options { reps: 2, peer: true, record: true }));
    }

    #[test]
    fn wrong_options_are_refused() {
        for line in ["--reps", "--reps 0", "--reps x", "--pear", "now"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn every_bench_has_its_own_name() {
        assert!(
            BENCHES.iter().enumerate().all(|(at, b)| BENCHES[..at].iter().all(|other| other.name != b.name))
        );
    }
}
