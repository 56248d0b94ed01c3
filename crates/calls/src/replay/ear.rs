//! Between the player and who listens: without a listener it costs a branch.

use std::ops::ControlFlow;

use wavetank_model::{Fate, Nanos, Result};

use super::listen::{Act, Listener, Made};
use crate::engine::Engine;
use crate::note::Note;

/// The listener, and what it has not heard yet.
pub(super) struct Ear<'a> {
    listener: Option<&'a mut (dyn Listener + 'a)>,
    number: usize,
    at: Nanos,
    before: Vec<Note>,
    because: Vec<Note>,
    closed: bool,
}

/// A call, before what happened around it is known.
pub(super) struct Heard<'a> {
    pub(super) thread: Option<u32>,
    pub(super) act: Act<'a>,
    pub(super) fates: &'a [Fate],
    pub(super) took: Nanos,
}

impl<'a> Ear<'a> {
    pub(super) fn new(listener: Option<&'a mut (dyn Listener + 'a)>) -> Self {
        Self { listener, number: 0, at: Nanos::ZERO, before: vec![], because: vec![], closed: false }
    }

    /// The turn of a recorded call: what happened so far was in the background.
    pub(super) fn turn(&mut self, number: usize, at: Nanos, engine: &mut Engine) {
        if self.listener.is_some() {
            (self.number, self.at) = (number, at);
            engine.take_notes(&mut self.before);
        }
    }

    /// A call was made.
    pub(super) fn hear(&mut self, heard: &Heard<'_>, engine: &mut Engine) -> Result<()> {
        let Some(listener) = &mut self.listener else { return Ok(()) };
        engine.take_notes(&mut self.because);
        let &Heard { thread, act, fates, took } = heard;
        let (before, because) = (&self.before, &self.because);
        let (number, at, unnamed) = (self.number, self.at, engine.unnamed());
        let made = Made { number, at, thread, act, fates, took, unnamed, before, because };
        self.closed |= listener.made(&made)? == ControlFlow::Break(());
        self.before.clear();
        self.because.clear();
        Ok(())
    }

    /// Whether it wants no more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn end(&mut self, engine: &mut Engine) -> Result<()> {
        let Some(listener) = &mut self.listener else { return Ok(()) };
        engine.take_notes(&mut self.before);
        listener.ended(&self.before)
    }
}
