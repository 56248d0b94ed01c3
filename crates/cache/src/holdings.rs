//! Which worker holds which prefix: the index a router asks before it places a request.
//!
//! Two things are known per worker and block: whether the block is in the worker's cache, and how many
//! running requests sent there have it in their prompt. Blocks come in the groups of their keys, each group
//! with a list of the workers that have to do with it, so one walk along a prompt answers for all workers;
//! its cost is the prompt's groups and the holders of each, not workers times blocks. What is in tiers that
//! all workers share is noted once.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wavetank_model::{BlockKey, WorkerId};

const PER_GROUP: usize = BlockKey::PER_GROUP as usize;
/// Tiers behind a worker's cache that can be told of.
pub const MOST_TIERS: usize = 3;
/// "No holder".
const NONE: u32 = u32::MAX;

/// Which blocks of a group each tier has, from the fastest.
type Behind = [u8; MOST_TIERS];
const NOTHING: Behind = [0; MOST_TIERS];

/// How far each worker agrees with a prompt, in blocks from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// In its cache.
    pub cached: u32,
    /// Behind those, in the first tier behind its cache.
    pub host: u32,
    /// The same in the tiers behind that, where the first does not have them.
    pub disk: u32,
    /// In the prompts of requests that run there.
    pub live: u32,
}

/// The groups a running request keeps alive on its worker, for giving them back.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    holders: Vec<(u32, u8)>,
}

#[derive(Debug)]
struct Holder {
    worker: u32,
    group: u32,
    next: u32,
    /// Blocks in the worker's cache.
    cached: u8,
    /// Blocks in the tiers behind it alone.
    behind: Behind,
    /// Running requests per block.
    live: [u32; PER_GROUP],
}

impl Holder {
    fn is_idle(&self) -> bool {
        self.cached == 0 && self.behind == NOTHING && self.live == [0; PER_GROUP]
    }

    fn live_mask(&self) -> u8 {
        self.live.iter().enumerate().fold(0, |mask, (slot, &count)| mask | u8::from(count > 0) << slot)
    }
}

#[derive(Debug)]
struct Group {
    key: u64,
    first: u32,
    /// Blocks in the tiers behind all workers.
    shared: Behind,
}

/// The index.
#[derive(Debug)]
pub struct Holdings {
    index: HashTable<u32>,
    groups: Vec<Group>,
    vacant_groups: Vec<u32>,
    holders: Vec<Holder>,
    vacant_holders: Vec<u32>,
    /// Distinct live blocks of each worker.
    live_blocks: Vec<u32>,
}

impl Holdings {
    /// An empty index over this many workers.
    pub fn of(workers: u32) -> Self {
        Self {
            index: HashTable::new(),
            groups: Vec::new(),
            vacant_groups: Vec::new(),
            holders: Vec::new(),
            vacant_holders: Vec::new(),
            live_blocks: vec![0; workers as usize],
        }
    }

    /// Distinct prompt blocks of the requests that run on `worker`.
    pub fn live_blocks(&self, worker: WorkerId) -> u32 {
        self.live_blocks[worker.index()]
    }

    /// There is a worker with this number, which may be higher than any before.
    pub fn admit(&mut self, worker: WorkerId) {
        let workers = self.live_blocks.len().max(worker.index() + 1);
        self.live_blocks.resize(workers, 0);
    }

    /// Nothing is in the cache of `worker` any more; requests that run there keep what they claim.
    pub fn forget(&mut self, worker: WorkerId) {
        let of_worker = |holder: &Holder| holder.worker == worker.0 && holder.cached != 0;
        for number in 0..self.holders.len() {
            if of_worker(&self.holders[number]) {
                self.holders[number].cached = 0;
                self.drop_if_idle(number as u32);
            }
        }
    }

