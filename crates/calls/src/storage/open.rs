//! How a storage layer begins: its tiers are opened, what was kept in them is found, its threads are started.

use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use wavetank_model::{KeyId, LayoutId, Result, StorageCall};
use wavetank_store::Key;
use wavetank_store::backend::{Birth, Recovery};

use super::background::{Loader, Porter, evict};
use super::state::{Flow, Shared, State, Stop};
use super::tenant::TenantBytes;
use super::{Journal, Storage, StorageOptions, TierStatus};
use crate::bytes::{Depot, Freight, Keeping, Pool, start, start_with};
use crate::engine::{Engine, Tempo};
use crate::plan::Plan;

/// How much is under way to tiers behind where memory has no limit.
const UNDER_WAY_BYTES: u64 = 4 << 30;

impl Storage {
    /// One with nothing in memory, and nothing behind it but what is kept there. `journal` hears of all that
    /// happens, if there is one.
    pub fn open(plan: &Plan, options: &StorageOptions, journal: Option<Arc<dyn Journal>>) -> Result<Self> {
        let depots = plan.adapters.iter().enumerate();
        let depots = depots.map(|(number, adapter)| Depot::open(adapter, number, options.keeping));
        let depots = depots.collect::<Result<Vec<_>>>()?;
        let tenants = TenantBytes::new(plan.tenants());
        let mut state = State::new(Engine::new(plan, &Tempo::Told)?, tenants, journal.clone());
        state.flow = flow(plan, options);
        let pool = Pool::new(plan.l1.capacity_bytes);
        if options.keeping == Keeping::All {
            find(&mut state, &depots, &pool)?;
        }
        let found = state.engine.counts().1;
        let recovered = depots.iter().zip(found).map(|(depot, count)| recovered(depot, count)).collect();
        let shared = Arc::new(Shared {
            begun: Instant::now(),
            depots,
            pool,
            journal,
            state: Mutex::new(state),
            ended: Condvar::new(),
            stop: (Mutex::new(Stop::NotYet), Condvar::new()),
        });
        // Whatever fails from here on, dropping it ends the threads that there are.
        let (loaders, porters, loops) = (Vec::new(), Vec::new(), Vec::new());
        let mut storage = Self { shared, loaders, porters, loops, recovered, closing: options.closing };
        if !plan.adapters.is_empty() {
            storage.start_porters()?;
            storage.start_loaders(options.prefetches_in_flight)?;
        }
        storage.start_loops(plan, options)?;
        Ok(storage)
    }

    fn start_loops(&mut self, plan: &Plan, options: &StorageOptions) -> Result<()> {
        let behind = plan.adapters.iter().map(|adapter| adapter.eviction.is_some());
        for (tier, _) in [true].into_iter().chain(behind).enumerate().filter(|(_, evicts)| *evicts) {
            let (shared, sleep) = (Arc::clone(&self.shared), options.eviction_sleep);
            self.loops.push(start("evict", move || evict(&shared, tier, sleep))?);
        }
        Ok(())
    }

    fn start_porters(&mut self) -> Result<()> {
        for adapter in 0..self.shared.depots.len() {
            let (sender, errands) = channel();
            let shared = Arc::clone(&self.shared);
            let porter =
                start_with("store", move || Porter::new(&shared, adapter), move |it| it.run(&errands))?;
            self.porters.push(porter);
            self.shared.lock().errands.push(sender);
        }
        Ok(())
    }

    fn start_loaders(&mut self, count: usize) -> Result<()> {
        let (sender, loads) = channel();
        let loads = Arc::new(Mutex::new(loads));
        for _ in 0..count.max(1) {
            let (shared, loads) = (Arc::clone(&self.shared), Arc::clone(&loads));
            let loader = start_with("load", move || Loader::new(&shared), move |it| it.run(&loads))?;
            self.loaders.push(loader);
        }
        self.shared.lock().loads = Some(sender);
        Ok(())
    }
}

fn recovered(depot: &Depot, recovered: u64) -> TierStatus {
    let Recovery { foreign, torn, spare } = depot.recovery();
    TierStatus { recovered, foreign, torn, spare, ..TierStatus::default() }
}

