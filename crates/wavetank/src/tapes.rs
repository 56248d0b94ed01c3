//! Workloads read once for many runs: what two plans ask for alike is held once.

use std::sync::{Arc, Mutex, PoisonError};

use wavetank_model::{Error, Result};
use wavetank_trace::Tape;

use crate::replay::source;
use crate::{Plan, WorkloadPlan};

/// What of a plan decides its requests and their times: plans that agree in it share a tape.
#[derive(Clone, Debug, PartialEq)]
pub struct TapeKey {
    workload: WorkloadPlan,
    /// How times are divided; nothing where they are ignored.
    speedup: Option<f64>,
    /// Shared prefixes and groups of a synthetic load depend on these.
    synthetic: Option<(u32, u64)>,
}

impl TapeKey {
    /// The key of a plan.
    pub fn of(plan: &Plan) -> Self {
        let simulation = &plan.simulation;
        let scheduled = matches!(simulation.load, wavetank_sim::Load::Schedule);
        let is_synthetic = matches!(plan.workload, WorkloadPlan::Synthetic(_));
        Self {
            workload: plan.workload.clone(),
            speedup: scheduled.then_some(plan.arrival_speedup_ratio),
            synthetic: is_synthetic.then_some((simulation.engine.block_size, simulation.seed)),
        }
    }
}

/// Tapes by what they hold, the last used ones within a bound.
pub struct Tapes {
    most_bytes: usize,
    /// The last used is last.
    held: Mutex<Vec<(TapeKey, Arc<Slot>)>>,
}

/// Where a tape is once someone has read it; others wait for that one.
#[derive(Default)]
struct Slot(Mutex<Option<Arc<Tape>>>);

impl Tapes {
    /// Keeps tapes that take about `most_bytes` together, and always the last one.
    pub fn within(most_bytes: usize) -> Self {
        Self { most_bytes, held: Mutex::default() }
    }

    /// The requests of `plan`.
    pub fn of(&self, plan: &Plan) -> Result<Arc<Tape>> {
        if plan.workload.is_once() {
            return Err(Error::usage("standard input can be replayed once only").hint("name a trace file"));
        }
        let slot = self.slot(TapeKey::of(plan));
        let mut tape = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tape) = &*tape {
            return Ok(Arc::clone(tape));
        }
        let read = Arc::new(Self::read(plan)?);
        *tape = Some(Arc::clone(&read));
        drop(tape);
        self.forget();
        Ok(read)
    }

    /// The same, read for this one plan and not kept.
    pub fn read(plan: &Plan) -> Result<Tape> {
        source(plan, false)?.tape()
    }

    fn slot(&self, key: TapeKey) -> Arc<Slot> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let known = held.iter().position(|(known, _)| *known == key);
        let entry = known.map_or_else(|| (key, Arc::default()), |position| held.remove(position));
        let slot = Arc::clone(&entry.1);
        held.push(entry);
        slot
    }

    /// Lets go of the tapes that were not used for longest.
    fn forget(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // A tape that is being read has no size yet, and its reader holds the lock.
        let bytes = |slot: &Slot| slot.0.try_lock().map_or(0, |tape| tape.as_ref().map_or(0, |t| t.bytes()));
        let mut sum: usize = held.iter().map(|(_, slot)| bytes(slot)).sum();
        while sum > self.most_bytes && held.len() > 1 {
            let (_, slot) = held.remove(0);
            sum -= bytes(&slot).min(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplayArgs;

    fn plan(speedup: f64, workers: u32) -> Plan {
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/single_turn.jsonl");
        Plan::of(&ReplayArgs {
            trace_files: vec![trace.to_owned()],
            arrival_speedup_ratio: Some(speedup),
            num_workers: Some(workers),
            ..ReplayArgs::default()
        })
        .unwrap()
    }

    /// Broken by: a key that leaves out what times depend on or takes in what they do not, or a bound that
    /// is not kept.
    #[test]
    fn plans_share_a_tape_while_there_is_room() {
        let tapes = Tapes::within(usize::MAX);
        let first = tapes.of(&plan(1.0, 1)).unwrap();
        assert!(Arc::ptr_eq(&first, &tapes.of(&plan(1.0, 8)).unwrap()));
        let other = tapes.of(&plan(2.0, 1)).unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(Arc::ptr_eq(&first, &tapes.of(&plan(1.0, 1)).unwrap()));
        let small = Tapes::within(0);
        let first = small.of(&plan(1.0, 1)).unwrap();
        assert!(Arc::ptr_eq(&first, &small.of(&plan(1.0, 1)).unwrap()), "the last one stays");
        small.of(&plan(2.0, 1)).unwrap();
        assert!(!Arc::ptr_eq(&first, &small.of(&plan(1.0, 1)).unwrap()), "and no other");
        let stdin = ReplayArgs { trace_files: vec!["mooncake:-".to_owned()], ..ReplayArgs::default() };
        assert!(small.of(&Plan::of(&stdin).unwrap()).is_err());
    }
}
