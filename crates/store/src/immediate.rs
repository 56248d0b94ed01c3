//! Completions of a port that is done with a piece before its call returns.

use std::time::Instant;

use crate::backend::{Completion, Piece};
use crate::buffer::Buffer;

/// What was done and not yet taken.
#[derive(Default)]
pub(crate) struct Immediate(Vec<Completion>);

impl Immediate {
    /// A piece that was begun at `submitted` is done.
    pub(crate) fn finish(&mut self, piece: Piece, buffer: Buffer, submitted: Instant) {
        let finished = Instant::now();
        self.0.push(Completion { token: piece.token, buffer, result: Ok(()), submitted, finished });
    }

    /// Takes what was done.
    pub(crate) fn take(&mut self, done: &mut Vec<Completion>) {
        done.append(&mut self.0);
    }

    /// How many were not taken.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
