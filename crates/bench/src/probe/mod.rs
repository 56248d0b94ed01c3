//! What a backend does by operation, size and queue depth, measured through a lane of a store that has it as
//! its only tier: what is measured is what a tier of it does.
//!
//! A point keeps as many operations of one size in flight as its queue is deep: when one ends the next is
//! asked for. Writing that goes on comes first, so that the points after it see a device in use.

mod course;
mod point;
mod set;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wavetank_cache::Rules;
use wavetank_cache::eviction::{self, Settings};
use wavetank_model::{Error, Result, Sustained, TierPoint};
use wavetank_store::backend::{Backend, Location};
use wavetank_store::backends::{self, Site};
use wavetank_store::buffer::PIECE;
use wavetank_store::{Store, Tier};

use self::set::WorkingSet;

/// What is measured, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbePlan {
    /// What holds the bytes.
    pub backend: String,
    /// Where; empty where there is nothing to say.
    pub location: String,
    /// Options of the backend.
    pub options: BTreeMap<String, String>,
    /// Bytes of an operation, smallest first.
    pub sizes: Vec<u64>,
    /// Operations in flight, fewest first.
    pub depths: Vec<u32>,
    /// Shares of reads.
    pub read_shares: Vec<f64>,
    /// How long a point is measured.
    pub seconds_per_point: f64,
    /// How long writing goes on; not at all when 0.
    pub sustained_seconds: f64,
    /// How much is written before anything is measured, at most.
    pub working_set_bytes: u64,
    /// Entries and contents follow from it.
    pub seed: u64,
}

/// Who watches a measurement, and may end it.
pub struct ProbeObserver<'a> {
    /// Raised to end it with what there is.
    pub stop: &'a AtomicBool,
    /// Told of every point when it was measured.
    pub measured: &'a mut dyn FnMut(&TierPoint),
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probed {
    /// Every point, in order.
    pub points: Vec<TierPoint>,
    /// What writing comes to when it goes on.
    pub sustained: Option<Sustained>,
    /// Whether it was ended early.
    pub partial: bool,
    /// What does not work here as it should, in words.
    pub notes: Vec<String>,
}

/// One point to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) read_share: f64,
    pub(crate) bytes: u64,
    pub(crate) depth: u32,
}

/// Writing that goes on is of entries about this long: a piece, which every device takes as one request.
const SUSTAINED_BYTES: u64 = PIECE as u64;

impl ProbePlan {
    /// How many points there are.
    pub fn points(&self) -> usize {
        self.sizes.len() * self.depths.len() * self.read_shares.len()
    }

    /// The least working set: a half of more entries than can be in flight to be read, and one to be written.
    pub fn least_bytes(&self) -> u64 {
        let (bytes, depth) = (self.largest(), u64::from(self.deepest()));
        bytes.saturating_mul(depth.saturating_add(1)).saturating_mul(2)
    }

    /// What a device has to have room for: the working set and what is in flight.
    pub fn room_bytes(&self) -> u64 {
        let in_flight = self.largest().saturating_mul(u64::from(self.deepest()) + 1);
        self.working_set_bytes.saturating_add(in_flight)
    }

    fn largest(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or_default()
    }

    fn deepest(&self) -> u32 {
        self.depths.iter().copied().max().unwrap_or_default()
    }

    fn sustained_load(&self) -> Option<Load> {
        let nearest = self.sizes.iter().copied().min_by_key(|bytes| bytes.abs_diff(SUSTAINED_BYTES))?;
        let load = Load { read_share: 0.0, bytes: nearest, depth: self.deepest() };
        (self.sustained_seconds > 0.0).then_some(load)
    }
}

/// Measures a backend. What it holds already is refused, what is written is removed whatever ends it.
pub fn probe(plan: &ProbePlan, observer: ProbeObserver<'_>) -> Result<Probed> {
    let caps = backends::backend(&plan.backend)?.caps;
    // Memory of a device is taken at once; elsewhere nothing is gained by a limit.
    let capacity_bytes = (caps.location == Location::Device).then(|| plan.room_bytes());
    let options = plan.options.clone().into();
    let site = Site { location: plan.location.clone(), capacity_bytes, options };
    probe_on(backends::open(&plan.backend, &site)?, plan, observer)
}

