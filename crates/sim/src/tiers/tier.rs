//! One tier: what it holds, what is under way there, and what will be written as soon as it is time.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use smallvec::{SmallVec, smallvec};
use wavetank_cache::{Begun, BusyGroup, Shelf};
use wavetank_model::{
    Nanos, Operation, RequestId, Result, ServeEvent, ServeSink, TierEvent, TierObject, TierRoom, WorkerId,
};

use super::TierWork;
use super::load::Arrived;
use crate::media::{self, Medium};
use crate::{EngineConfig, TierUnit, TierWrite};

/// A tier that several may see.
pub(crate) type TierRef = Rc<RefCell<Tier>>;

/// One tier.
pub(crate) struct Tier {
    number: u8,
    block_bytes: u64,
    unit: TierUnit,
    write: TierWrite,
    pub(super) shelf: Shelf,
    medium: Box<dyn Medium>,
    /// Where what it gives up goes.
    below: Option<TierRef>,
    /// Writes that begin later.
    ahead: BinaryHeap<Reverse<Ahead>>,
    written: u64,
    transfers: Vec<Option<Moving>>,
    vacant: Vec<u32>,
    /// Ended reads that somebody waits for.
    pub(super) arrived: Vec<Arrived>,
    /// Lists to be used again.
    spare: Vec<Vec<TierObject>>,
    /// Nothing has happened after this.
    at: Nanos,
    /// When the next thing happens.
    next: Option<Nanos>,
    busy: Busy,
    /// The most blocks it has held, those on their way included.
    most_held: u64,
    /// Reads under way.
    readers: u32,
    bytes_read: u64,
    bytes_written: u64,
}

/// Blocks to be written at a time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ahead {
    at: Nanos,
    worker: WorkerId,
    number: u64,
    objects: Vec<TierObject>,
}

/// What one transfer moves: most move one object.
pub(super) type Objects = SmallVec<[TierObject; 1]>;

/// A transfer under way.
struct Moving {
    worker: WorkerId,
    /// For whom it is read.
    reader: Option<Reader>,
    objects: Objects,
    places: SmallVec<[BusyGroup; 1]>,
    began: Nanos,
}

/// Who waits for what is read.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    pub(super) worker: WorkerId,
    pub(super) request: RequestId,
    pub(super) load: u64,
}

/// How long something was under way.
#[derive(Default)]
struct Busy {
    transfers: u32,
    since: Nanos,
    total: Nanos,
}

impl Tier {
    /// An empty tier; `seed` is of its medium's draws.
    pub(super) fn build(config: &EngineConfig, number: u8, seed: u64) -> Result<Self> {
        let tier = &config.tiers[number as usize];
        let block_bytes = u64::from(config.block_size) * u64::from(config.transfer.kv_bytes_per_token);
        Ok(Self {
            number,
            block_bytes,
            unit: tier.unit,
            write: tier.write,
            shelf: Shelf::with_capacity(tier.capacity_bytes / block_bytes),
            medium: tier.medium.build(seed)?,
            below: None,
            ahead: BinaryHeap::new(),
            written: 0,
            transfers: Vec::new(),
            vacant: Vec::new(),
            arrived: Vec::new(),
            spare: Vec::new(),
            at: Nanos::ZERO,
            next: None,
            busy: Busy::default(),
            most_held: 0,
            readers: 0,
            bytes_read: 0,
            bytes_written: 0,
        })
    }

    /// What it gives up goes to `below`, if that is what `below` is written from.
    pub(super) fn lead_to(&mut self, below: &TierRef) {
        if below.borrow().write == TierWrite::Evict {
            self.below = Some(Rc::clone(below));
        }
    }

