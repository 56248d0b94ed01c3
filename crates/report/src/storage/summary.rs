//! The numbers of a storage benchmark as plain data.

use serde::{Deserialize, Serialize};
use wavetank_model::{Nanos, Operation, TierRole};

use super::{ClassSummary, GIB, Setting, SizeSummary};
use crate::Spread;
use crate::statistics::{ratio, sum};

/// All numbers of one run, or of several that ran at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageSummary {
    /// What the run was set to.
    pub setting: Setting,
    /// What counted.
    pub window: Window,
    /// What became of the requests.
    pub requests: RequestsSummary,
    /// The entries they touched.
    pub touches: TouchesSummary,
    /// What the tiers did, in the order of their numbers.
    pub tiers: Vec<TierSummary>,
    /// What reads and writes took of host memory itself, both together.
    pub host_memory: Spread,
    /// Second by second, as long as a row is one second.
    pub timeline: Vec<Second>,
    /// How long a row of the timeline is.
    pub timeline_step: Nanos,
    /// The runs that were put together, each with its own window; none where this is one run.
    #[serde(skip)]
    pub parts: Vec<StorageSummary>,
}

/// The part of the run that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// When it began, as Unix time; zero where nobody noted it.
    pub began: Nanos,
    /// Its length.
    pub elapsed: Nanos,
    /// Requests that had begun at its end and had not ended.
    pub in_flight: u64,
    /// Requests that waited at its end.
    pub queued_at_end: u64,
}

impl Window {
    /// When it ended, as Unix time.
    pub fn end(&self) -> Nanos {
        Nanos(self.began.0.saturating_add(self.elapsed.0))
    }
}

/// Latencies in nanoseconds under their keys, in the order they came; none when there are too many.
pub type LatencyLists = Option<Vec<(&'static str, Vec<u64>)>>;

/// Requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestsSummary {
    /// By class, the most urgent first.
    pub classes: [ClassSummary; 3],
    /// Tokens of the entries of those served.
    pub context_tokens: u64,
    /// Tokens generated.
    pub generated_tokens: u64,
    /// Time spent on entries, over all requests.
    pub total_storage: Nanos,
    /// Time spent on generation, over all requests.
    pub total_generation: Nanos,
    /// Arrival to end.
    pub end_to_end: Spread,
    /// The time on entries of a request.
    pub storage: Spread,
    /// Generation.
    pub generation: Spread,
    /// Arrival to beginning.
    pub waited: Spread,
    /// Writing what was computed.
    pub prefill: Spread,
    /// Reading what generation needs.
    pub decode: Spread,
    /// The latencies themselves; not where runs were put together.
    #[serde(skip)]
    pub lists: LatencyLists,
}

impl RequestsSummary {
    /// Requests served.
    pub fn completed(&self) -> u64 {
        self.end_to_end.count()
    }

    /// Requests that found the queue full.
    pub fn turned_away(&self) -> u64 {
        sum(self.classes.iter().map(|class| class.turned_away))
    }

    /// Requests that had come by the end of the window and were neither served nor turned away.
    pub fn unfinished(&self) -> u64 {
        sum(self.classes.iter().map(|class| class.unfinished))
    }
}

/// Entries touched, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchesSummary {
    /// Shared prompts.
    pub prompt: ReasonCounts,
    /// Earlier turns.
    pub history: ReasonCounts,
    /// What was computed.
    pub prefill: ReasonCounts,
    /// Chunks of documents.
    pub document: ReasonCounts,
    /// What generation needs.
    pub decode: ReasonCounts,
    /// Where their time went.
    pub time: TimeSplit,
}

impl TouchesSummary {
    /// Every reason by its name in reports.
    pub fn reasons(&self) -> [(&'static str, ReasonCounts); 5] {
        [
            ("prompt", self.prompt),
            ("history", self.history),
            ("prefill", self.prefill),
            ("document", self.document),
            ("decode", self.decode),
        ]
    }

    /// All reasons together.
    pub fn all(&self) -> ReasonCounts {
        self.reasons().into_iter().fold(ReasonCounts::default(), |sum, (_, counts)| sum.plus(&counts))
    }
}

/// How touching entries went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCounts {
    /// Read.
    pub hits: u64,
    /// Their bytes.
    pub hit_bytes: u64,
    /// Not there.
    pub misses: u64,
    /// There, and could not be read.
    pub failed_reads: u64,
    /// Written.
    pub stored: u64,
    /// Their bytes, once, however many tiers they were written to.
    pub stored_bytes: u64,
    /// There already.
    pub existed: u64,
    /// Their bytes.
    pub existed_bytes: u64,
    /// No tier had room.
    pub refused: u64,
    /// A device failed.
    pub failed_writes: u64,
}