fn flow(plan: &Plan, options: &StorageOptions) -> Flow {
    let share = plan.l1.capacity_bytes.map_or(UNDER_WAY_BYTES, |capacity| capacity / 4);
    let most = options.under_way_bytes.unwrap_or(share);
    let (storing, ending) = (vec![0; plan.adapters.len()], vec![false; plan.adapters.len()]);
    Flow { storing, ending, storing_most: most, loading_most: most, ..Flow::default() }
}

/// Takes in what earlier processes left in the tiers. Of several objects of one name only the latest is
/// there; what has had its time, or has no room, is not. What is not there is removed.
fn find(state: &mut State, depots: &[Depot], pool: &Arc<Pool>) -> Result<()> {
    let entries: Vec<Vec<(Key, u64, Birth)>> = depots.iter().map(Depot::entries).collect();
    let mut latest: HashMap<&Key, u64> = HashMap::new();
    for (key, _, birth) in entries.iter().flatten() {
        let newest = latest.entry(key).or_default();
        *newest = birth.put.max(*newest);
    }
    for (adapter, entries) in entries.iter().enumerate() {
        let mut unwanted = Vec::new();
        let is_latest = |entry: &&(Key, u64, Birth)| latest.get(&entry.0) == Some(&entry.2.put);
        let (current, older): (Vec<_>, Vec<_>) = entries.iter().partition(is_latest);
        unwanted.extend(older.into_iter().map(|(key, ..)| key));
        for entry in kept(&current, state.room_behind(adapter), &mut unwanted) {
            state.take_in(adapter, entry, &mut unwanted);
        }
        remove(&depots[adapter], pool, &unwanted)?;
    }
    let written = entries.iter().flatten().map(|(_, _, birth)| birth.put).max();
    state.written = written.unwrap_or(0);
    Ok(())
}

/// The latest that fit, the earliest first; the others are `unwanted`.
fn kept<'e>(
    entries: &[&'e (Key, u64, Birth)],
    capacity: Option<u64>,
    unwanted: &mut Vec<&'e Key>,
) -> Vec<&'e (Key, u64, Birth)> {
    let mut room = capacity.unwrap_or(u64::MAX);
    let mut kept = Vec::new();
    for entry in entries.iter().rev() {
        match room.checked_sub(entry.1.max(1)) {
            Some(left) => {
                room = left;
                kept.push(*entry);
            }
            None => unwanted.push(&entry.0),
        }
    }
    kept.reverse();
    kept
}

fn remove(depot: &Depot, pool: &Arc<Pool>, names: &[&Key]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let unreachable = |error| wavetank_model::Error::usage(format!("cannot reach a tier: {error}"));
    let mut freight = Freight::new(depot, pool, 1).map_err(unreachable)?;
    names.iter().for_each(|name| freight.remove_named(name.bytes()));
    Ok(())
}

impl State {
    fn room_behind(&self, adapter: usize) -> Option<u64> {
        self.engine.capacity_behind(adapter)
    }

    /// Takes in an object that a tier has; one that is of no use is `unwanted`.
    fn take_in<'e>(
        &mut self,
        adapter: usize,
        (name, bytes, birth): &'e (Key, u64, Birth),
        unwanted: &mut Vec<&'e Key>,
    ) {
        let until_ms = (birth.expires_s > 0).then(|| u64::from(birth.expires_s) * 1000);
        let key = self.names.find(name.bytes()).unwrap_or_else(|| self.number(name.bytes()));
        self.deadlines.set(key, until_ms);
        let is_wanted = !self.deadlines.is_over(key) && self.engine.restore(adapter, key, *bytes);
        if is_wanted {
            self.notice(key);
            let layout = LayoutId(u32::try_from(*bytes).unwrap_or(u32::MAX));
            let keys: Box<[KeyId]> = [key].into();
            self.tell(None, || StorageCall::Found { tier: adapter as u8 + 1, keys, layout }, None);
        } else {
            unwanted.push(name);
            if !self.is_known(key) {
                self.free_number(key);
            }
        }
    }
}
