//! `null`: nothing is held and everything is done at once, so that what is left is the harness itself.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::Entry;
use crate::backend::{Backend, Caps, Completion, Contents, Held, Location, NewEntry, Piece, Port, Seal};
use crate::buffer::{Buffer, Region};
use crate::immediate::Immediate;

pub(super) const ENTRY: Entry = Entry {
    name: "null",
    about: "holds nothing: measures the harness's own cost",
    caps: Caps { keeps_bytes: false, survives: false, inline: true, location: Location::None },
    options: &[("moves", "yes unless given; no: entries are booked and their bytes are not even made")],
    open: |site| {
        let moves = site.options.choice("moves", &[("yes", true), ("no", false)])?;
        Ok(Arc::new(Null { moves }))
    },
};

struct Null {
    moves: bool,
}
struct Nothing;
#[derive(Default)]
struct NullPort {
    done: Immediate,
}

impl Held for Nothing {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Backend for Null {
    fn port(self: Arc<Self>, _: &Arc<Region>, _: usize) -> io::Result<Box<dyn Port>> {
        Ok(Box::new(NullPort::default()))
    }

    fn contents(&self) -> Contents {
        if self.moves { Contents::Moved } else { Contents::Booked }
    }
}

impl Port for NullPort {
    fn create(&mut self, _: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        Ok(Arc::new(Nothing))
    }

    fn write(&mut self, _: &Arc<dyn Held>, piece: Piece, buffer: Buffer, _: Option<Seal>) {
        self.done.finish(piece, buffer, Instant::now());
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        Ok(held)
    }

    fn read(&mut self, _: &Arc<dyn Held>, piece: Piece, buffer: Buffer) {
        self.done.finish(piece, buffer, Instant::now());
    }

    fn remove(&mut self, _: Arc<dyn Held>) -> io::Result<()> {
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reap(&mut self, _: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        self.done.take(done);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.done.len()
    }

    fn is_inline(&self) -> bool {
        true
    }
}
