//! What a backend does by operation, size and queue depth, measured through lanes of a store that has it as
//! its only tier: what is measured is what a tier of it does, for one entry, as who asks for it sees it.
//!
//! A point keeps as many operations on entries of one size in flight as its queue is deep: when one ends the
//! next is asked for. Entries of every size are written first, a part of them at each depth: what a write
//! into new room takes. Writing that goes on comes before most of that, so that it finds a device at rest;
//! then all points are gone through in passes, so that what a point does at different times is known. Of
//! memory also what was read a moment ago is read.

mod course;
mod crew;
mod labour;
mod plan;
mod point;
mod set;
#[cfg(test)]
mod tests;
mod window;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wavetank_cache::Rules;
use wavetank_cache::eviction::{self, Settings};
use wavetank_model::{Error, Result, Sustained, TierAgain, TierPoint, TierRoom};
use wavetank_store::backend::{Backend, Location};
use wavetank_store::backends::{self, Site};
use wavetank_store::{Outcome, Store, Tier};

use self::crew::{Crew, lane};
use self::plan::Load;
pub use self::plan::ProbePlan;
use self::point::Tally;
use self::set::{Turns, WorkingSet};

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
    /// What reads of what was read a moment ago take.
    pub again: Vec<TierAgain>,
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
    if caps.is_memory() {
        touch(backends::open(&plan.backend, &site)?, plan, observer.stop)?;
    }
    probe_on(backends::open(&plan.backend, &site)?, plan, observer)
}

/// Takes as much memory as will be used, and gives it back. A virtual machine's host may have to find what
/// was never touched: that happens once in its life, and is no part of what new memory costs.
fn touch(backend: Arc<dyn Backend>, plan: &ProbePlan, stop: &AtomicBool) -> Result<()> {
    let observer = ProbeObserver { stop, measured: &mut || {} };
    let mut probe = Probe { store: alone(backend)?, plan, observer, turn: 0, done: Probed::default() };
    plan.sizes.iter().try_for_each(|bytes| probe.fill(*bytes, &mut []))
}

/// Measures this backend.
pub(crate) fn probe_on(
    backend: Arc<dyn Backend>,
    plan: &ProbePlan,
    observer: ProbeObserver<'_>,
) -> Result<Probed> {
    let store = alone(backend)?;
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

/// A store of nothing else.
fn alone(backend: Arc<dyn Backend>) -> Result<Arc<Store>> {
    let eviction = (eviction::policy("lru")?.build)(&Settings::default())?;
    Store::open(vec![Tier { backend, capacity_bytes: None, eviction }], Rules::default())
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
        let mut tallies: Vec<(Load, Tally)> =
            self.plan.loads().into_iter().map(|load| (load, Tally::default())).collect();
        if let Some(load) = first {
            self.fill(load.bytes, &mut tallies)?;
            self.sustained(load)?;
        }
        let others = self.plan.sizes.iter().filter(|bytes| first.is_none_or(|load| load.bytes != **bytes));
        others.copied().try_for_each(|bytes| self.fill(bytes, &mut tallies))?;
        let again = self.plan.again().into_iter();
        let mut again: Vec<Again> =
            again.map(|(turns, load)| Again { turns, load, tally: Tally::default() }).collect();
        self.passes(&mut tallies, &mut again)?;
        let making = self.making()?;
        let point = |(load, tally): (Load, Tally)| tally.point(load, making[&load.bytes]);
        self.done.points = tallies.into_iter().filter_map(point).collect();
        self.done.again = again.into_iter().filter_map(Again::found).collect();
        self.done.partial = self.is_stopped();
        Ok(())
    }

    /// Writes all entries of a size, unless it is stopped: into new room, which is measured.
    fn fill(&mut self, bytes: u64, tallies: &mut [(Load, Tally)]) -> Result<()> {
        for (load, entries) in self.plan.fills(bytes) {
            if self.is_stopped() {
                break;
            }
            let Some(seen) = point::fill(self.crew(load), &entries)? else { break };
            let own = tallies.iter_mut().find(|(other, _)| *other == load);
            own.into_iter().for_each(|(_, tally)| tally.add(load, &seen));
            (self.observer.measured)();
        }
        Ok(())
    }

    /// Processor time that making the bytes of an entry takes, by its length.
    fn making(&mut self) -> Result<BTreeMap<u64, f64>> {
        let site = Site { location: String::new(), capacity_bytes: None, options: BTreeMap::new().into() };
        let nothing = alone(backends::open("null", &site)?)?;
        let plan = self.plan;
        let making = |bytes: &u64| {
            let crew = Crew { store: &nothing, ..self.crew(Load::writes(*bytes, 1)) };
            Ok((*bytes, point::making_seconds(crew)?))
        };
        plan.sizes.iter().map(making).collect()
    }

    fn sustained(&mut self, load: Load) -> Result<()> {
        if !self.is_stopped() {
            let seconds = self.plan.sustained_seconds;
            self.done.sustained = course::measure(self.crew(load), seconds)?;
        }
        Ok(())
    }

    /// Every point in every pass, and what is read again, as far as it is not stopped.
    fn passes(&mut self, tallies: &mut [(Load, Tally)], again: &mut [Again]) -> Result<()> {
        let seconds = self.plan.seconds_per_point / f64::from(self.plan.passes);
        for _ in 0..self.plan.passes {
            for (load, tally) in tallies.iter_mut().filter(|(load, _)| load.room == TierRoom::Used) {
                if self.is_stopped() {
                    return Ok(());
                }
                let Some(seen) = point::measure(self.crew(*load), seconds)? else { return Ok(()) };
                tally.add(*load, &seen);
                (self.observer.measured)();
            }
            for Again { turns, load, tally } in again.iter_mut() {
                let crew = self.crew(*load);
                let crew = Crew { set: crew.set.in_turn(*turns), ..crew };
                let Some(seen) = point::measure(crew, seconds)? else { return Ok(()) };
                tally.add(*load, &seen);
                (self.observer.measured)();
            }
        }
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

/// Entries that are read in turn, and what was seen of that.
struct Again {
    turns: Turns,
    load: Load,
    tally: Tally,
}

impl Again {
    fn found(self) -> Option<TierAgain> {
        let Load { bytes, .. } = self.load;
        let point = self.tally.point(self.load, 0.0)?;
        let Turns { after, repeats, entries } = self.turns;
        let (apart_bytes, mean_us) = (entries * bytes, point.read?.mean_us);
        Some(TierAgain { after, repeats, apart_bytes, bytes, operations: point.reads, mean_us })
    }
}
