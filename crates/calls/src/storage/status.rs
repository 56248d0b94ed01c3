//! What there is to say of a storage layer at a moment.

use serde::Serialize;

use super::Storage;
use crate::background::Background;

/// How a storage layer is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Objects there are, in whatever tier.
    pub objects: u64,
    /// Names in use: of objects, and of what is on its way or being deleted.
    pub names: u64,
    /// What they take of memory, besides objects.
    pub names_bytes: u64,
    /// Those of them that are there for a time only.
    pub expiring: u64,
    /// Memory, then every tier behind it.
    pub tiers: Vec<TierStatus>,
    /// Bytes of memory taken by objects that are being written and have no name yet.
    pub staged_bytes: u64,
    /// Objects on their way to tiers behind, and their bytes.
    pub stores_in_flight: u64,
    /// Those bytes.
    pub storing_bytes: u64,
    /// Objects that are to be copied to each tier behind once less is on its way there.
    pub late: Vec<u64>,
    /// Prefetches that load from tiers behind.
    pub loads_in_flight: u64,
    /// Their bytes.
    pub loading_bytes: u64,
    /// Objects that were behind memory and not brought, because too much was under way.
    pub refused_loads: u64,
    /// What happened besides calls.
    pub background: Background,
    /// Bytes in memory by tenant, those of nobody first.
    pub tenants: Vec<(String, u64)>,
}

/// A tier at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TierStatus {
    /// Objects in it.
    pub entries: u64,
    /// What they take.
    pub bytes: u64,
    /// What there is; no limit when absent.
    pub capacity_bytes: Option<u64>,
    /// Objects that were found in it at the start.
    pub recovered: u64,
    /// What was found besides: not ours, damaged, empty.
    pub foreign: u64,
    /// Damaged: never served.
    pub torn: u64,
    /// Kept for later.
    pub spare: u64,
    /// What does not work there as it should, in words.
    pub notes: Vec<String>,
}

impl Storage {
    /// How it is doing.
    pub fn status(&self) -> Status {
        let state = self.shared.lock();
        let ((l1, behind), (l1_bytes, behind_bytes)) = (state.engine.counts(), state.engine.used());
        let (capacity_bytes, names_bytes) = (state.engine.capacity(), state.names.bytes());
        let bytes = l1_bytes - names_bytes;
        let memory = TierStatus { entries: l1, bytes, capacity_bytes, ..TierStatus::default() };
        let tier = |adapter: usize| TierStatus {
            entries: behind[adapter],
            bytes: behind_bytes[adapter],
            capacity_bytes: state.engine.capacity_behind(adapter),
            ..self.recovered[adapter].clone()
        };
        let tiers = (0..behind.len()).map(tier);
        let tiers = [memory].into_iter().chain(tiers).collect();
        let status = Status {
            objects: state.presence.count() as u64,
            names: state.names.len() as u64,
            names_bytes,
            expiring: state.deadlines.len() as u64,
            tiers,
            staged_bytes: state.engine.unnamed() - names_bytes,
            stores_in_flight: state.flow.stores,
            storing_bytes: state.flow.storing.iter().sum(),
            late: state.engine.late_counts(),
            loads_in_flight: state.flow.loads,
            loading_bytes: state.flow.loading,
            refused_loads: state.flow.refused_loads,
            background: state.engine.background().clone(),
            tenants: state.tenants.all(),
        };
        drop(state);
        self.with_notes(status)
    }

    /// Notes of backends are asked for without the lock.
    fn with_notes(&self, mut status: Status) -> Status {
        for (tier, depot) in status.tiers[1..].iter_mut().zip(&self.shared.depots) {
            tier.notes = depot.notes();
        }
        status
    }
}