/// Measures this backend.
pub(crate) fn probe_on(
    backend: Arc<dyn Backend>,
    plan: &ProbePlan,
    observer: ProbeObserver<'_>,
) -> Result<Probed> {
    let eviction = (eviction::policy("lru")?.build)(&Settings::default())?;
    let tier = Tier { backend, capacity_bytes: None, eviction };
    let store = Store::open(vec![tier], Rules::default())?;
    if !store.is_empty() {
        let what = format!("{} entries are there already", store.len());
        return Err(Error::usage(what).at(plan.location.clone()).hint("name a place without any"));
    }
    let mut probe = Probe { store, plan, observer, done: Probed::default() };
    let result = probe.all();
    probe.done.notes = probe.store.notes();
    let cleared = probe.store.clear().and_then(|()| probe.store.trim());
    result?;
    cleared.map_err(|error| Error::usage(format!("cannot remove what was written: {error}")))?;
    Ok(probe.done)
}

struct Probe<'a, 'o> {
    store: Arc<Store>,
    plan: &'a ProbePlan,
    observer: ProbeObserver<'o>,
    done: Probed,
}

impl Probe<'_, '_> {
    fn all(&mut self) -> Result<()> {
        if let Some(load) = self.plan.sustained_load() {
            self.sustained(load)?;
        }
        for &bytes in &self.plan.sizes {
            self.size(bytes)?;
        }
        self.done.partial = self.is_stopped();
        Ok(())
    }

    fn sustained(&mut self, load: Load) -> Result<()> {
        let Some(mut set) = self.written(load.bytes)? else { return Ok(()) };
        let mut lane = self.lane(load)?;
        let seconds = self.plan.sustained_seconds;
        self.done.sustained = course::measure(&mut lane, &mut set, (load, seconds), self.observer.stop)?;
        Ok(())
    }

    /// Every point of one size; reads first, since writing changes what they find.
    fn size(&mut self, bytes: u64) -> Result<()> {
        let Some(mut set) = self.written(bytes)? else { return Ok(()) };
        for &read_share in &self.plan.read_shares {
            for &depth in &self.plan.depths {
                let load = Load { read_share, bytes, depth };
                let mut lane = self.lane(load)?;
                let seconds = self.plan.seconds_per_point;
                let point = point::measure(&mut lane, &mut set, (load, seconds), self.observer.stop)?;
                let Some(point) = point else { return Ok(()) };
                (self.observer.measured)(&point);
                self.done.points.push(point);
            }
        }
        Ok(())
    }

    /// Entries of one size in place of those there are; `None` when it was stopped.
    fn written(&mut self, bytes: u64) -> Result<Option<WorkingSet>> {
        self.store
            .clear()
            .map_err(|error| Error::usage(format!("cannot remove what was written: {error}")))?;
        let deepest = self.plan.deepest();
        let mut set = WorkingSet::of(bytes, deepest, self.plan);
        let mut lane = self.lane(Load { read_share: 0.0, bytes, depth: deepest })?;
        let whole = set.write(&mut lane, deepest as usize, self.observer.stop)?;
        Ok(whole.then_some(set))
    }

    fn lane(&self, load: Load) -> Result<wavetank_store::Lane> {
        let told = |error: io::Error| Error::usage(format!("cannot open a queue: {error}"));
        self.store.lane(pieces(load)).map_err(told)
    }

    fn is_stopped(&self) -> bool {
        self.observer.stop.load(Ordering::Relaxed)
    }
}

/// As many pieces at the device as the benchmark's lanes have unless told otherwise.
const PIECES: usize = 32;

/// How many pieces may be at the device: all of those in flight, or as many as is usual if that is enough to
/// have one of each operation there.
fn pieces(load: Load) -> usize {
    let (depth, each) = (load.depth as usize, load.bytes.div_ceil(PIECE as u64).max(1) as usize);
    depth.saturating_mul(each).min(PIECES).max(depth)
}
