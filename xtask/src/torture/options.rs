//! What was asked for on the command line of `torture`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::scenarios;
use crate::Failure;

/// Without a word about time.
const MINUTES: u64 = 3;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// No scenario begins after so long; one round is made in any case.
    pub(super) time: Duration,
    /// Of the first round; none is drawn from the clock.
    pub(super) seed: Option<u64>,
    /// All scenarios when empty.
    pub(super) only: Vec<String>,
    pub(super) build: Build,
}

/// Which command is tortured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Build {
    /// With overflow checks and assertions.
    Dev,
    /// As users have it.
    Release,
}

impl Options {
    pub(super) fn of(args: &[String]) -> Result<Self, Failure> {
        let time = Duration::from_secs(MINUTES * 60);
        let mut options = Self { time, seed: None, only: Vec::new(), build: Build::Dev };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| Failure::Usage(format!("`{arg}` needs a value")));
            match arg.as_str() {
                "--minutes" => options.time = time_of(value()?, 60)?,
                "--hours" => options.time = time_of(value()?, 3600)?,
                "--seed" => options.seed = Some(number(value()?)?),
                "--only" => options.only.push(scenario(value()?)?),
                "--release" => options.build = Build::Release,
                _ => return Err(Failure::Usage(format!("unexpected argument `{arg}`"))),
            }
        }
        Ok(options)
    }

    /// The seed of the first round.
    pub(super) fn first_seed(&self) -> u64 {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
        self.seed.unwrap_or_else(clock)
    }
}

fn number(value: &str) -> Result<u64, Failure> {
    value.parse().map_err(|_| Failure::Usage(format!("`{value}` is no whole number")))
}

/// So many units of this many seconds.
fn time_of(value: &str, unit: u64) -> Result<Duration, Failure> {
    let seconds = number(value)?.checked_mul(unit).filter(|seconds| *seconds <= 30 * 24 * 3600);
    let seconds = seconds.ok_or_else(|| Failure::Usage(format!("`{value}` is more than 30 days")))?;
    Ok(Duration::from_secs(seconds))
}

fn scenario(name: &str) -> Result<String, Failure> {
    if scenarios::ALL.iter().any(|scenario| scenario.name == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = scenarios::ALL.iter().map(|scenario| scenario.name).collect();
    Err(Failure::Usage(format!("no scenario is called `{name}`; there are {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Options> {
        Options::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).ok()
    }

    #[test]
    fn options_are_read() {
        let usual =
            || Options { time: Duration::from_secs(180), seed: None, only: Vec::new(), build: Build::Dev };
        assert_eq!(read(""), Some(usual()));
        let only = vec!["plans".to_owned(), "crash".to_owned()];
        assert_eq!(
            read("--only plans --minutes 0 --seed 9 --only crash --release"),
            Some(Options { time: Duration::ZERO, seed: Some(9), only, build: Build::Release })
        );
        assert_eq!(read("--hours 2").map(|options| options.time), Some(Duration::from_secs(7200)));
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for line in ["--minutes", "--minutes x", "--only nothing", "--hours 1000", "now", "--seed -1"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