impl ReasonCounts {
    /// Entries asked for.
    pub fn lookups(&self) -> u64 {
        sum([self.hits, self.misses, self.failed_reads])
    }

    /// The part of them that was read.
    pub fn hit_rate(&self) -> f64 {
        ratio(self.hits as f64, self.lookups() as f64)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        Self {
            hits: self.hits.saturating_add(other.hits),
            hit_bytes: self.hit_bytes.saturating_add(other.hit_bytes),
            misses: self.misses.saturating_add(other.misses),
            failed_reads: self.failed_reads.saturating_add(other.failed_reads),
            stored: self.stored.saturating_add(other.stored),
            stored_bytes: self.stored_bytes.saturating_add(other.stored_bytes),
            existed: self.existed.saturating_add(other.existed),
            existed_bytes: self.existed_bytes.saturating_add(other.existed_bytes),
            refused: self.refused.saturating_add(other.refused),
            failed_writes: self.failed_writes.saturating_add(other.failed_writes),
        }
    }
}

/// Where the time on entries went, over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSplit {
    /// Reads of the storage tier.
    pub storage_read: Nanos,
    /// The part of it at the device.
    pub storage_read_device: Nanos,
    /// Writes of the storage tier.
    pub storage_write: Nanos,
    /// The part of it at the device.
    pub storage_write_device: Nanos,
    /// What reads and writes took of the tiers in memory themselves.
    pub memory: Nanos,
    /// The rest of their time: behind other operations, and behind what made room for them.
    pub lane_wait: Nanos,
    /// What was not found, was there already, or failed.
    pub elsewhere: Nanos,
}

impl TimeSplit {
    /// All of it.
    pub fn total(&self) -> Nanos {
        self.storage_read + self.storage_write + self.memory + self.lane_wait + self.elsewhere
    }
}

/// One tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TierSummary {
    /// What it is made of.
    pub role: TierRole,
    /// Reads of requests that were served from it.
    pub hits: u64,
    /// Their bytes.
    pub hit_bytes: u64,
    /// Reads for callers.
    pub reads: LaneSummary,
    /// Writes for callers.
    pub writes: LaneSummary,
    /// Entries that went to a slower tier.
    pub demoted_out: MoveSummary,
    /// Entries that came from a faster tier.
    pub demoted_in: MoveSummary,
    /// Entries that went to a faster tier.
    pub promoted_out: MoveSummary,
    /// Entries that came from a slower tier.
    pub promoted_in: MoveSummary,
    /// Entries that left the store.
    pub evictions: u64,
    /// Copies that left while another one stayed.
    pub drops: u64,
    /// Times its device failed.
    pub failures: u64,
    /// Everything in and out during the window.
    pub traffic: Traffic,
    /// The time at the device of everything in and out during the window.
    pub busy: Busy,
    /// Everything in and out during the whole run.
    pub whole_run: Traffic,
    /// What is in it at the end.
    pub at_end: TierUse,
}

/// Reads, or writes, for callers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneSummary {
    /// How many.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From being asked for to the end, as the caller sees it.
    pub total: Spread,
    /// At the device.
    pub device: Spread,
    /// In this process.
    pub host: Spread,
    /// Asked for and not at the device: behind other operations, behind what makes room, in this process.
    pub wait: Spread,
    /// In this process and at the device, without what was waited for: what the tier itself took.
    pub service: Spread,
    /// By size of the entry, where there are some.
    pub sizes: Vec<SizeSummary>,
}

/// Entries that went from one tier to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveSummary {
    /// How many.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From being asked for to the end.
    pub total: Spread,
}

/// What went in and out of a tier: for callers, and to make room or to move up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Entries read.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Entries written.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
}

impl Traffic {
    /// Adds one entry.
    pub fn add(&mut self, operation: Operation, bytes: u64) {
        let (entries, sum) = match operation {
            Operation::Read => (&mut self.reads, &mut self.read_bytes),
            Operation::Write => (&mut self.writes, &mut self.written_bytes),
        };
        *entries = entries.saturating_add(1);
        *sum = sum.saturating_add(bytes);
    }

    /// Bytes both ways.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }
}

/// What goes in and out of a tier in a second, in GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bandwidth {
    /// Out of it.
    pub read_gbps: f64,
    /// Into it.
    pub write_gbps: f64,
}