    /// How far each worker agrees with a prompt; `overlaps` has one entry per worker.
    pub fn overlaps(&self, keys: impl Iterator<Item = BlockKey>, overlaps: &mut [Overlap]) {
        overlaps.fill(Overlap::default());
        for stretch in stretches(keys) {
            let Stretch { group, slots, first_block } = stretch;
            let Some(number) = self.group(group) else { return };
            let last_block = stretch.last_block();
            let mut goes_on = false;
            let Group { first: mut next, shared, .. } = self.groups[number as usize];
            while next != NONE {
                let holder = &self.holders[next as usize];
                let overlap = &mut overlaps[holder.worker as usize];
                if overlap.cached == first_block {
                    overlap.cached += leading(holder.cached, slots);
                }
                if overlap.live == first_block {
                    overlap.live += leading(holder.live_mask(), slots);
                }
                let behind = std::array::from_fn(|tier| holder.behind[tier] | shared[tier]);
                goes_on |= stretch.follow_behind(behind, overlap);
                goes_on |= overlap.cached == last_block || overlap.live == last_block;
                next = holder.next;
            }
            if shared != NOTHING {
                // A holder was led past all of that before, up to where it does not go on.
                for overlap in overlaps.iter_mut() {
                    goes_on |= stretch.follow_behind(shared, overlap);
                }
            }
            if !goes_on {
                return;
            }
        }
    }

    /// Blocks entered the cache of `worker`: the slots of `group` in `slots`.
    pub fn store(&mut self, worker: WorkerId, group: u64, slots: u8) {
        let holder = self.holder_for(worker, group);
        self.holders[holder as usize].cached |= slots;
    }

    /// Blocks left the cache of `worker`. What was never stored is ignored.
    pub fn remove(&mut self, worker: WorkerId, group: u64, slots: u8) {
        let Some(number) = self.group(group) else { return };
        let holder = self.find_holder(worker, number);
        if holder != NONE {
            self.holders[holder as usize].cached &= !slots;
            self.drop_if_idle(holder);
        }
    }

    /// Blocks entered a tier behind the cache of `worker`, counted from the fastest.
    pub fn store_behind(&mut self, worker: WorkerId, tier: u8, group: u64, slots: u8) {
        let holder = self.holder_for(worker, group);
        self.holders[holder as usize].behind[tier as usize] |= slots;
    }

    /// Blocks left a tier behind the cache of `worker`. What was never stored is ignored.
    pub fn remove_behind(&mut self, worker: WorkerId, tier: u8, group: u64, slots: u8) {
        let Some(number) = self.group(group) else { return };
        let holder = self.find_holder(worker, number);
        if holder != NONE {
            self.holders[holder as usize].behind[tier as usize] &= !slots;
            self.drop_if_idle(holder);
        }
    }

    /// Blocks entered a tier behind all workers, counted from the fastest.
    pub fn store_shared(&mut self, tier: u8, group: u64, slots: u8) {
        let group = self.group_for(group);
        self.groups[group as usize].shared[tier as usize] |= slots;
    }

    /// Blocks left a tier behind all workers. What was never stored is ignored.
    pub fn remove_shared(&mut self, tier: u8, group: u64, slots: u8) {
        let Some(number) = self.group(group) else { return };
        self.groups[number as usize].shared[tier as usize] &= !slots;
        self.drop_group_if_idle(number);
    }

    /// A request with these prompt blocks runs on `worker` from now on.
    pub fn claim(&mut self, worker: WorkerId, keys: impl Iterator<Item = BlockKey>) -> Claim {
        let mut claim = Claim::default();
        for Stretch { group, slots, .. } in stretches(keys) {
            let holder = self.holder_for(worker, group);
            for slot in slots_in(slots) {
                let count = &mut self.holders[holder as usize].live[slot];
                self.live_blocks[worker.index()] += u32::from(*count == 0);
                *count += 1;
            }
            claim.holders.push((holder, slots));
        }
        claim
    }

