//! Carrying out a job's steps: how each begins, and what follows when its bytes have moved or have not.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use wavetank_cache::{Destination, Promoted, TierId};
use wavetank_model::{IoTimes, StoreFact};

use crate::backend::Held;
use crate::index::Stored;
use crate::job::{Outcome, Serve, Step, Up};
use crate::lane::Lane;
use crate::ledger::Displaced;
use crate::meter::Work;
use crate::transfer::{Source, Target, Transfer};

/// What beginning a step comes to.
#[expect(clippy::large_enum_variant, reason = "moved once per step")]
enum Begun {
    /// It is over.
    Over,
    /// Bytes have to move.
    Moving(Step, Transfer),
    /// There is no room yet.
    Blocked(Step),
}

impl Lane {
    /// Carries out steps of a job until bytes have to move, room is missing, or it is done.
    pub(crate) fn step(&mut self, index: usize) {
        loop {
            let job = self.jobs[index].as_mut().expect("it is under way");
            let Some(step) = job.steps.pop_front() else { return self.conclude(index) };
            let out_of_patience = job.blocked.is_some_and(Self::is_out_of_patience);
            match self.begin(index, step, out_of_patience) {
                Begun::Over => {}
                Begun::Moving(step, transfer) => {
                    let job = self.jobs[index].as_mut().expect("it is under way");
                    job.current = Some((step, transfer));
                    job.blocked = None;
                    return self.feeding.push_back(index);
                }
                Begun::Blocked(step) => {
                    let job = self.jobs[index].as_mut().expect("it is under way");
                    job.steps.push_front(step);
                    job.blocked.get_or_insert_with(Instant::now);
                    return self.block(index);
                }
            }
        }
    }

    fn begin(&mut self, index: usize, step: Step, out_of_patience: bool) -> Begun {
        match step {
            Step::Displace(displaced) => self.begin_displace(displaced, out_of_patience),
            Step::Discard { entry } => {
                self.discard(&entry);
                Begun::Over
            }
            Step::Store { entry, tier, payload } => {
                let start = Instant::now();
                match self.pipes.port(tier).create(&entry.as_new()) {
                    Ok(held) => {
                        let (source, target) =
                            (Source::Payload(payload.clone()), Some(Target { tier, held }));
                        let mut transfer = Transfer::new(Arc::clone(&entry), source, target, None);
                        transfer.clock.worked(start);
                        Begun::Moving(Step::Store { entry, tier, payload }, transfer)
                    }
                    Err(e) if waits(&e) && !out_of_patience => {
                        Begun::Blocked(Step::Store { entry, tier, payload })
                    }
                    Err(e) => {
                        self.store_failed(index, &entry, tier, no_room(e));
                        Begun::Over
                    }
                }
            }
            Step::Publish { entry, tier } => {
                self.publish(index, entry, tier);
                Begun::Over
            }
            Step::Serve(serve) => self.begin_serve(index, serve, out_of_patience),
        }
    }

    fn begin_displace(&mut self, displaced: Displaced, out_of_patience: bool) -> Begun {
        let Displaced { entry, from, to } = &displaced;
        let (key, bytes, from) = (entry.key.fingerprint(), entry.bytes, *from);
        match *to {
            Destination::Out => {
                self.discard(entry);
                self.say(key, bytes, StoreFact::Evicted { tier: from }, IoTimes::default());
            }
            Destination::Below(_) | Destination::Above(_) => {
                self.discard_copy(entry, from);
                self.say(key, bytes, StoreFact::Dropped { tier: from }, IoTimes::default());
            }
            Destination::Tier(tier) => {
                // Removed by someone while this step waited: nothing is left to move.
                let Some(held) = entry.copy(from) else { return Begun::Over };
                match self.begin_move(entry, (from, held), tier) {
                    Ok(transfer) => return Begun::Moving(Step::Displace(displaced), transfer),
                    Err(e) if waits(&e) && !out_of_patience => {
                        return Begun::Blocked(Step::Displace(displaced));
                    }
                    Err(_) => self.demotion_failed(entry, tier),
                }
            }
        }
        Begun::Over
    }

    fn begin_move(
        &mut self,
        entry: &Arc<Stored>,
        (from, held): (TierId, Arc<dyn Held>),
        tier: TierId,
    ) -> io::Result<Transfer> {
        let start = Instant::now();
        let target = self.pipes.port(tier).create(&entry.as_new())?;
        let opened = match self.pipes.port(from).open(&held) {
            Ok(opened) => opened,
            Err(e) => {
                let _ = self.pipes.port(tier).remove(target);
                return Err(e);
            }
        };
        let source = Source::Tier { tier: from, held: opened };
        let target = Some(Target { tier, held: target });
        let mut transfer = Transfer::new(Arc::clone(entry), source, target, None);
        transfer.clock.worked(start);
        Ok(transfer)
    }

