//! How far a trace was read, for whoever waits for it; and the wish to stop.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wavetank_model::{Error, Result};

/// Counts that a reader of a trace leaves for other threads; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    expected: AtomicU64,
    bytes: AtomicU64,
    requests: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Meter {
    /// One that asks readers to stop when `stop` is raised.
    pub fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        Self(Arc::new(Counts { stop, ..Counts::default() }))
    }

    /// More bytes will be read.
    pub(crate) fn expect(&self, bytes: u64) {
        self.0.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A request was dealt with; an error when it is time to stop.
    pub fn count(&self) -> Result<()> {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        match self.0.stop.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::input("interrupted before the end").hint("nothing was written")),
        }
    }

    /// Whether it was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Bytes that will be read in all, as far as that is known.
    pub fn expected(&self) -> u64 {
        self.0.expected.load(Ordering::Relaxed)
    }

    /// Bytes read, as they are stored.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Requests dealt with.
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn counting(&self, bytes: Box<dyn Read + Send>) -> Counting {
        Counting { bytes, meter: self.clone() }
    }
}

impl PartialEq for Meter {
    /// Whether they share their counts.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Meter {}

/// Bytes that are counted as they are read.
pub(crate) struct Counting {
    bytes: Box<dyn Read + Send>,
    meter: Meter,
}

impl Read for Counting {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.read(into)?;
        self.meter.0.bytes.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}