    /// The request of `claim` has ended.
    pub fn release(&mut self, claim: Claim) {
        for (number, slots) in claim.holders {
            let holder = &mut self.holders[number as usize];
            let worker = holder.worker as usize;
            for slot in slots_in(slots) {
                holder.live[slot] -= 1;
                self.live_blocks[worker] -= u32::from(holder.live[slot] == 0);
            }
            self.drop_if_idle(number);
        }
    }

    fn group(&self, key: u64) -> Option<u32> {
        self.index.find(key, |&number| self.groups[number as usize].key == key).copied()
    }

    fn find_holder(&self, worker: WorkerId, group: u32) -> u32 {
        let mut holder = self.groups[group as usize].first;
        while holder != NONE && self.holders[holder as usize].worker != worker.0 {
            holder = self.holders[holder as usize].next;
        }
        holder
    }

    /// The holder of `worker` in the group `key`; both are made if they are not there.
    fn holder_for(&mut self, worker: WorkerId, key: u64) -> u32 {
        let group = self.group_for(key);
        let found = self.find_holder(worker, group);
        if found != NONE {
            return found;
        }
        let next = self.groups[group as usize].first;
        let (behind, live) = (NOTHING, [0; PER_GROUP]);
        let holder = Holder { worker: worker.0, group, next, cached: 0, behind, live };
        let number = place(&mut self.holders, &mut self.vacant_holders, holder);
        self.groups[group as usize].first = number;
        number
    }

    fn group_for(&mut self, key: u64) -> u32 {
        let Self { index, groups, vacant_groups, .. } = self;
        let same = |&number: &u32| groups[number as usize].key == key;
        let vacant = match index.entry(key, same, |&number| groups[number as usize].key) {
            Entry::Occupied(occupied) => return *occupied.get(),
            Entry::Vacant(vacant) => vacant,
        };
        let number = vacant_groups.last().copied().unwrap_or(groups.len() as u32);
        vacant.insert(number);
        place(groups, vacant_groups, Group { key, first: NONE, shared: NOTHING })
    }

    /// Takes a holder with nothing left out of its group, and the group out of the index with its last one.
    fn drop_if_idle(&mut self, number: u32) {
        let Holder { group, next, .. } = self.holders[number as usize];
        if !self.holders[number as usize].is_idle() {
            return;
        }
        let first = self.groups[group as usize].first;
        if first == number {
            self.groups[group as usize].first = next;
        } else {
            let mut before = first;
            while self.holders[before as usize].next != number {
                before = self.holders[before as usize].next;
            }
            self.holders[before as usize].next = next;
        }
        self.vacant_holders.push(number);
        self.drop_group_if_idle(group);
    }

    /// Takes a group that nobody has anything of out of the index.
    fn drop_group_if_idle(&mut self, number: u32) {
        let Group { key, first, shared } = self.groups[number as usize];
        if first == NONE && shared == NOTHING {
            if let Ok(entry) = self.index.find_entry(key, |&found| found == number) {
                entry.remove();
            }
            self.vacant_groups.push(number);
        }
    }
}

/// Puts `value` into a vacant place or a new one.
fn place<T>(values: &mut Vec<T>, vacant: &mut Vec<u32>, value: T) -> u32 {
    match vacant.pop() {
        Some(number) => {
            values[number as usize] = value;
            number
        }
        None => {
            values.push(value);
            values.len() as u32 - 1
        }
    }
}

/// Neighbouring keys of one group.
struct Stretch {
    group: u64,
    slots: u8,
    first_block: u32,
}

impl Stretch {
    fn last_block(&self) -> u32 {
        self.first_block + self.slots.count_ones()
    }

