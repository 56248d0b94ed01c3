//! One tier: what it holds, what is under way there, and what will be written as soon as it is time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use smallvec::SmallVec;
use wavetank_cache::{Begun, BusyGroup, Shelf};
use wavetank_model::{Nanos, Result, ServeEvent, ServeSink, TierEvent, TierObject, TierRoom, WorkerId};

use super::TierWork;
use super::load::Arrived;
use super::moving::{Reader, UnderWay};
use crate::media::{Medium, Transfer};
use crate::{EngineConfig, TierUnit, TierWrite, TransferId};

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
    takes_runs: bool,
    /// Where what it gives up goes.
    below: Option<TierRef>,
    /// Writes that begin later, in their order.
    ahead: VecDeque<Ahead>,
    under_way: UnderWay,
    /// Rows that have ended at once.
    ended: Vec<TransferId>,
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
#[derive(Debug)]
struct Ahead {
    at: Nanos,
    worker: WorkerId,
    objects: Vec<TierObject>,
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
        let medium = tier.medium.build(seed)?;
        Ok(Self {
            number,
            block_bytes,
            unit: tier.unit,
            write: tier.write,
            shelf: Shelf::with_capacity(tier.capacity_bytes / block_bytes),
            takes_runs: medium.takes_runs(),
            medium,
            below: None,
            ahead: VecDeque::new(),
            under_way: UnderWay::default(),
            ended: Vec::new(),
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
        let write = self.ahead.front().map(|ahead| ahead.at.max(self.at));
        self.next = write.into_iter().chain(self.medium.next()).min();
    }

    /// Blocks are written from `at` on, those that are not there or on their way then.
    pub(super) fn write_at(&mut self, at: Nanos, worker: WorkerId, objects: &[TierObject]) {
        let mut list = self.spare.pop().unwrap_or_default();
        list.extend_from_slice(objects);
        // Most begin after all others.
        let is_after = |other: &Ahead| (other.at, other.worker) <= (at, worker);
        let behind = self.ahead.iter().rposition(is_after).map_or(0, |last| last + 1);
        self.ahead.insert(behind, Ahead { at, worker, objects: list });
        let at = at.max(self.at);
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// Blocks that are there are read from `now` on. How often something of them arrives.
    pub(super) fn read(&mut self, now: Nanos, reader: Reader, objects: &[TierObject]) -> u32 {
        let before = self.readers;
        let mut row = self.under_way.open(reader.worker, Some(reader), now);
        for &object in objects {
            let parts: SmallVec<[TierObject; 8]> = match self.unit {
                TierUnit::Batch => SmallVec::from_iter([object]),
                TierUnit::Object => self.shelf.parts(object.group, object.slots).collect(),
            };
            for part in parts {
                let place = self.shelf.begin_read(part.group);
                row = self.add(row, part, place);
            }
        }
        self.begin(row);
        self.look_ahead();
        self.readers - before
    }

    /// One more object moves: in the same transfer, or in one of its own, in a run with those like it. Where.
    fn add(&mut self, row: u32, object: TierObject, place: BusyGroup) -> u32 {
        let (mut row, mut room) = (row, TierRoom::Used);
        if self.unit == TierUnit::Object {
            room = self.room();
            let moving = self.under_way.row(row);
            if !(moving.objects.is_empty() || self.takes_runs && moving.is_like(object, room)) {
                let next = (moving.worker, moving.reader, moving.began);
                self.begin(row);
                row = self.under_way.open(next.0, next.1, next.2);
            }
        }
        let moving = self.under_way.row_mut(row);
        moving.room = room;
        moving.objects.push(object);
        moving.places.push(place);
        row
    }

    /// What is in a row begins to move, if there is anything in it.
    fn begin(&mut self, row: u32) {
        if self.under_way.row(row).objects.is_empty() {
            return self.under_way.close(row);
        }
        let room = match self.unit {
            TierUnit::Batch => self.room(),
            TierUnit::Object => self.under_way.row(row).room,
        };
        let moving = self.under_way.row_mut(row);
        moving.transfers = match self.unit {
            TierUnit::Batch => 1,
            TierUnit::Object => moving.objects.len() as u32,
        };
        let (operation, count, began) = (moving.operation(), moving.transfers, moving.began);
        self.readers += u32::from(moving.reader.is_some());
        let bytes = self.bytes_of(&self.under_way.row(row).objects) / u64::from(count);
        self.at = self.at.max(began);
        self.busy.begin(self.at);
        let transfer = Transfer { id: row.into(), count, operation, bytes, room, before: None };
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
            let write = self.ahead.front().map(|ahead| ahead.at.max(self.at));
            let write = write.filter(|&at| at <= until);
            let limit = write.unwrap_or(until);
            while let Some(at) = self.medium.end(limit, &mut self.ended) {
                self.end(at, sink);
            }
            let Some(at) = write else { break };
            if let Some(ahead) = self.ahead.pop_front() {
                self.begin_writes(ahead, at, sink);
            }
        }
        self.at = self.at.max(until.min(self.busy.last()));
        self.look_ahead();
    }

    fn begin_writes(&mut self, ahead: Ahead, now: Nanos, sink: &mut ServeSink<'_>) {
        let Ahead { worker, mut objects, .. } = ahead;
        let mut row = self.under_way.open(worker, None, now);
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
                        row = self.add(row, TierObject { group, slots }, place);
                    }
                }
            }
        }
        self.begin(row);
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

    /// What is in `ended` has ended at `at`.
    fn end(&mut self, at: Nanos, sink: &mut ServeSink<'_>) {
        self.at = self.at.max(at);
        let mut ended = std::mem::take(&mut self.ended);
        self.under_way.in_order_of_use(&mut ended);
        ended.drain(..).for_each(|row| self.end_row(row as u32, at, sink));
        self.ended = ended;
    }

    fn end_row(&mut self, row: u32, at: Nanos, sink: &mut ServeSink<'_>) {
        let moving = self.under_way.row(row);
        let bytes = self.bytes_of(&moving.objects);
        sink.record(&ServeEvent::Tier(TierEvent::Moved {
            worker: moving.worker,
            tier: self.number,
            operation: moving.operation(),
            request: moving.reader.map(|reader| reader.request),
            transfers: moving.transfers,
            objects: &moving.objects,
            bytes,
            began: moving.began,
            ended: at,
        }));
        self.busy.end(at);
        let moved = moving.places.iter().zip(&moving.objects).rev();
        match moving.reader {
            None => {
                self.bytes_written += bytes;
                moved.for_each(|(&place, object)| self.shelf.end_write(place, object.slots));
            }
            Some(Reader { worker, load, .. }) => {
                self.bytes_read += bytes;
                self.readers -= 1;
                moved.for_each(|(&place, _)| self.shelf.end_read(place));
                self.arrived.push(Arrived { worker, load, at, objects: moving.objects.clone() });
            }
        }
        self.under_way.close(row);
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
