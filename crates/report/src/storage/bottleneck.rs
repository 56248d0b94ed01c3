//! Where the time of a request goes, on average, and what that means.

use wavetank_model::{Nanos, TierRole};

use super::{StorageSummary, Traffic};
use crate::statistics::ratio;

/// A part of end-to-end latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Before a worker takes the request.
    QueueWait,
    /// Reading from the storage tier.
    StorageRead,
    /// Writing to the storage tier.
    StorageWrite,
    /// The tiers in memory themselves.
    MemoryTiers,
    /// Entries for the tiers in memory behind other operations, and behind what is pushed down for them.
    LaneWait,
    /// Generating.
    Generation,
    /// Entries that were not there, and the worker itself.
    Other,
}

impl Part {
    /// Its key in reports.
    pub fn key(self) -> &'static str {
        match self {
            Self::QueueWait => "queue_wait",
            Self::StorageRead => "storage_read",
            Self::StorageWrite => "storage_write",
            Self::MemoryTiers => "memory_tiers",
            Self::LaneWait => "lane_wait",
            Self::Generation => "generation",
            Self::Other => "other",
        }
    }
}

/// What takes the most time.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    /// It; none when nothing was served.
    pub part: Option<Part>,
    /// Its part of end-to-end latency, from 0 to 1.
    pub share: f64,
    /// The same in words.
    pub sentence: String,
    /// Every part of end-to-end latency; together 1, or 0 when nothing was served.
    pub shares: [(Part, f64); 7],
}

impl StorageSummary {
    /// Where the time went. Touched entries are those of the window, requests those that ended in it, so the
    /// time on entries is divided in the proportions of what was touched.
    pub fn bottleneck(&self) -> Bottleneck {
        let shares = self.shares();
        let (part, share) =
            shares.into_iter().fold(shares[0], |most, one| if one.1 > most.1 { one } else { most });
        if share == 0.0 {
            let sentence = "nothing was served, so there is nothing to divide".to_owned();
            return Bottleneck { part: None, share, sentence, shares };
        }
        Bottleneck { part: Some(part), share, sentence: self.sentence(part, share), shares }
    }

    fn shares(&self) -> [(Part, f64); 7] {
        let requests = &self.requests;
        let end_to_end = requests.end_to_end.mean;
        let of_total = |ms: f64| ratio(ms, end_to_end);
        let time = &self.touches.time;
        let touched = |span: Nanos| {
            of_total(requests.storage.mean) * ratio(span.as_seconds(), time.total().as_seconds())
        };
        let known = [
            (Part::QueueWait, of_total(requests.waited.mean)),
            (Part::StorageRead, touched(time.storage_read)),
            (Part::StorageWrite, touched(time.storage_write)),
            (Part::MemoryTiers, touched(time.memory)),
            (Part::LaneWait, touched(time.lane_wait)),
            (Part::Generation, of_total(requests.generation.mean)),
        ];
        let whole = if end_to_end > 0.0 { 1.0 } else { 0.0 };
        let rest = whole - known.iter().map(|(_, share)| share).sum::<f64>();
        let [wait, read, write, memory, lane, generation] = known;
        [wait, read, write, memory, lane, generation, (Part::Other, rest.max(0.0))]
    }

    fn sentence(&self, part: Part, share: f64) -> String {
        let time = &self.touches.time;
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        let divided = |device: Nanos, total: Nanos| {
            let at_device = (ratio(device.as_seconds(), total.as_seconds()).min(1.0) * 100.0).round();
            format!(", of which {at_device} % at the device and {} % waiting for it", 100.0 - at_device)
        };
        let (name, meaning) = match part {
            Part::QueueWait => ("queue wait", "; requests come faster than they are served".to_owned()),
            Part::StorageRead => ("storage reads", divided(time.storage_read_device, time.storage_read)),
            Part::StorageWrite => ("storage writes", divided(time.storage_write_device, time.storage_write)),
            Part::MemoryTiers => ("memory tiers", "; copies in memory".to_owned()),
            Part::LaneWait => self.waiting(),
            Part::Generation => {
                let pace = self.setting.generation_ns_per_token as f64 / 1e6;
                ("generation", format!("; it is paced at {pace} ms a token, storage is not what limits"))
            }
            Part::Other => ("other", "; entries that were not there, and the workers themselves".to_owned()),
        };
        format!("{name}: {} of end-to-end latency{meaning}", percent(share))
    }

    /// What entries for memory wait for: the drive, where it did anything at all.
    fn waiting(&self) -> (&'static str, String) {
        let Traffic { reads, writes, .. } = self.traffic(TierRole::Storage);
        let (name, meaning) = if reads + writes > 0 {
            (
                "waiting for storage",
                "; entries for memory behind the drive, and behind what is pushed down for them",
            )
        } else {
            ("waiting for other operations", "; entries for memory behind each other, storage had no traffic")
        };
        (name, meaning.to_owned())
    }
}