    /// Goes on where the worker of `overlap` was led so far, as long as tiers have what comes without a gap.
    /// Whether that led to the end.
    fn follow_behind(&self, behind: Behind, overlap: &mut Overlap) -> bool {
        let reach = overlap.cached + overlap.host + overlap.disk;
        if behind == NOTHING || !(self.first_block..self.last_block()).contains(&reach) {
            return false;
        }
        let from = self.slots.trailing_zeros() + reach - self.first_block;
        let wanted = self.slots & (0xff << from) as u8;
        let run = crate::leading(behind.iter().fold(0, |all, tier| all | tier), wanted);
        let host = run & behind[0];
        overlap.host += host.count_ones();
        overlap.disk += (run & !host).count_ones();
        reach + run.count_ones() == self.last_block()
    }
}

fn stretches(keys: impl Iterator<Item = BlockKey>) -> impl Iterator<Item = Stretch> {
    let mut keys = keys.peekable();
    let mut block = 0;
    std::iter::from_fn(move || {
        let BlockKey { group, slot } = keys.next()?;
        let first_block = block;
        let mut slots = 1u8 << slot;
        block += 1;
        while let Some(key) = keys.next_if(|key| key.group == group) {
            slots |= 1 << key.slot;
            block += 1;
        }
        Some(Stretch { group, slots, first_block })
    })
}

/// How many of the lowest `wanted` slots are in `there`, without a gap.
fn leading(there: u8, wanted: u8) -> u32 {
    crate::leading(there, wanted).count_ones()
}

