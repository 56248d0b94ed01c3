//! Who hears of calls as they are made: a recorder, whoever moves bytes, whoever measures.

use std::ops::ControlFlow;

use wavetank_model::{Fate, KeyId, LayoutId, Nanos, Prefetch, Result};

use crate::note::Note;

/// A call as it is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act<'a> {
    /// Objects are looked up, loaded and held.
    Prefetch(&'a Prefetch),
    /// Objects begin to be written.
    Reserve {
        /// The objects.
        keys: &'a [KeyId],
        /// What each holds.
        layout: LayoutId,
    },
    /// Objects are written.
    FinishWrite(&'a [KeyId]),
    /// Objects begin to be read.
    Enter(&'a [KeyId]),
    /// Objects were read.
    Exit(&'a [KeyId]),
    /// Objects are given back, each so many times.
    Release(&'a [KeyId], u32),
    /// The same where no call of the recording does it: what its caller found beyond the recording.
    GiveBack(&'a [KeyId], u32),
}

/// A call that was made.
#[derive(Debug)]
pub struct Made<'a> {
    /// The place of the recorded call that it follows.
    pub number: usize,
    /// When.
    pub at: Nanos,
    /// By which caller.
    pub thread: Option<u32>,
    /// The call.
    pub act: Act<'a>,
    /// What became of each of its keys; none of [`Act::Exit`], unless the read had been refused: then which
    /// of them lost a lock.
    pub fates: &'a [Fate],
    /// How long it takes, where time is simulated: a prefetch as long as its loads, others no time.
    pub took: Nanos,
    /// Bytes of memory that objects took which had no name yet.
    pub unnamed: u64,
    /// What happened in the background since the call before.
    pub before: &'a [Note],
    /// What happened to objects because of the call.
    pub because: &'a [Note],
}

/// Hears of calls.
pub trait Listener {
    /// A call was made. Whoever wants no more of them breaks off.
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>>;
    /// What happened in the background after the last call.
    fn ended(&mut self, after: &[Note]) -> Result<()>;
}

impl<L: Listener + ?Sized> Listener for &mut L {
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>> {
        (**self).made(made)
    }

    fn ended(&mut self, after: &[Note]) -> Result<()> {
        (**self).ended(after)
    }
}

/// Somebody, or nobody.
impl<L: Listener> Listener for Option<L> {
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>> {
        self.as_mut().map_or(Ok(ControlFlow::Continue(())), |listener| listener.made(made))
    }

    fn ended(&mut self, after: &[Note]) -> Result<()> {
        self.as_mut().map_or(Ok(()), |listener| listener.ended(after))
    }
}

/// Two that listen, one after the other; the second does not hear of a call at which the first breaks off.
pub struct Both<A, B>(pub A, pub B);

impl<A: Listener, B: Listener> Listener for Both<A, B> {
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>> {
        match self.0.made(made)? {
            ControlFlow::Continue(()) => self.1.made(made),
            broken => Ok(broken),
        }
    }

    fn ended(&mut self, after: &[Note]) -> Result<()> {
        self.0.ended(after)?;
        self.1.ended(after)
    }
}
