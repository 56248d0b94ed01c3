//! The names of operations in records: six of the reference (spec/storage-trace.md 1.6), and ours, which it
//! skips.

/// What the reference's names begin with.
const STORAGE: &str = "lmcache.v1.distributed.storage_manager.StorageManager.";

/// An operation of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    ReserveWrite,
    FinishWrite,
    SubmitPrefetch,
    ReadEnter,
    ReadExit,
    FinishRead,
    EvictionPass,
    StoreCompleted,
    StoreBegun,
    PrefetchCompleted,
    Found,
    Removed,
    Gap,
    /// The recording goes on in its next part.
    Continued,
    /// The recording reached its largest size.
    Capped,
}

/// Names in full, by operation.
pub(super) const NAMES: [&str; 15] = [
    "lmcache.v1.distributed.storage_manager.StorageManager.reserve_write",
    "lmcache.v1.distributed.storage_manager.StorageManager.finish_write",
    "lmcache.v1.distributed.storage_manager.StorageManager.submit_prefetch_task",
    "lmcache.v1.distributed.storage_manager.StorageManager.read_prefetched_results.__enter__",
    "lmcache.v1.distributed.storage_manager.StorageManager.read_prefetched_results.__exit__",
    "lmcache.v1.distributed.storage_manager.StorageManager.finish_read_prefetched",
    "wavetank.eviction_pass",
    "wavetank.store_completed",
    "wavetank.store_begun",
    "wavetank.prefetch_completed",
    "wavetank.found",
    "wavetank.removed",
    "wavetank.gap",
    "wavetank.continued",
    "wavetank.capped",
];

impl Operation {
    /// The operation called so.
    pub(super) fn of(qualname: &str) -> Option<Self> {
        if let Some(name) = qualname.strip_prefix(STORAGE) {
            return Some(match name {
                "reserve_write" => Self::ReserveWrite,
                "finish_write" => Self::FinishWrite,
                "submit_prefetch_task" => Self::SubmitPrefetch,
                "read_prefetched_results.__enter__" => Self::ReadEnter,
                "read_prefetched_results.__exit__" => Self::ReadExit,
                "finish_read_prefetched" => Self::FinishRead,
                _ => return None,
            });
        }
        Some(match qualname.strip_prefix("wavetank.")? {
            "eviction_pass" => Self::EvictionPass,
            "store_completed" => Self::StoreCompleted,
            "store_begun" => Self::StoreBegun,
            "prefetch_completed" => Self::PrefetchCompleted,
            "found" => Self::Found,
            "removed" => Self::Removed,
            "gap" => Self::Gap,
            "continued" => Self::Continued,
            "capped" => Self::Capped,
            _ => return None,
        })
    }

    /// Its name in full.
    pub(super) fn qualname(self) -> &'static str {
        NAMES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a name out of place.
    #[test]
    fn names_are_read_back() {
        for (place, name) in NAMES.iter().enumerate() {
            let operation = Operation::of(name).unwrap();
            assert_eq!((operation as usize, operation.qualname()), (place, *name));
        }
        assert_eq!(
            Operation::of("lmcache.v1.distributed.storage_manager.StorageManager.touch_l1_keys"),
            None
        );
        assert_eq!(Operation::of("wavetank.other"), None);
        assert_eq!(Operation::of("events.batch"), None);
    }
}
