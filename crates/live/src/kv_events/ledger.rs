//! Which blocks there are: what is in those of requests in flight, and which of them each worker has.
//!
//! Caches tell of blocks by key alone. A block that is stored was computed for a request that is in flight
//! or has just ended, so that is where its tokens are found. What is stored needs its hash only, which is
//! made of the key: memory follows what is cached and what is in flight.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use wavetank_cache::{Change, ChangeKind};
use wavetank_model::{BlockKey, InFlight, RequestId, WorkerId, mix};

use super::encode::Event;
use crate::mock::Ask;

/// What subscribers know a block by: the same for the same tokens from the start, on every worker and in
/// every run.
pub fn block_hash(key: BlockKey) -> u64 {
    mix(key.group, u64::from(key.slot))
}

/// Values by the hash of a block, which needs no more mixing.
type ByHash<T> = HashMap<u64, T, BuildHasherDefault<Mixed>>;

#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("hashes are numbers")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Passes after the end of a request in which what it computed may still be told.
const LINGERING: u64 = 4;

/// All that is known of blocks.
#[derive(Debug)]
pub(super) struct Ledger {
    block_size: u32,
    /// Blocks of requests in flight, by hash.
    blocks: ByHash<Block>,
    /// The hashes of each request's blocks.
    asked: InFlight<Vec<u64>>,
    workers: Vec<Worker>,
    /// Blocks that were stored and of which nothing is known.
    unknown: u64,
}

/// What is in a block.
#[derive(Debug)]
struct Block {
    parent: Option<u64>,
    tokens: Box<[u32]>,
    /// How many requests have it.
    requests: u32,
}

#[derive(Debug, Default)]
struct Worker {
    /// What it has, by hash: in how many caches, if it has several.
    held: ByHash<u32>,
    passes: u64,
    /// Blocks of requests that have ended, and the pass after which they are forgotten.
    lingering: VecDeque<(u64, Vec<u64>)>,
}

impl Ledger {
    pub(super) fn new(workers: u32, block_size: u32) -> Self {
        let workers = (0..workers).map(|_| Worker::default()).collect();
        Self { block_size, blocks: ByHash::default(), asked: InFlight::default(), workers, unknown: 0 }
    }

    pub(super) fn block_size(&self) -> u32 {
        self.block_size
    }

    /// How many blocks could not be told of, because nothing was known of them or of one before them.
    pub(super) fn unknown(&self) -> u64 {
        self.unknown
    }

    /// A request was handed in: its full blocks may be told of from now on, those of its answer too.
    pub(super) fn asked(&mut self, request: RequestId, ask: &Ask) {
        let known = (ask.tokens.len() as u32).min(ask.prompt.tokens() + ask.output_tokens);
        let keys = ask.prompt.content_keys(u64::from(request.0), known, 0, self.block_size);
        let shared = keys.take_while(|key| !BlockKey::is_private(key.group));
        let contents = ask.tokens.chunks_exact(self.block_size as usize);
        let mut hashes = Vec::with_capacity((known / self.block_size) as usize);
        for (key, tokens) in shared.zip(contents) {
            let (hash, parent) = (block_hash(key), hashes.last().copied());
            let block = self.blocks.entry(hash);
            block.or_insert_with(|| Block { parent, tokens: tokens.into(), requests: 0 }).requests += 1;
            hashes.push(hash);
        }
        self.asked.insert(request, hashes);
    }

    /// A request has ended, on a worker if it has reached one. What that computed last may not be told yet.
    pub(super) fn ended(&mut self, request: RequestId, worker: Option<WorkerId>) {
        let Some(hashes) = self.asked.remove(request) else { return };
        match worker {
            None => self.forget(hashes),
            Some(worker) => {
                let worker = &mut self.workers[worker.index()];
                worker.lingering.push_back((worker.passes + LINGERING, hashes));
            }
        }
    }

    /// A worker has ended a pass.
    pub(super) fn passed(&mut self, worker: WorkerId) {
        let worker = worker.index();
        self.workers[worker].passes += 1;
        while let Some(hashes) = self.workers[worker].take_due() {
            self.forget(hashes);
        }
    }

