//! What is measured and where, and what follows from it: which points there are and how much room they take.

use std::collections::BTreeMap;
use std::ops::Range;

use wavetank_model::{Operation, TierRoom};
use wavetank_store::backends;
use wavetank_store::buffer::PIECE;

use super::set::{MOST_REPEATS, Turns};

/// What is measured, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbePlan {
    /// What holds the bytes.
    pub backend: String,
    /// Where; empty where there is nothing to say.
    pub location: String,
    /// Options of the backend.
    pub options: BTreeMap<String, String>,
    /// Bytes of an entry, smallest first.
    pub sizes: Vec<u64>,
    /// Operations in flight, fewest first.
    pub depths: Vec<u32>,
    /// Shares of reads.
    pub read_shares: Vec<f64>,
    /// Points with more bytes in flight are left out.
    pub in_flight_bytes_max: u64,
    /// Threads that ask, each with a lane of its own; no more of them than operations in flight.
    pub threads: u32,
    /// How often all points are gone through.
    pub passes: u32,
    /// How long a point is measured, in all passes together.
    pub seconds_per_point: f64,
    /// How long writing goes on; not at all when 0.
    pub sustained_seconds: f64,
    /// How much of each size is written before anything is measured, at most.
    pub working_set_bytes: u64,
    /// How many entries of each size that is, at most.
    pub entries_max: u64,
    /// Entries and contents follow from it.
    pub seed: u64,
}

/// One point to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) read_share: f64,
    pub(crate) room: TierRoom,
    pub(crate) bytes: u64,
    pub(crate) depth: u32,
}

/// Writing that goes on, and what is read again, is of entries about this long: a piece, which every device
/// takes as one request.
const USUAL_BYTES: u64 = PIECE as u64;
/// How far apart reads of one entry are at first, and how often that is doubled: from what a core has near
/// it to more than most processors keep.
const NEAREST_BYTES: u64 = 2 << 20;
const DOUBLINGS: u32 = 7;
/// What an entry takes besides its bytes, at most: a header, and what is missing to a whole block.
const ENTRY_EXTRA_BYTES: u64 = 8 << 10;

impl ProbePlan {
    /// How many points there are.
    pub fn points(&self) -> usize {
        self.loads().len()
    }

    /// How many of all combinations are left out, since too much would be in flight.
    pub fn left_out(&self) -> usize {
        self.sizes.len() * self.depths.len() * self.kinds().len() - self.points()
    }

    /// The least working set: of every size one half that is read and one that is written, each of more
    /// entries than can be in flight.
    pub fn least_bytes(&self) -> u64 {
        let least = |bytes: &u64| bytes.saturating_mul(2).saturating_mul(self.least_half(*bytes));
        self.sizes.iter().map(least).max().unwrap_or_default()
    }

    /// What a device has to have room for: all working sets, and what is in flight beside them.
    pub fn room_bytes(&self) -> u64 {
        let halves = 2 + self.mixes().count() as u64;
        let set = |bytes: &u64| (halves * self.half(*bytes)).saturating_mul(bytes + ENTRY_EXTRA_BYTES);
        let in_flight = |bytes: &u64| self.least_half(*bytes).saturating_mul(bytes + ENTRY_EXTRA_BYTES);
        let sets = self.sizes.iter().map(set).fold(0, u64::saturating_add);
        sets.saturating_add(self.sizes.iter().map(in_flight).max().unwrap_or_default())
    }

    /// Every point, by size, then mix, then depth; reads first, since writing changes what they find.
    pub(super) fn loads(&self) -> Vec<Load> {
        let mut loads = Vec::new();
        for &bytes in &self.sizes {
            for (read_share, room) in self.kinds() {
                let depths = self.depths_of(bytes);
                loads.extend(depths.map(|depth| Load { read_share, room, bytes, depth }));
            }
        }
        loads
    }

    /// How often something is measured: what is new once, all else in every pass.
    pub fn steps(&self) -> usize {
        let passes = self.passes as usize;
        let steps = |load: &Load| match load.room {
            TierRoom::Used => passes,
            TierRoom::New => 1,
        };
        self.loads().iter().map(steps).sum::<usize>() + self.again().len() * passes
    }

    /// Which entries are moved in turn and read again, and of which length. It matters where a processor
    /// copies them, which keeps what it has copied.
    pub(super) fn again(&self) -> Vec<(Turns, Load)> {
        let is_copied = backends::backend(&self.backend).is_ok_and(|row| row.caps.is_memory());
        let Some(bytes) = self.usual_bytes().filter(|_| is_copied) else { return Vec::new() };
        let entries = (0..=DOUBLINGS).map(|doubled| (NEAREST_BYTES << doubled) / bytes);
        let mut entries: Vec<u64> = entries.filter(|count| (1..=self.half(bytes)).contains(count)).collect();
        entries.dedup();
        let load = Load { read_share: 1.0, ..Load::writes(bytes, 1) };
        let after_reads = (0..=MOST_REPEATS).map(|repeats| (Operation::Read, repeats));
        let kinds = after_reads.chain([(Operation::Write, 0)]);
        let turns =
            |(after, repeats)| entries.iter().map(move |&entries| (Turns { after, repeats, entries }, load));
        kinds.flat_map(turns).collect()
    }

    fn usual_bytes(&self) -> Option<u64> {
        self.sizes.iter().copied().min_by_key(|bytes| bytes.abs_diff(USUAL_BYTES))
    }

    /// Every mix in room that was used before, and writes into new room, alone and beside reads.
    fn kinds(&self) -> Vec<(f64, TierRoom)> {
        let used = self.read_shares.iter().map(|share| (*share, TierRoom::Used));
        used.chain([0.0].into_iter().chain(self.mixes()).map(|share| (share, TierRoom::New))).collect()
    }