fn slots_in(mask: u8) -> impl Iterator<Item = usize> {
    (0..PER_GROUP).filter(move |slot| mask & 1 << slot != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn leading_slots_stop_at_the_first_gap() {
        assert_eq!(leading(0b1111_1111, 0b1111_1111), 8);
        assert_eq!(leading(0b0000_0111, 0b1111_1111), 3);
        assert_eq!(leading(0b1111_0111, 0b1111_1111), 3);
        assert_eq!(leading(0b1111_0000, 0b1111_0000), 4);
        assert_eq!(leading(0, 0b1111_0000), 0);
    }

    /// A prompt of `length` blocks; families differ from block `fork` on.
    fn keys(family: u8, fork: u8, length: u8) -> impl Iterator<Item = BlockKey> {
        (0..length).map(move |block| BlockKey {
            group: 1 + u64::from(block / 4) * 100 + if block < fork { 0 } else { 10 + u64::from(family) },
            slot: u32::from(block % 4),
        })
    }

    #[derive(Clone, Debug)]
    enum Step {
        Store(u8, u8, u8),
        Remove(u8, u8),
        StoreBehind(u8, u8, u8, u8),
        RemoveBehind(u8),
        Claim(u8, u8, u8),
        Release(u8),
        Forget(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u8..3, 0u8..3, 1u8..12)
                .prop_map(|(worker, family, length)| Step::Store(worker, family, length)),
            (0u8..3, 0u8..40).prop_map(|(worker, which)| Step::Remove(worker, which)),
            (0u8..=ALL, 0u8..3, 0u8..3, 0u8..12)
                .prop_map(|(worker, tier, family, block)| Step::StoreBehind(worker, tier, family, block)),
            any::<u8>().prop_map(Step::RemoveBehind),
            (0u8..3, 0u8..3, 1u8..12)
                .prop_map(|(worker, family, length)| Step::Claim(worker, family, length)),
            any::<u8>().prop_map(Step::Release),
            (0u8..3).prop_map(Step::Forget),
        ]
    }

    type Running = Vec<(u8, Vec<BlockKey>, Claim)>;
    /// Worker, tier and block.
    type HeldBehind = Vec<(u8, u8, BlockKey)>;
    /// Stands for all three workers.
    const ALL: u8 = 3;

    /// The same answers from lists of keys.
    fn check(
        holdings: &Holdings,
        cached: &[Vec<BlockKey>],
        behind: &HeldBehind,
        running: &Running,
    ) -> Result<(), TestCaseError> {
        let mut overlaps = [Overlap::default(); 3];
        let mine = |worker: u8| running.iter().filter(move |run| run.0 == worker).flat_map(|run| &run.1);
        for family in 0..3 {
            holdings.overlaps(keys(family, 5, 12), &mut overlaps);
            for worker in 0..3u8 {
                let in_cache = keys(family, 5, 12).take_while(|key| cached[worker as usize].contains(key));
                let live = keys(family, 5, 12).take_while(|key| mine(worker).any(|held| held == key));
                let in_cache = in_cache.count();
                let (mut host, mut disk) = (0, 0);
                for key in keys(family, 5, 12).skip(in_cache) {
                    let has = |tier| [worker, ALL].iter().any(|&who| behind.contains(&(who, tier, key)));
                    match (has(0), has(1) || has(2)) {
                        (true, _) => host += 1,
                        (false, true) => disk += 1,
                        (false, false) => break,
                    }
                }
                let expected = Overlap { cached: in_cache as u32, host, disk, live: live.count() as u32 };
                prop_assert_eq!(overlaps[worker as usize], expected);
            }
        }
        for worker in 0..3u8 {
            let distinct: std::collections::BTreeSet<_> = mine(worker).collect();
            prop_assert_eq!(holdings.live_blocks(WorkerId(worker.into())) as usize, distinct.len());
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn agrees_with_lists_of_keys(steps in proptest::collection::vec(step(), 0..80)) {
            let mut holdings = Holdings::of(3);
            let mut cached: Vec<Vec<BlockKey>> = vec![Vec::new(); 3];
            let mut behind = HeldBehind::new();
            let mut running: Running = Vec::new();
            for step in steps {
                match step {
                    Step::Store(worker, family, length) => for key in keys(family, 5, length) {
                        holdings.store(WorkerId(worker.into()), key.group, 1 << key.slot);
                        cached[worker as usize].push(key);
                    },
                    Step::Remove(worker, which) => {
                        let held = &mut cached[worker as usize];
                        let Some(&key) = held.get(which as usize % held.len().max(1)) else { continue };
                        holdings.remove(WorkerId(worker.into()), key.group, 1 << key.slot);
                        held.retain(|other| *other != key);
                    }
                    Step::StoreBehind(worker, tier, family, block) => {
                        // Up to four neighbours, as they are written.
                        for key in keys(family, 5, 12).skip(block.into()).take(4) {
                            match worker {
                                ALL => holdings.store_shared(tier, key.group, 1 << key.slot),
                                _ => holdings.store_behind(
                                    WorkerId(worker.into()), tier, key.group, 1 << key.slot,
                                ),
                            }
                            behind.push((worker, tier, key));
                        }
                    }
                    Step::RemoveBehind(which) => if !behind.is_empty() {
                        let gone = behind[which as usize % behind.len()];
                        let (worker, tier, key) = gone;
                        match worker {
                            ALL => holdings.remove_shared(tier, key.group, 1 << key.slot),
                            _ => holdings.remove_behind(
                                WorkerId(worker.into()), tier, key.group, 1 << key.slot,
                            ),
                        }
                        behind.retain(|&other| other != gone);
                    },
                    Step::Claim(worker, family, length) => {
                        let claim = holdings.claim(WorkerId(worker.into()), keys(family, 5, length));
                        running.push((worker, keys(family, 5, length).collect(), claim));
                    }
                    Step::Forget(worker) => {
                        holdings.forget(WorkerId(worker.into()));
                        cached[worker as usize].clear();
                    }
                    Step::Release(which) => if !running.is_empty() {
                        let (_, _, claim) = running.remove(which as usize % running.len());
                        holdings.release(claim);
                    },
                }
                check(&holdings, &cached, &behind, &running)?;
            }
            for (_, _, claim) in running {
                holdings.release(claim);
            }
            let held = cached.iter().map(Vec::len).sum::<usize>() + behind.len();
            prop_assert!(holdings.holders.len() - holdings.vacant_holders.len() <= held);
            let groups = holdings.groups.len() - holdings.vacant_groups.len();
            prop_assert!(groups <= held && groups == holdings.index.len());
        }
    }
}