    fn forget(&mut self, hashes: Vec<u64>) {
        for hash in hashes {
            let Entry::Occupied(mut block) = self.blocks.entry(hash) else {
                unreachable!("it was asked for")
            };
            block.get_mut().requests -= 1;
            if block.get().requests == 0 {
                block.remove();
            }
        }
    }

    /// What subscribers are told of changes in the cache of a worker.
    pub(super) fn changed(&mut self, worker: WorkerId, changes: &[Change]) -> Vec<Event> {
        let mut events = Vec::new();
        for change in changes {
            let slots = (0..BlockKey::PER_GROUP).filter(|slot| change.slots & (1 << slot) != 0);
            for hash in slots.map(|slot| block_hash(BlockKey { group: change.group, slot })) {
                match change.kind {
                    ChangeKind::Stored => self.stored(worker, hash, &mut events),
                    ChangeKind::Removed => self.removed(worker, hash, &mut events),
                }
            }
        }
        events
    }

    fn stored(&mut self, worker: WorkerId, hash: u64, events: &mut Vec<Event>) {
        let held = &mut self.workers[worker.index()].held;
        if let Some(caches) = held.get_mut(&hash) {
            *caches += 1;
            return;
        }
        let block = self.blocks.get(&hash);
        let Some(block) = block.filter(|block| block.parent.is_none_or(|parent| held.contains_key(&parent)))
        else {
            self.unknown += 1;
            return;
        };
        held.insert(hash, 1);
        match events.last_mut() {
            Some(Event::Stored { hashes, tokens, .. }) if hashes.last().copied() == block.parent => {
                hashes.push(hash);
                tokens.extend_from_slice(&block.tokens);
            }
            _ => {
                let (parent, tokens) = (block.parent, block.tokens.to_vec());
                events.push(Event::Stored { hashes: vec![hash], parent, tokens });
            }
        }
    }

    fn removed(&mut self, worker: WorkerId, hash: u64, events: &mut Vec<Event>) {
        let Entry::Occupied(mut held) = self.workers[worker.index()].held.entry(hash) else { return };
        *held.get_mut() -= 1;
        if *held.get() > 0 {
            return;
        }
        held.remove();
        match events.last_mut() {
            Some(Event::Removed(hashes)) => hashes.push(hash),
            _ => events.push(Event::Removed(vec![hash])),
        }
    }
}