    /// Shares of reads that leave something to write.
    fn mixes(&self) -> impl Iterator<Item = f64> {
        self.read_shares.iter().copied().filter(|share| *share > 0.0 && *share < 1.0)
    }

    /// Which entries of a size are written first, at each depth: those that are read and written afterwards
    /// alone, and as many as are read beside reads of each mix.
    pub(super) fn fills(&self, bytes: u64) -> Vec<(Load, Range<u64>)> {
        let half = self.half(bytes);
        let load = Load { read_share: 0.0, room: TierRoom::New, bytes, depth: 1 };
        let alone = self.fills_of(load, 0..2 * half);
        let beside = self.mixes().zip(2..).flat_map(|(read_share, number)| {
            self.fills_of(Load { read_share, ..load }, number * half..(number + 1) * half)
        });
        alone.into_iter().chain(beside).collect()
    }

    /// Entries by depth: two rounds or more and the same number besides where there are enough, else in
    /// proportion.
    fn fills_of(&self, load: Load, entries: Range<u64>) -> Vec<(Load, Range<u64>)> {
        let depths: Vec<u64> = self.depths_of(load.bytes).map(u64::from).collect();
        let (count, all) = (entries.end - entries.start, depths.iter().sum::<u64>());
        let rest = count.saturating_sub(2 * all) / depths.len().max(1) as u64;
        let mut begin = entries.start;
        let fill = |(number, depth): (usize, u64)| {
            let own = if count >= 2 * all { 2 * depth + rest } else { (count * depth / all).max(1) };
            let end = if number + 1 == depths.len() { entries.end } else { begin + own };
            (Load { depth: depth as u32, ..load }, std::mem::replace(&mut begin, end)..end)
        };
        depths.iter().copied().enumerate().map(fill).collect()
    }

    /// The most operations in flight that entries of this size are measured with; at least one.
    pub(super) fn deepest(&self, bytes: u64) -> u32 {
        self.depths_of(bytes).max().unwrap_or(1)
    }

    /// How many entries of a size are read; as many again are written.
    pub(super) fn half(&self, bytes: u64) -> u64 {
        let wanted = (self.working_set_bytes / bytes / 2).min(self.entries_max / 2);
        wanted.max(self.least_half(bytes))
    }

    pub(super) fn sustained_load(&self) -> Option<Load> {
        let nearest = self.usual_bytes()?;
        (self.sustained_seconds > 0.0).then(|| Load::writes(nearest, self.deepest(nearest)))
    }

    /// Every thread writes entries of its own, one more than it has in flight.
    fn least_half(&self, bytes: u64) -> u64 {
        let depth = self.deepest(bytes);
        let threads = self.threads.min(depth);
        u64::from(depth.div_ceil(threads) + 1) * u64::from(threads)
    }

    fn depths_of(&self, bytes: u64) -> impl Iterator<Item = u32> {
        let fits = move |depth: &u32| bytes.saturating_mul(u64::from(*depth)) <= self.in_flight_bytes_max;
        self.depths.iter().copied().filter(fits)
    }
}

/// As many pieces at the device as the benchmark's lanes have unless told otherwise.
const PIECES: usize = 32;

impl Load {
    /// Writes of one size over what is there.
    pub(super) fn writes(bytes: u64, depth: u32) -> Self {
        Self { read_share: 0.0, room: TierRoom::Used, bytes, depth }
    }

    /// How many of the operations in flight each thread has.
    pub(super) fn shares(self, threads: u32) -> Vec<u32> {
        let threads = threads.min(self.depth);
        (0..threads).map(|thread| self.depth / threads + u32::from(thread < self.depth % threads)).collect()
    }

    /// How many pieces a thread may have at the device: all of those of its operations, or as many as is
    /// usual if that is enough to have one of each there.
    pub(super) fn pieces(self, share: u32) -> usize {
        let (depth, each) = (share as usize, self.bytes.div_ceil(PIECE as u64).max(1) as usize);
        depth.saturating_mul(each).min(PIECES).max(depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: threads that have more in flight together than the point says, or none.
    #[test]
    fn threads_share_what_is_in_flight() {
        let load = |depth| Load::writes(4096, depth);
        assert_eq!(load(1).shares(4), [1]);
        assert_eq!(load(6).shares(4), [2, 2, 1, 1]);
        assert_eq!(load(64).shares(3), [22, 21, 21]);
    }

    /// Broken by: an entry that no depth writes or two do, or a depth that never has as many in flight.
    #[test]
    fn every_entry_is_written_first_at_one_depth() {
        for (working_set_bytes, least) in [(1 << 20, 1), (1 << 30, 128)] {
            let plan = ProbePlan { working_set_bytes, ..crate::probe::tests::deep_plan() };
            let fills = plan.fills(65_536);
            let mut next = 0;
            for (load, range) in &fills {
                assert_eq!((range.start, load.room), (next, TierRoom::New));
                assert!(range.end - range.start >= least.min(2 * u64::from(load.depth)), "{fills:?}");
                next = range.end;
            }
            assert_eq!(next, 3 * plan.half(65_536), "half of them is written beside reads");
        }
    }

    /// Broken by: a piece of every operation that does not fit, or a queue of small entries that is too long.
    #[test]
    fn every_operation_in_flight_has_a_piece_at_the_device() {
        let pieces = |bytes, depth| Load::writes(bytes, depth).pieces(depth);
        assert_eq!((pieces(4096, 1), pieces(4096, 16)), (1, 16));
        assert_eq!((pieces(64 << 20, 1), pieces(64 << 20, 64)), (32, 64));
    }
}
