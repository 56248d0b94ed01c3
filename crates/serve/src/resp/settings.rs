//! What the front door is set to.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use wavetank_http::Secret;
use wavetank_model::{Error, Result};
use wavetank_store::KEY_BYTES_MAX;

use super::parse::Limits;

/// How the front door runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Threads that serve connections.
    pub threads: usize,
    /// Who may use it; anybody who knows the password when absent.
    pub user: Option<String>,
    /// What they say; nobody is asked when absent.
    pub password: Option<Secret>,
    /// Connections at a time.
    pub connections: usize,
    /// Bytes of replies that wait for one client, before its commands wait too; bytes of one command, but for
    /// large values.
    pub connection_bytes: u64,
    /// Bytes of all connections: commands half read, values on their way in, replies on their way out.
    pub memory_bytes: u64,
    /// Bytes of one value.
    pub value_bytes: u64,
    /// Bytes of one key.
    pub key_bytes: usize,
    /// Connections that say nothing for so long are closed; none when absent.
    pub idle_timeout: Option<Duration>,
    /// Connections that do not take their replies, or do not end a command, for so long are closed.
    pub slow_timeout: Duration,
    /// How long a key stays in memory for a client that saw it.
    pub lease: Duration,
    /// The part of memory that may be kept so.
    pub lease_share: f64,
    /// What memory holds; no limit when absent. Clients are told, and leases are bounded by it.
    pub l1_bytes: Option<u64>,
    /// Who leaves memory, a row of the eviction table. Clients are told.
    pub eviction_policy: String,
    /// Whether clients may remove everything.
    pub is_flush_enabled: bool,
}

/// A client's key, with what is put before it, is a key of the store.
const KEY_MARGIN_BYTES: usize = 1024;
/// More do not help: the kernel's share is the larger one.
const THREADS_MOST: usize = 8;

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 6379)),
            threads: (cores / 2).clamp(1, THREADS_MOST),
            user: None,
            password: None,
            connections: 10_000,
            connection_bytes: 64 << 20,
            memory_bytes: 4 << 30,
            value_bytes: 512 << 20,
            key_bytes: KEY_BYTES_MAX - KEY_MARGIN_BYTES,
            idle_timeout: None,
            slow_timeout: Duration::from_secs(60),
            lease: Duration::from_secs(5),
            lease_share: 0.25,
            l1_bytes: None,
            eviction_policy: "lru".to_owned(),
            is_flush_enabled: false,
        }
    }
}

impl Settings {
    /// An error if they make no sense.
    pub fn check(&self) -> Result<()> {
        let refuse = |place: &str, why: &str| Err(Error::usage(why).at(place));
        if self.threads == 0 {
            return refuse("threads", "must be at least 1");
        }
        if self.user.is_some() && self.password.is_none() {
            return refuse("user", "a user without a password keeps nobody out");
        }
        if !(0.0..=1.0).contains(&self.lease_share) {
            return refuse("lease_share", "must be from 0 to 1");
        }
        if self.key_bytes > KEY_BYTES_MAX {
            return refuse("key_bytes", "is more than the store takes");
        }
        if self.connection_bytes < Limits::default().announced_bytes * 4 {
            return refuse("connection_bytes", "must be at least 64 KiB");
        }
        Ok(())
    }

    /// What a client may send.
    pub(super) fn limits(&self) -> Limits {
        Limits { argument_bytes: self.value_bytes, ..Limits::default() }
    }

    /// Bytes that may be leased; no limit when absent.
    pub(super) fn leased_bytes(&self) -> Option<u64> {
        self.l1_bytes.map(|bytes| (bytes as f64 * self.lease_share) as u64)
    }
}