/// Time of operations at a device; those at the same time are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// Of reads.
    pub reading: Nanos,
    /// Of writes.
    pub writing: Nanos,
}

impl Busy {
    /// Adds one operation.
    pub fn add(&mut self, operation: Operation, device: Nanos) {
        match operation {
            Operation::Read => self.reading += device,
            Operation::Write => self.writing += device,
        }
    }
}

/// One second of the window, or several of one that is longer than a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Entries in or out of the storage tier.
    pub storage_operations: u64,
    /// Bytes out of the storage tier.
    pub storage_read_bytes: u64,
    /// Bytes into the storage tier.
    pub storage_written_bytes: u64,
    /// Tokens of the requests served.
    pub tokens: u64,
    /// Requests served.
    pub requests: u64,
    /// 95th percentile of their end-to-end latency; the larger one where seconds were put together.
    pub end_to_end_p95: Nanos,
}

impl Second {
    /// Bytes in and out of the storage tier.
    pub fn storage_bytes(&self) -> u64 {
        self.storage_read_bytes.saturating_add(self.storage_written_bytes)
    }

    /// Both together.
    pub fn merged(&self, other: &Self) -> Self {
        Self {
            storage_operations: self.storage_operations.saturating_add(other.storage_operations),
            storage_read_bytes: self.storage_read_bytes.saturating_add(other.storage_read_bytes),
            storage_written_bytes: self.storage_written_bytes.saturating_add(other.storage_written_bytes),
            tokens: self.tokens.saturating_add(other.tokens),
            requests: self.requests.saturating_add(other.requests),
            end_to_end_p95: self.end_to_end_p95.max(other.end_to_end_p95),
        }
    }
}

/// What the caller knows about the store when the run is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtEnd {
    /// In the order of the tiers' numbers.
    pub tiers: Vec<TierUse>,
}

/// What is in a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierUse {
    /// Bytes.
    pub bytes: u64,
    /// Entries.
    pub entries: u64,
}

impl StorageSummary {
    /// The tier with this role, if there is one.
    pub fn tier(&self, role: TierRole) -> Option<&TierSummary> {
        self.tiers.iter().find(|tier| tier.role == role)
    }

    /// What went in and out of the tier with this role; nothing if there is none.
    pub fn traffic(&self, role: TierRole) -> Traffic {
        self.tier(role).map(|tier| tier.traffic).unwrap_or_default()
    }

    /// How fast the tier with this role was read and written; nothing if there is none.
    pub fn bandwidth(&self, role: TierRole) -> Bandwidth {
        Bandwidth {
            read_gbps: self.per_second(|run| run.traffic(role).read_bytes as f64 / GIB),
            write_gbps: self.per_second(|run| run.traffic(role).written_bytes as f64 / GIB),
        }
    }

    /// `amount` for each second of the window. Several runs each have their own window, and rates add up.
    pub fn per_second(&self, amount: impl Fn(&Self) -> f64) -> f64 {
        self.added(|run| ratio(amount(run), run.window.elapsed.as_seconds()))
    }

    /// `value` of this run, or the sum of those of its parts.
    pub(crate) fn added(&self, value: impl Fn(&Self) -> f64) -> f64 {
        if self.parts.is_empty() { value(self) } else { self.parts.iter().map(value).sum() }
    }

    /// Bytes that callers read, from whatever tier.
    pub fn read_bytes(&self) -> u64 {
        self.touches.all().hit_bytes
    }

    /// Bytes that callers wrote; what goes to several tiers counts once.
    pub fn written_bytes(&self) -> u64 {
        self.touches.all().stored_bytes
    }

    /// Tokens whose bytes went in or out of the storage tier, also to make room.
    pub(crate) fn storage_tokens(&self) -> f64 {
        let bytes = self.traffic(TierRole::Storage).bytes();
        ratio(bytes as f64, self.setting.bytes_per_token as f64)
    }

    /// The requests' own entries in the window, and their bytes. What is read in the window is compared with
    /// what was written or found written in the same window, not with requests that ended in it: their reads
    /// may lie outside. Where nothing is computed, a request that was served and read its own entry stands
    /// for it.
    pub(crate) fn own_entries(&self) -> (u64, u64) {
        let ReasonCounts { stored, existed, stored_bytes, existed_bytes, .. } = self.touches.prefill;
        let entries = stored.saturating_add(existed);
        if entries > 0 {
            return (entries, stored_bytes.saturating_add(existed_bytes));
        }
        let bytes = self.requests.context_tokens.saturating_mul(self.setting.bytes_per_token);
        (self.requests.decode.count(), bytes)
    }
}