    fn begin_serve(&mut self, index: usize, serve: Serve, out_of_patience: bool) -> Begun {
        let Serve { reading, want, up } = serve;
        let start = Instant::now();
        let entry = Arc::clone(&reading.0);
        let Some((tier, held)) = entry.fastest() else {
            self.missed(index, &entry);
            return Begun::Over;
        };
        let target = match up {
            None => None,
            Some(up) => match self.pipes.port(up.to).create(&entry.as_new()) {
                Ok(held) => Some(Target { tier: up.to, held }),
                Err(e) if waits(&e) && !out_of_patience => {
                    return Begun::Blocked(Step::Serve(Serve { reading, want, up: Some(up) }));
                }
                Err(_) => {
                    self.abandon_up(index, &entry, (tier, Some(up)));
                    None
                }
            },
        };
        let up = up.filter(|_| target.is_some());
        match self.pipes.port(tier).open(&held) {
            Ok(opened) => {
                let source = Source::Tier { tier, held: opened };
                let mut transfer = Transfer::new(entry, source, target, Some(want));
                transfer.clock.worked(start);
                Begun::Moving(Step::Serve(Serve { reading, want, up }), transfer)
            }
            Err(e) => {
                if let Some(target) = target {
                    let _ = self.pipes.port(target.tier).remove(target.held);
                    self.abandon_up(index, &entry, (tier, up));
                }
                self.serve_failed(index, &entry, tier, e);
                Begun::Over
            }
        }
    }

    /// A step's bytes have moved, or some have not.
    pub(crate) fn end_step(&mut self, index: usize) {
        let job = self.jobs[index].as_mut().expect("it is under way");
        let (step, transfer) = job.current.take().expect("bytes were moving");
        match step {
            Step::Store { entry, tier, .. } => self.end_store(index, entry, tier, transfer),
            Step::Displace(Displaced { entry, from, to: Destination::Tier(to) }) => {
                self.end_demotion(index, &entry, (from, to), transfer);
            }
            Step::Serve(Serve { reading, up, .. }) => self.end_serve(index, &reading.0, up, transfer),
            _ => unreachable!("only these move bytes"),
        }
        self.step(index);
    }

