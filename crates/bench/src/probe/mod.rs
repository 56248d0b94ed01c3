//! What a backend does by operation, size and queue depth, measured through lanes of a store that has it as
//! its only tier: what is measured is what a tier of it does, for one entry, as who asks for it sees it.
//!
//! A point keeps as many operations on entries of one size in flight as its queue is deep: when one ends the
//! next is asked for. Writing that goes on comes first, so that it finds a device at rest and the points
//! after it one in use; then entries of every size are there, and all points are gone through in passes, so
//! that what a point does at different times is known.

mod course;
mod crew;
mod plan;
mod point;
mod set;
#[cfg(test)]
mod tests;
mod window;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wavetank_cache::Rules;
use wavetank_cache::eviction::{self, Settings};
use wavetank_model::{Error, Result, Sustained, TierPoint};
use wavetank_store::backend::{Backend, Location};
use wavetank_store::backends::{self, Site};
use wavetank_store::{Outcome, Store, Tier};

use self::crew::{Crew, lane};
use self::plan::Load;
pub use self::plan::ProbePlan;
use self::point::Tally;
use self::set::WorkingSet;

/// Who watches a measurement, and may end it.
pub struct ProbeObserver<'a> {
    /// Raised to end it with what there is.
    pub stop: &'a AtomicBool,
    /// Told whenever a point was measured, in every pass.
    pub measured: &'a mut dyn FnMut(),
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

/// How many entries are removed at a time.
const REMOVALS: usize = 64;

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
    let mut probe = Probe { store, plan, observer, turn: 0, done: Probed::default() };
    let result = probe.all();
    probe.done.notes = probe.store.notes();
    let cleared = clear(&probe.store);
    match (result, cleared) {
        (Ok(()), Ok(())) => Ok(probe.done),
        (Err(failed), Err(kept)) => Err(failed.hint(kept.to_string())),
        (Err(failed), Ok(())) | (Ok(()), Err(failed)) => Err(failed),
    }
}

/// Removes every entry and what the backend keeps for later ones, many at a time: a server may be far away.
/// What cannot be removed keeps nothing else.
fn clear(store: &Arc<Store>) -> Result<()> {
    let kept = |error: String| Error::usage(format!("cannot remove what was written: {error}"));
    let mut lane = lane(store, REMOVALS)?;
    let mut keys = store.keys().into_iter();
    let mut failure = None;
    keys.by_ref().take(REMOVALS).for_each(|key| _ = lane.remove(key));
    while let Some(done) = lane.wait() {
        if let Outcome::Failed(error) = done.outcome {
            failure = Some(kept(error.to_string()));
        }
        keys.next().into_iter().for_each(|key| _ = lane.remove(key));
    }
    drop(lane);
    let trimmed = store.trim().map_err(|error| kept(error.to_string()));
    failure.map_or(trimmed, Err)
}

struct Probe<'a, 'o> {
    store: Arc<Store>,
    plan: &'a ProbePlan,
    observer: ProbeObserver<'o>,
    /// How often threads were set to work.
    turn: u64,
    done: Probed,
}

impl Probe<'_, '_> {
    fn all(&mut self) -> Result<()> {
        let first = self.plan.sustained_load();
        if let Some(load) = first {
            self.write(load.bytes)?;
            self.sustained(load)?;
        }
        let others = self.plan.sizes.iter().filter(|bytes| first.is_none_or(|load| load.bytes != **bytes));
        others.copied().try_for_each(|bytes| self.write(bytes))?;
        self.passes()?;
        self.done.partial = self.is_stopped();
        Ok(())
    }

    /// Writes all entries of a size, unless it is stopped.
    fn write(&self, bytes: u64) -> Result<()> {
        let depth = self.plan.deepest(bytes);
        let mut lane = lane(&self.store, Load { read_share: 0.0, bytes, depth }.pieces(depth))?;
        WorkingSet::of(bytes, self.plan).write(&mut lane, depth as usize, self.observer.stop)
    }

    fn sustained(&mut self, load: Load) -> Result<()> {
        if !self.is_stopped() {
            let seconds = self.plan.sustained_seconds;
            self.done.sustained = course::measure(self.crew(load), seconds)?;
        }
        Ok(())
    }

    /// Every point in every pass, as far as it is not stopped.
    fn passes(&mut self) -> Result<()> {
        let loads = self.plan.loads();
        let mut tallies: Vec<Tally> = loads.iter().map(|_| Tally::default()).collect();
        let seconds = self.plan.seconds_per_point / f64::from(self.plan.passes);
        'passes: for _ in 0..self.plan.passes {
            for (&load, tally) in loads.iter().zip(&mut tallies) {
                if self.is_stopped() {
                    break 'passes;
                }
                let Some(seen) = point::measure(self.crew(load), seconds)? else { break 'passes };
                tally.add(load, &seen);
                (self.observer.measured)();
            }
        }
        let points = tallies.into_iter().zip(loads).filter_map(|(tally, load)| tally.point(load));
        self.done.points = points.collect();
        Ok(())
    }

    fn crew(&mut self, load: Load) -> Crew<'_> {
        self.turn += 1;
        Crew {
            store: &self.store,
            set: WorkingSet::of(load.bytes, self.plan),
            load,
            threads: self.plan.threads,
            turn: self.turn,
            stop: self.observer.stop,
        }
    }

    fn is_stopped(&self) -> bool {
        self.observer.stop.load(Ordering::Relaxed)
    }
}