impl Worker {
    fn take_due(&mut self) -> Option<Vec<u64>> {
        let due = self.lingering.front().is_some_and(|&(until, _)| until <= self.passes);
        due.then(|| self.lingering.pop_front().expect("there is one").1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wavetank_model::{Priority, Prompt};

    use super::*;
    use crate::mock::Finish;

    const WORKER: WorkerId = WorkerId(0);

    /// Blocks of four tokens, each an id of the trace.
    fn ask(ids: &[u64], tokens: u32, output_tokens: u32) -> Ask {
        let all = tokens + output_tokens;
        Ask {
            prompt: Prompt::from_ids(ids.iter().copied(), all, 4).answered_after(tokens),
            tokens: (0..all).map(|token| ids[token as usize / 4] as u32 * 10 + token % 4).collect(),
            output_tokens,
            finish: Finish::Length,
            priority: Priority::default(),
        }
    }

    fn changes(ids: &[u64], kind: ChangeKind) -> Vec<Change> {
        let prompt = Prompt::from_ids(ids.iter().copied(), ids.len() as u32 * 4, 4);
        let keys = prompt.keys_from(0, 4);
        keys.map(|key| Change { group: key.group, slots: 1 << key.slot, kind }).collect()
    }

    fn hashes(ids: &[u64]) -> Vec<u64> {
        let prompt = Prompt::from_ids(ids.iter().copied(), ids.len() as u32 * 4, 4);
        prompt.keys_from(0, 4).map(block_hash).collect()
    }

    /// Broken by: an answer that is not told of, blocks told one by one, or a wrong parent.
    #[test]
    fn blocks_of_prompt_and_answer_are_told_in_chains() {
        let mut ledger = Ledger::new(1, 4);
        ledger.asked(RequestId(0), &ask(&[1, 2, 3], 6, 6));
        ledger.asked(RequestId(1), &ask(&[1, 4], 5, 3));
        let (one, other) = (hashes(&[1, 2, 3]), hashes(&[1, 4]));
        let stored =
            [&changes(&[1, 2, 3], ChangeKind::Stored)[..], &changes(&[1, 4], ChangeKind::Stored)[1..]];
        let chain = vec![10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33];
        assert_eq!(
            ledger.changed(WORKER, &stored.concat()),
            [
                Event::Stored { hashes: one.clone(), parent: None, tokens: chain },
                Event::Stored { hashes: vec![other[1]], parent: Some(one[0]), tokens: vec![40, 41, 42, 43] },
            ]
        );
        let removed = &changes(&[1, 2, 3], ChangeKind::Removed)[1..];
        assert_eq!(ledger.changed(WORKER, removed), [Event::Removed(one[1..].to_vec())]);
        assert_eq!(ledger.unknown(), 0);
    }

    /// Broken by: a block told without the one before it, or removed without having been told.
    #[test]
    fn what_nothing_is_known_of_is_counted() {
        let mut ledger = Ledger::new(1, 4);
        ledger.asked(RequestId(0), &ask(&[1, 2], 7, 1));
        assert_eq!(ledger.changed(WORKER, &changes(&[1, 2], ChangeKind::Stored)[1..]), []);
        assert_eq!(ledger.changed(WORKER, &changes(&[9], ChangeKind::Stored)), []);
        assert_eq!(ledger.changed(WORKER, &changes(&[9], ChangeKind::Removed)), []);
        assert_eq!(ledger.unknown(), 2);
    }

    /// Broken by: a block that one of two ranks has being told as gone.
    #[test]
    fn a_block_is_there_until_its_last_copy_is_gone() {
        let mut ledger = Ledger::new(1, 4);
        ledger.asked(RequestId(0), &ask(&[1], 3, 1));
        let [stored, removed] = [ChangeKind::Stored, ChangeKind::Removed].map(|kind| changes(&[1], kind));
        assert_eq!(ledger.changed(WORKER, &stored).len(), 1);
        assert_eq!(ledger.changed(WORKER, &[&stored[..], &removed].concat()), []);
        assert_eq!(ledger.changed(WORKER, &removed), [Event::Removed(hashes(&[1]))]);
    }

    /// Broken by: anything kept of requests that have ended, or of blocks that are gone.
    #[test]
    fn nothing_stays_of_what_is_nowhere() {
        let mut ledger = Ledger::new(2, 4);
        for id in 0..100u32 {
            ledger.asked(RequestId(id), &ask(&[1, u64::from(id), 3], 8, 4));
            if id % 3 == 0 {
                ledger.ended(RequestId(id), None);
                continue;
            }
            let worker = WorkerId(id % 2);
            ledger.changed(worker, &changes(&[1, u64::from(id), 3], ChangeKind::Stored));
            ledger.ended(RequestId(id), Some(worker));
            // What it computed last comes after its end, and is gone one pass later.
            ledger.passed(worker);
            ledger.changed(worker, &changes(&[1, u64::from(id), 3], ChangeKind::Removed));
        }
        assert!(ledger.blocks.len() < 40, "{} blocks of the last few", ledger.blocks.len());
        (0..LINGERING * 2).for_each(|pass| ledger.passed(WorkerId(pass as u32 % 2)));
        assert!(ledger.blocks.is_empty() && ledger.unknown() == 0);
        assert!(ledger.workers.iter().all(|worker| worker.held.is_empty() && worker.lingering.is_empty()));
    }

    /// Broken by: an order that forgets a request at its end.
    #[test]
    fn what_a_request_computed_last_is_told_after_its_end() {
        let mut ledger = Ledger::new(1, 4);
        ledger.asked(RequestId(0), &ask(&[1], 3, 1));
        ledger.ended(RequestId(0), Some(WORKER));
        ledger.passed(WORKER);
        assert_eq!(ledger.changed(WORKER, &changes(&[1], ChangeKind::Stored)).len(), 1);
        // A prompt that nobody knows the tokens of tells nothing.
        let unread = Ask { tokens: Arc::from([]), ..ask(&[7], 3, 1) };
        ledger.asked(RequestId(1), &unread);
        ledger.ended(RequestId(1), Some(WORKER));
    }
}
