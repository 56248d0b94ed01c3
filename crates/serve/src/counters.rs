//! What the server counts while it runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows, added to by any thread.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `more`.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// What was added so far.
    pub fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Every count of the server.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: Counter,)+
        }

        impl Counters {
            /// Every count by name, with what it counts.
            pub fn rows(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), concat!($($doc),+), self.$name.total()),)+]
            }
        }
    };
}

counters! {
    /// Objects asked for.
    lookups,
    /// Those found in memory.
    l1_hits,
    /// Those found behind memory and brought.
    l2_hits,
    /// Those found nowhere.
    misses,
    /// Those that were behind memory and did not come in time, or could not be read.
    l2_failures,
    /// Objects written.
    stores,
    /// Writes that found no room.
    refused_stores,
    /// Objects removed by clients.
    removals,
    /// Bytes of values read by clients.
    bytes_out,
    /// Bytes of values written by clients.
    bytes_in,
    /// Connections taken.
    connections_opened,
    /// Connections that ended.
    connections_closed,
    /// Connections turned away because there were too many.
    connections_refused,
    /// Connections closed because they were too slow.
    connections_timed_out,
    /// Connections closed because they did not speak the protocol.
    protocol_errors,
    /// Commands answered.
    commands,
    /// Those answered with an error.
    command_errors,
    /// Keys leased to clients that saw them.
    leases,
    /// Those that were not, because too much was leased.
    leases_refused,
    /// Leases that ended because they were too old.
    leases_expired,
}
