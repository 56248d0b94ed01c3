//! A simulated run as traces: the same spans a server has, and slices that trace viewers draw.
//!
//! Both are written as requests end, so that only what is in flight is held.

mod life;
mod load;
mod perfetto;
mod spans;

use std::io::{self, Write};

use wavetank_model::{Nanos, ServeEvent, Sink};

use life::Lives;
use perfetto::Slices;
use spans::Spans;

/// Writes a simulated run to one or two places.
pub struct ReplayTrace<W: Write> {
    lives: Lives,
    spans: Option<Written<Spans<W>>>,
    slices: Option<Written<Slices<W>>>,
}

/// A writer, until it fails.
struct Written<T> {
    writer: T,
    failure: Option<io::Error>,
}

impl<T> Written<T> {
    fn new(writer: T) -> Self {
        Self { writer, failure: None }
    }

    fn write(&mut self, what: impl FnOnce(&mut T) -> io::Result<()>) {
        if self.failure.is_none() {
            self.failure = what(&mut self.writer).err();
        }
    }

    fn finish<W>(self, last: impl FnOnce(T) -> io::Result<W>) -> io::Result<W> {
        match self.failure {
            Some(error) => Err(error),
            None => last(self.writer),
        }
    }
}

/// Where each of both went, for who closes it.
pub struct Finished<W> {
    /// OTLP as JSON lines.
    pub spans: Option<io::Result<W>>,
    /// Trace events.
    pub slices: Option<io::Result<W>>,
}

impl<W: Write> ReplayTrace<W> {
    /// Spans as JSON lines of OTLP to `spans`, trace events to `slices`; ids follow from `seed`. Workers
    /// below `prefill_workers` only compute prompts.
    pub fn new(spans: Option<W>, slices: Option<W>, seed: u64, prefill_workers: u32) -> Self {
        Self {
            lives: Lives::default(),
            spans: spans.map(|out| Written::new(Spans::new(out, seed))),
            slices: slices.map(|out| Written::new(Slices::new(out, prefill_workers))),
        }
    }

    /// The same, which knows the tiers that requests load from by their names, from the fastest.
    #[must_use]
    pub fn naming(mut self, tiers: &[String]) -> Self {
        self.lives.name(tiers);
        self
    }

    /// The run is over at `end`: what is in flight ends unfinished.
    pub fn finish(mut self, end: Nanos) -> Finished<W> {
        for life in self.lives.rest(end) {
            self.spans.iter_mut().for_each(|spans| spans.write(|spans| spans.take(&life)));
            self.slices.iter_mut().for_each(|slices| slices.write(|slices| slices.take(&life)));
        }
        Finished {
            spans: self.spans.map(|spans| spans.finish(Spans::finish)),
            slices: self.slices.map(|slices| slices.finish(Slices::finish)),
        }
    }
}

impl<W: Write> Sink<ServeEvent<'_>> for ReplayTrace<W> {
    fn record(&mut self, event: &ServeEvent<'_>) {
        if let Some(slices) = &mut self.slices {
            slices.write(|slices| slices.see(event));
        }
        if let Some(life) = self.lives.record(event) {
            self.spans.iter_mut().for_each(|spans| spans.write(|spans| spans.take(&life)));
            self.slices.iter_mut().for_each(|slices| slices.write(|slices| slices.take(&life)));
        }
    }
}

#[cfg(test)]
mod tests;