    fn end_store(&mut self, index: usize, entry: Arc<Stored>, tier: TierId, mut transfer: Transfer) {
        let result = self.commit(&mut transfer);
        let times = transfer.clock.times();
        self.job(index).spent(times);
        match result {
            Ok(held) => {
                entry.keep(tier, held);
                self.record(tier, Work::Write, entry.bytes, times);
                self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Stored { tier }, times);
            }
            Err(e) => self.store_failed(index, &entry, tier, e),
        }
    }

    /// Commits a transfer that went well to its target; otherwise removes what is there.
    fn commit(&mut self, transfer: &mut Transfer) -> io::Result<Arc<dyn Held>> {
        let Target { tier, held } = transfer.target.take().expect("it has a target");
        let start = Instant::now();
        let result = match transfer.failed.take().or(transfer.target_failed.take()) {
            Some(e) => Err(e),
            None => self.pipes.port(tier).commit(Arc::clone(&held)),
        };
        if result.is_err() {
            let _ = self.pipes.port(tier).remove(held);
        }
        transfer.clock.worked(start);
        result
    }

    fn end_demotion(
        &mut self,
        index: usize,
        entry: &Arc<Stored>,
        way: (TierId, TierId),
        mut transfer: Transfer,
    ) {
        let (from, to) = way;
        let result = self.commit(&mut transfer);
        let times = transfer.clock.times();
        drop(transfer);
        self.job(index).spent(times);
        match result {
            Ok(held) => {
                entry.keep(to, held);
                self.discard_copy(entry, from);
                self.record(to, Work::Demote, entry.bytes, times);
                self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Demoted { from, to }, times);
                if !self.store.ledger.settle(entry) {
                    self.discard(entry);
                }
            }
            Err(_) => self.demotion_failed(entry, to),
        }
    }

    /// The room above is given away already, so the entry is lost.
    fn demotion_failed(&mut self, entry: &Arc<Stored>, to: TierId) {
        self.store.index.forget(entry);
        self.store.ledger.remove(entry);
        self.discard(entry);
        self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Failed { tier: to }, IoTimes::default());
    }

    fn end_serve(&mut self, index: usize, entry: &Arc<Stored>, up: Option<Up>, mut transfer: Transfer) {
        let Source::Tier { tier, .. } = transfer.source else { unreachable!("it was read from a tier") };
        if let Some(e) = transfer.failed.take() {
            self.drop_target(&mut transfer);
            drop(transfer);
            self.abandon_up(index, entry, (tier, up));
            return self.serve_failed(index, entry, tier, e);
        }
        let promoted = up.map(|up| (up, self.commit(&mut transfer)));
        let times = transfer.clock.times();
        let data = transfer.collected.take();
        drop(transfer);
        let job = self.job(index);
        job.spent(times);
        job.data = data;
        job.outcome = Outcome::Hit(tier);
        self.record(tier, Work::Read, entry.bytes, times);
        self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Hit { tier }, times);
        match promoted {
            None => {}
            Some((up, Ok(held))) => self.promoted(entry, (tier, up), held, times),
            Some((up, Err(_))) => self.abandon_up(index, entry, (tier, Some(up))),
        }
    }

    fn promoted(
        &mut self,
        entry: &Arc<Stored>,
        (from, up): (TierId, Up),
        held: Arc<dyn Held>,
        times: IoTimes,
    ) {
        entry.keep(up.to, held);
        if !up.keeps_below {
            self.discard_copy(entry, from);
        }
        self.record(up.to, Work::Promote, entry.bytes, times);
        self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Promoted { from, to: up.to }, times);
        if !self.store.ledger.settle(entry) {
            self.discard(entry);
        }
    }

    fn drop_target(&mut self, transfer: &mut Transfer) {
        if let Some(Target { tier, held }) = transfer.target.take() {
            let _ = self.pipes.port(tier).remove(held);
        }
    }

    /// The entry does not move up after all: the ledger, which has it above already, takes it back to where
    /// its copy is. If its room there was given away meanwhile, it leaves the store once it is read.
    fn abandon_up(&mut self, index: usize, entry: &Arc<Stored>, (from, up): (TierId, Option<Up>)) {
        let Some(Up { to, keeps_below }) = up else { return };
        self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Failed { tier: to }, IoTimes::default());
        if !self.store.ledger.retreat(entry, Promoted { from, to, keeps_below }) {
            self.store.index.forget(entry);
            self.job(index).steps.push_front(Step::Discard { entry: Arc::clone(entry) });
        }
    }

    fn publish(&mut self, index: usize, entry: Arc<Stored>, tier: TierId) {
        if !self.store.ledger.settle(&entry) {
            return self.discard(&entry);
        }
        let before = self.store.index.publish(Arc::clone(&entry));
        let job = self.job(index);
        job.claimed = None;
        job.outcome = Outcome::Stored(tier);
        if let Some(before) = before {
            self.store.ledger.remove(&before);
            self.discard(&before);
            self.say(before.key.fingerprint(), before.bytes, StoreFact::Removed, IoTimes::default());
        }
    }

    /// The new entry is nowhere, whatever was written of it.
    fn store_failed(&mut self, index: usize, entry: &Arc<Stored>, tier: TierId, e: io::Error) {
        self.store.ledger.remove(entry);
        self.discard(entry);
        self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Failed { tier }, IoTimes::default());
        let job = self.job(index);
        job.steps.clear();
        job.outcome = Outcome::Failed(e);
    }

    fn serve_failed(&mut self, index: usize, entry: &Arc<Stored>, tier: TierId, e: io::Error) {
        use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
        if e.kind() == NotFound && !self.is_current(entry) {
            return self.missed(index, entry);
        }
        self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Failed { tier }, IoTimes::default());
        if matches!(e.kind(), InvalidData | NotFound | UnexpectedEof) {
            self.discard_copy(entry, tier);
            if self.store.ledger.lose(entry, tier) {
                self.store.index.forget(entry);
            }
        }
        self.job(index).outcome = Outcome::Failed(e);
    }

    fn missed(&mut self, index: usize, entry: &Arc<Stored>) {
        self.job(index).outcome = Outcome::Missed;
        self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Missed, IoTimes::default());
    }

    fn is_current(&self, entry: &Arc<Stored>) -> bool {
        self.store.index.read(&entry.key).is_some_and(|reading| Arc::ptr_eq(&reading.0, entry))
    }

    fn discard(&mut self, entry: &Arc<Stored>) {
        for (tier, held) in entry.release_all() {
            self.remove_copy(tier, held);
        }
    }

    fn discard_copy(&mut self, entry: &Arc<Stored>, tier: TierId) {
        if let Some(held) = entry.release(tier) {
            self.remove_copy(tier, held);
        }
    }

    /// A copy that cannot be removed takes room on its device, and nothing else follows from it.
    fn remove_copy(&mut self, tier: TierId, held: Arc<dyn Held>) {
        if self.pipes.port(tier).remove(held).is_err() {
            self.unremoved += 1;
        }
    }

    fn job(&mut self, index: usize) -> &mut crate::job::Job {
        self.jobs[index].as_mut().expect("it is under way")
    }
}

fn waits(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::WouldBlock
}

fn no_room(e: io::Error) -> io::Error {
    if waits(&e) { io::Error::new(io::ErrorKind::StorageFull, e) } else { e }
}
