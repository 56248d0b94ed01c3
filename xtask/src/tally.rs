//! Counts of passed and failed tests, read from what test programs print.

use std::fmt;
use std::ops::AddAssign;

/// How many checks passed and failed; shown as the last line of `ci`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

impl Tally {
    /// Reads a result line of the Rust test harness: `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    pub(crate) fn of_cargo_test(line: &str) -> Option<Self> {
        Self::of_parts(line.trim().strip_prefix("test result:")?, ';')
    }

    /// Reads the last line of the parity script: `parity: 3 passed, 0 failed`.
    pub(crate) fn of_parity(line: &str) -> Option<Self> {
        Self::of_parts(line.trim().strip_prefix("parity:")?, ',')
    }

    /// Reads the last line of pytest: `== 1 failed, 35 passed, 2 skipped in 4.20s ==`; what cannot be run is
    /// an error there, and a failure here.
    pub(crate) fn of_pytest(line: &str) -> Option<Self> {
        let text = line.trim().trim_matches('=').trim();
        let (counts, _) = text.split_once(" in ")?;
        let mut tally = None;
        for part in counts.split(", ") {
            let (count, what) = part.split_once(' ')?;
            let count: u64 = count.parse().ok()?;
            let tally = tally.get_or_insert_with(Self::default);
            match what {
                "passed" => tally.passed += count,
                "failed" | "error" | "errors" => tally.failed += count,
                _ => {}
            }
        }
        tally
    }

    /// Finds `N passed` and `M failed`, each at the end of its part.
    fn of_parts(text: &str, separator: char) -> Option<Self> {
        let count = |word: &str| {
            let mut parts = text.split(separator).map(|part| part.trim().rsplit(' '));
            parts.find_map(|mut words| (words.next() == Some(word)).then(|| words.next()?.parse().ok())?)
        };
        Some(Self { passed: count("passed")?, failed: count("failed")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_counted() {
        let good =
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(Tally::of_cargo_test(good), Some(Tally { passed: 12, failed: 0 }));
        let bad = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(Tally::of_cargo_test(bad), Some(Tally { passed: 3, failed: 2 }));
        let last = "======== 1 failed, 35 passed, 2 skipped, 1 error in 4.20s (0:01:10) ========";
        assert_eq!(Tally::of_pytest(last), Some(Tally { passed: 35, failed: 2 }));
        assert_eq!(Tally::of_pytest("===== 3 passed in 0.10s ====="), Some(Tally { passed: 3, failed: 0 }));
        assert_eq!(Tally::of_parity("parity: 20 passed, 1 failed"), Some(Tally { passed: 20, failed: 1 }));
    }

    #[test]
    fn other_lines_are_not() {
        assert_eq!(Tally::of_cargo_test("test tally::tests::x ... ok"), None);
        assert_eq!(Tally::of_cargo_test("running 3 tests"), None);
        assert_eq!(Tally::of_pytest("python/tests/test_replay.py ....  [ 12%]"), None);
        assert_eq!(Tally::of_pytest("======= test session starts ======="), None);
        assert_eq!(Tally::of_parity("ok   c1000_vllm_w1  0.1s"), None);
    }

    #[test]
    fn tallies_add_up_to_the_last_line() {
        let mut sum = Tally { passed: 1, failed: 2 };
        sum += Tally { passed: 10, failed: 20 };
        assert_eq!(sum.to_string(), "11 passed, 22 failed");
    }
}