    /// When the next thing happens here.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.next
    }

    /// Whether anybody waits for what is read here.
    pub(crate) fn is_read(&self) -> bool {
        self.readers > 0
    }

    fn look_ahead(&mut self) {
        let write = self.ahead.peek().map(|Reverse(ahead)| ahead.at.max(self.at));
        self.next = write.into_iter().chain(self.medium.next()).min();
    }

    /// Blocks are written from `at` on, those that are not there or on their way then.
    pub(super) fn write_at(&mut self, at: Nanos, worker: WorkerId, objects: &[TierObject]) {
        let mut list = self.spare.pop().unwrap_or_default();
        list.extend_from_slice(objects);
        self.written += 1;
        self.ahead.push(Reverse(Ahead { at, worker, number: self.written, objects: list }));
        let at = at.max(self.at);
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// Blocks that are there are read from `now` on. In how many transfers.
    pub(super) fn read(&mut self, now: Nanos, reader: Reader, objects: &[TierObject]) -> u32 {
        let mut count = 0;
        match self.unit {
            TierUnit::Batch => {
                self.begin_read(now, reader, Objects::from_slice(objects));
                count += 1;
            }
            TierUnit::Object => {
                for object in objects {
                    let parts: SmallVec<[TierObject; 8]> =
                        self.shelf.parts(object.group, object.slots).collect();
                    count += parts.len() as u32;
                    parts.into_iter().for_each(|part| self.begin_read(now, reader, smallvec![part]));
                }
            }
        }
        self.look_ahead();
        count
    }

    fn begin_read(&mut self, now: Nanos, reader: Reader, objects: Objects) {
        self.readers += 1;
        let places = objects.iter().map(|object| self.shelf.begin_read(object.group)).collect();
        let moving = Moving { worker: reader.worker, reader: Some(reader), objects, places, began: now };
        self.begin(moving, now);
    }

    fn begin(&mut self, moving: Moving, now: Nanos) {
        let bytes = self.bytes_of(&moving.objects);
        let operation = moving.operation();
        let id = match self.vacant.pop() {
            Some(id) => {
                self.transfers[id as usize] = Some(moving);
                id
            }
            None => {
                self.transfers.push(Some(moving));
                self.transfers.len() as u32 - 1
            }
        };
        self.at = self.at.max(now);
        self.busy.begin(self.at);
        let room = self.room();
        let transfer = media::Transfer { id: id.into(), operation, bytes, room, apart: None };
        self.medium.begin(transfer, self.at);
    }

    /// Whether it holds more than ever before, what begins included.
    fn room(&mut self) -> TierRoom {
        let is_new = self.shelf.used() > self.most_held;
        self.most_held = self.most_held.max(self.shelf.used());
        if is_new { TierRoom::New } else { TierRoom::Used }
    }

    fn bytes_of(&self, objects: &[TierObject]) -> u64 {
        objects.iter().map(|object| u64::from(object.slots.count_ones())).sum::<u64>() * self.block_bytes
    }

    /// Everything that happens up to `until`, in its order; at one time, what ends comes before what begins.
    pub(crate) fn advance(&mut self, until: Nanos, sink: &mut ServeSink<'_>) {
        if self.next.is_none_or(|next| next > until) {
            return;
        }
        loop {
            let write = self.ahead.peek().map(|Reverse(ahead)| ahead.at.max(self.at));
            let write = write.filter(|&at| at <= until);
            let limit = write.unwrap_or(until);
            while let Some((id, at)) = self.medium.end(limit) {
                self.end(id as u32, at, sink);
            }
            let Some(at) = write else { break };
            if let Some(Reverse(ahead)) = self.ahead.pop() {
                self.begin_writes(ahead, at, sink);
            }
        }
        self.at = self.at.max(until.min(self.busy.last()));
        self.look_ahead();
    }

    fn begin_writes(&mut self, ahead: Ahead, now: Nanos, sink: &mut ServeSink<'_>) {
        let Ahead { worker, mut objects, .. } = ahead;
        let mut batch = Moving::to_write(worker, now);
        if self.unit == TierUnit::Batch {
            batch.objects.reserve(objects.len());
            batch.places.reserve(objects.len());
        }
        self.shelf.warm(&objects);
        let mut evicted = self.spare.pop().unwrap_or_default();
        let mut dropped = 0;
        for &TierObject { group, slots } in &objects {
            let mut left = slots;
            while left != 0 {
                match self.shelf.begin_write(TierObject { group, slots: left }, &mut evicted) {
                    Begun::Known => break,
                    Begun::NoRoom(blocks) => {
                        dropped += blocks;
                        break;
                    }
                    Begun::Writes(place, slots) => {
                        left &= !slots & !(slots - 1);
                        batch.objects.push(TierObject { group, slots });
                        batch.places.push(place);
                    }
                }
                if self.unit == TierUnit::Object {
                    self.begin(std::mem::replace(&mut batch, Moving::to_write(worker, now)), now);
                }
            }
        }
        if !batch.objects.is_empty() {
            self.begin(batch, now);
        }
        objects.clear();
        self.spare.push(objects);
        if dropped > 0 {
            let (tier, blocks, at) = (self.number, dropped, now);
            sink.record(&ServeEvent::Tier(TierEvent::Dropped { worker, tier, blocks, at }));
        }
        if !evicted.is_empty() {
            self.give_up(worker, now, &evicted, sink);
        }
        evicted.clear();
        self.spare.push(evicted);
    }

    /// Blocks made room for others, and go to the tier below if that is what it is for.
    fn give_up(&self, worker: WorkerId, at: Nanos, evicted: &[TierObject], sink: &mut ServeSink<'_>) {
        let (tier, blocks) = (self.number, evicted.iter().map(|object| object.slots.count_ones()).sum());
        sink.record(&ServeEvent::Tier(TierEvent::Evicted { worker, tier, blocks, at }));
        if let Some(below) = &self.below {
            below.borrow_mut().write_at(at, worker, evicted);
        }
    }

    fn end(&mut self, id: u32, at: Nanos, sink: &mut ServeSink<'_>) {
        let Moving { worker, reader, objects, places, began } =
            self.transfers[id as usize].take().expect("it was under way");
        self.vacant.push(id);
        self.at = self.at.max(at);
        self.busy.end(at);
        let bytes = self.bytes_of(&objects);
        let operation = if reader.is_some() { Operation::Read } else { Operation::Write };
        sink.record(&ServeEvent::Tier(TierEvent::Moved {
            worker,
            tier: self.number,
            operation,
            request: reader.map(|reader| reader.request),
            objects: &objects,
            bytes,
            began,
            ended: at,
        }));
        let moved = places.iter().zip(&objects).rev();
        match reader {
            None => {
                self.bytes_written += bytes;
                moved.for_each(|(&place, object)| self.shelf.end_write(place, object.slots));
            }
            Some(Reader { worker, load, .. }) => {
                self.bytes_read += bytes;
                self.readers -= 1;
                moved.for_each(|(&place, _)| self.shelf.end_read(place));
                self.arrived.push(Arrived { worker, load, at, objects });
            }
        }
    }

    /// Adds what it did.
    pub(super) fn add_to(&self, sum: &mut TierWork) {
        sum.instances += 1;
        sum.capacity_blocks += self.shelf.capacity();
        sum.held_blocks += self.shelf.used();
        sum.bytes_read += self.bytes_read;
        sum.bytes_written += self.bytes_written;
        sum.until = sum.until.max(self.at);
        sum.busy += self.busy.total_at(self.at);
    }
}

impl Moving {
    /// A write of nothing yet.
    fn to_write(worker: WorkerId, began: Nanos) -> Self {
        Self { worker, reader: None, objects: Objects::new(), places: SmallVec::new(), began }
    }

    fn operation(&self) -> Operation {
        if self.reader.is_some() { Operation::Read } else { Operation::Write }
    }
}

impl Busy {
    fn begin(&mut self, now: Nanos) {
        if self.transfers == 0 {
            self.since = now;
        }
        self.transfers += 1;
    }

    fn end(&mut self, now: Nanos) {
        self.transfers -= 1;
        if self.transfers == 0 {
            self.total += now - self.since;
        }
    }

    fn total_at(&self, now: Nanos) -> Nanos {
        if self.transfers > 0 { self.total + now.since(self.since) } else { self.total }
    }

    /// Up to when time may be said to have passed: always, while something is under way.
    fn last(&self) -> Nanos {
        if self.transfers > 0 { Nanos::MAX } else { Nanos::ZERO }
    }
}
