//! How a command ended, as the number that a shell sees.

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
