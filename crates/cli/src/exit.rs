//! How a command ended, as the number that a shell sees.

use crate::interrupt::INTERRUPTED;

/// An exit code that can be read again, which the standard library's cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// All is well.
    pub(crate) const DONE: Self = Self(0);
    /// A check failed.
    pub(crate) const FAILED: Self = Self(1);
    /// It could not run.
    pub(crate) const REFUSED: Self = Self(2);

    /// Ctrl-C, or a request to terminate, as shells have it.
    pub(crate) const INTERRUPTED: Self = Self(INTERRUPTED);

    /// The number.
    pub(crate) fn code(self) -> u8 {
        self.0
    }
}

impl From<u8> for Exit {
    fn from(code: u8) -> Self {
        Self(code)
    }
}

/// Every code and what it means. `wavetank help exit-codes` and the man pages print this table.
pub(crate) const ALL: &[(Exit, &str)] = &[
    (Exit::DONE, "done; of serve and mock: ended as asked"),
    (
        Exit::FAILED,
        "a check failed: a bound of compare, validate or loop, --strict of bench, a scenario of bench suite, \
         a finding of trace lint or of bench check, a damaged recording, calls that differ, no fleet that \
         meets the SLA, a problem of doctor",
    ),
    (Exit::REFUSED, "could not run: wrong flags or input, or the system refused"),
    (Exit::INTERRUPTED, "interrupted (Ctrl-C, SIGTERM): what had happened is written and says it is partial"),
];
