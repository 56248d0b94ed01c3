//! Carrying out a job's steps: how each begins, and what follows when its bytes have moved or have not.

use std::io;
use std::sync::Arc;

use wavetank_cache::{Destination, Promoted, TierId};
use wavetank_model::{Fate, IoTimes, StoreFact};

use crate::backend::Held;
use crate::call::Deed;
use crate::index::Stored;
use crate::job::{Outcome, Serve, Step, Up};
use crate::lane::{Lane, Patience};
use crate::ledger::Displaced;
use crate::meter::Work;
use crate::transfer::{Source, Target, Transfer, Want};

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
            let blocked = job.blocked;
            let patience = blocked.map_or(Patience::Left, |since| self.patience(since));
            match self.begin(index, step, patience) {
                Begun::Over => self.job(index).blocked = None,
                Begun::Moving(step, transfer) => {
                    let job = self.jobs[index].as_mut().expect("it is under way");
                    job.current = Some((step, transfer));
                    job.blocked = None;
                    return self.feeding.push_back(index);
                }
                Begun::Blocked(step) => {
                    let job = self.jobs[index].as_mut().expect("it is under way");
                    job.steps.push_front(step);
                    job.blocked.get_or_insert_with(|| self.store.clock.now());
                    return self.block(index);
                }
            }
        }
    }

    fn begin(&mut self, index: usize, step: Step, patience: Patience) -> Begun {
        match step {
            Step::Displace(displaced) => self.begin_displace(index, displaced, patience),
            Step::Discard { entry } => {
                let result = self.discard(&entry);
                let job = self.job(index);
                if let (Outcome::Removed(_), Err(e)) = (&job.outcome, result) {
                    job.outcome = Outcome::Failed(e);
                }
                Begun::Over
            }
            Step::Store { entry, tier, payload } => {
                let start = self.now();
                match self.pipes.port(tier).create(&entry.as_new()) {
                    Ok(held) => {
                        let (source, target) =
                            (Source::Payload(payload.clone()), Some(Target { tier, held }));
                        let mut transfer = self.transfer(&entry, (source, target), None);
                        transfer.watch.worked(self.store.clock.since(start));
                        Begun::Moving(Step::Store { entry, tier, payload }, transfer)
                    }
                    Err(e) if waits(&e) && patience == Patience::Left => {
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
            Step::Serve(serve) => self.begin_serve(index, serve, patience),
        }
    }

    fn begin_displace(&mut self, index: usize, displaced: Displaced, patience: Patience) -> Begun {
        let from = displaced.from;
        let fact = match displaced.to {
            Destination::Tier(to) => return self.begin_demotion(index, displaced, to, patience),
            Destination::Out => StoreFact::Evicted { tier: from },
            Destination::Below(_) | Destination::Above(_) => StoreFact::Dropped { tier: from },
        };
        let Displaced { entry, gone, .. } = displaced;
        // What cannot be removed is counted, and nothing else follows.
        let _ = self.remove_copies(gone);
        self.say(entry.key.fingerprint(), entry.bytes, fact, IoTimes::default());
        Begun::Over
    }

    fn begin_demotion(&mut self, index: usize, step: Displaced, to: TierId, patience: Patience) -> Begun {
        let Some(held) = step.entry.copy(step.from) else {
            // Removed, or found damaged by a reader, while this step waited: nothing is left to move.
            self.lost(index, &step.entry);
            return Begun::Over;
        };
        match self.begin_move(&step.entry, (step.from, held), to) {
            Ok(transfer) => Begun::Moving(Step::Displace(step), transfer),
            Err(e) if waits(&e) && patience == Patience::Left => Begun::Blocked(Step::Displace(step)),
            Err(_) => {
                self.demotion_failed(index, &step.entry, to);
                Begun::Over
            }
        }
    }

    fn begin_move(
        &mut self,
        entry: &Arc<Stored>,
        (from, held): (TierId, Arc<dyn Held>),
        tier: TierId,
    ) -> io::Result<Transfer> {
        let start = self.now();
        let target = self.pipes.port(tier).create(&entry.as_new())?;
        let opened = match self.pipes.port(from).open(&held) {
            Ok(opened) => opened,
            Err(e) => {
                let _ = self.pipes.port(tier).remove(target);
                return Err(e);
            }
        };
        let source = Source::Tier { tier: from, held: opened, origin: held };
        let target = Some(Target { tier, held: target });
        let mut transfer = self.transfer(entry, (source, target), None);
        transfer.watch.worked(self.store.clock.since(start));
        Ok(transfer)
    }

    fn begin_serve(&mut self, index: usize, serve: Serve, patience: Patience) -> Begun {
        let start = self.now();
        let Serve { reading, want, up, again } = serve;
        let entry = Arc::clone(&reading.0);
        let (tier, origin, opened) = match self.open_fastest(&entry) {
            Some(found) => found,
            None => {
                self.lost(index, &entry);
                self.look_again(index, &entry);
                return Begun::Over;
            }
        };
        let target = match up {
            None => None,
            Some(up) => match self.pipes.port(up.to).create(&entry.as_new()) {
                Ok(held) => Some(Target { tier: up.to, held }),
                Err(e) if waits(&e) && patience == Patience::Left => {
                    return Begun::Blocked(Step::Serve(Serve { reading, want, up: Some(up), again }));
                }
                Err(_) => {
                    self.abandon_up(index, &entry, (tier, Some(up)));
                    None
                }
            },
        };
        let up = up.filter(|_| target.is_some());
        match opened {
            Ok(held) => {
                let source = Source::Tier { tier, held, origin };
                let mut transfer = self.transfer(&entry, (source, target), Some(want));
                transfer.collected = (want == Want::Bytes).then(|| self.room(entry.bytes as usize));
                transfer.watch.worked(self.store.clock.since(start));
                Begun::Moving(Step::Serve(Serve { reading, want, up, again }), transfer)
            }
            Err(e) => {
                if let Some(target) = target {
                    let _ = self.pipes.port(target.tier).remove(target.held);
                    self.abandon_up(index, &entry, (tier, up));
                }
                self.serve_failed(index, &entry, (tier, &origin), e);
                Begun::Over
            }
        }
    }

    /// The fastest copy, and what came of opening it. A copy that has just moved is looked for again.
    fn open_fastest(&mut self, entry: &Arc<Stored>) -> Option<OpenedCopy> {
        let mut found = None;
        for _ in 0..OPEN_ATTEMPTS {
            let (tier, origin) = entry.fastest()?;
            let opened = self.pipes.port(tier).open(&origin);
            let vanished = opened.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
            found = Some((tier, origin, opened));
            if !vanished {
                break;
            }
        }
        found
    }

    /// A step's bytes have moved, or some have not.
    pub(crate) fn end_step(&mut self, index: usize) {
        let job = self.jobs[index].as_mut().expect("it is under way");
        let (step, transfer) = job.current.take().expect("bytes were moving");
        match step {
            Step::Store { entry, tier, .. } => self.end_store(index, entry, tier, transfer),
            Step::Displace(Displaced { entry, from, to: Destination::Tier(to), .. }) => {
                self.end_demotion(index, &entry, (from, to), transfer);
            }
            Step::Serve(serve) => self.end_serve(index, serve, transfer),
            _ => unreachable!("only these move bytes"),
        }
        self.step(index);
    }

    fn end_store(&mut self, index: usize, entry: Arc<Stored>, tier: TierId, mut transfer: Transfer) {
        let result = self.commit(&mut transfer);
        let now = self.now();
        let times = self.job(index).spent(transfer.watch.times(now), now);
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
        let start = self.now();
        let result = match transfer.failed.take().or(transfer.target_failed.take()) {
            Some(e) => Err(e),
            None => self.pipes.port(tier).commit(Arc::clone(&held)),
        };
        if result.is_err() {
            let _ = self.pipes.port(tier).remove(held);
        }
        transfer.watch.worked(self.store.clock.since(start));
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
        let now = self.now();
        let times = transfer.watch.times(now);
        drop(transfer);
        self.job(index).spent(times, now);
        match result {
            Ok(held) => {
                entry.keep(to, held);
                self.discard_copy(entry, from);
                self.record(to, Work::Demote, entry.bytes, times);
                self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Demoted { from, to }, times);
                if !self.store.ledger.settle(entry) {
                    let _ = self.discard(entry);
                }
            }
            Err(_) => self.demotion_failed(index, entry, to),
        }
    }

    /// The room above is given away already, so the entry is lost.
    fn demotion_failed(&mut self, index: usize, entry: &Arc<Stored>, to: TierId) {
        self.lost(index, entry);
        self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Failed { tier: to }, IoTimes::default());
    }

    /// An entry without a copy to go on with leaves the store, wherever it is still known.
    fn lost(&mut self, index: usize, entry: &Arc<Stored>) {
        self.store.index.forget(entry, self.store.voice(self.number, index));
        self.store.ledger.remove(entry);
        let _ = self.discard(entry);
    }

    fn end_serve(&mut self, index: usize, serve: Serve, mut transfer: Transfer) {
        let Serve { reading, want, up, again } = serve;
        let entry = &Arc::clone(&reading.0);
        let Source::Tier { tier, origin, .. } = &transfer.source else {
            unreachable!("it was read from a tier")
        };
        let (tier, origin) = (*tier, Arc::clone(origin));
        if let Some(e) = transfer.failed.take() {
            self.drop_target(&mut transfer);
            drop(transfer);
            self.abandon_up(index, entry, (tier, up));
            if !again && is_damage(&e) {
                let once_more = Serve { reading, want, up: None, again: true };
                return self.job(index).steps.push_front(Step::Serve(once_more));
            }
            return self.serve_failed(index, entry, (tier, &origin), e);
        }
        let promoted = up.map(|up| (up, self.commit(&mut transfer)));
        let now = self.now();
        let step_times = transfer.watch.times(now);
        let data = transfer.collected.take();
        drop(transfer);
        let job = self.job(index);
        let times = job.spent(step_times, now);
        job.data = data;
        job.outcome = Outcome::Hit(tier);
        self.tell_end(index, Deed::Read, Fate::Done, entry);
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
            let _ = self.discard(entry);
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
            self.store.index.forget(entry, self.store.voice(self.number, index));
            self.job(index).steps.push_front(Step::Discard { entry: Arc::clone(entry) });
        }
    }

    /// Makes a written entry the one of its key. It settles afterwards: until then it is no victim, so nobody
    /// takes it away before it is there.
    fn publish(&mut self, index: usize, entry: Arc<Stored>, tier: TierId) {
        let (claim, begun) = (self.job(index).claim.take(), self.job(index).begun);
        let voice = self.store.voice(self.number, index);
        let tell = |fate| voice.tell_end(Deed::Publish, fate, (&entry.key, entry.bytes), begun);
        let before = match &claim {
            Some(claim) if !self.store.index.redeem(claim, &entry, tell) => {
                self.store.ledger.remove(&entry);
                let _ = self.discard(&entry);
                self.job(index).outcome = Outcome::Existed;
                return;
            }
            Some(_) => None,
            None => self.store.index.publish(Arc::clone(&entry), tell),
        };
        self.job(index).outcome = Outcome::Stored(tier);
        if !self.store.ledger.settle(&entry) {
            // Removed by someone the moment it was there.
            self.lost(index, &entry);
        }
        if let Some(before) = before {
            self.store.ledger.remove(&before);
            let fact = match self.discard(&before) {
                Ok(()) => StoreFact::Removed,
                Err(_) => StoreFact::Failed { tier },
            };
            self.say(before.key.fingerprint(), before.bytes, fact, IoTimes::default());
        }
    }

    /// The new entry is nowhere, whatever was written of it.
    fn store_failed(&mut self, index: usize, entry: &Arc<Stored>, tier: TierId, e: io::Error) {
        self.store.ledger.remove(entry);
        let _ = self.discard(entry);
        self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Failed { tier }, IoTimes::default());
        self.tell_end(index, Deed::Publish, Fate::Failed, entry);
        let job = self.job(index);
        job.steps.clear();
        job.outcome = Outcome::Failed(e);
    }

    fn serve_failed(
        &mut self,
        index: usize,
        entry: &Arc<Stored>,
        copy: (TierId, &Arc<dyn Held>),
        e: io::Error,
    ) {
        let (tier, held) = copy;
        let vanished = e.kind() == io::ErrorKind::NotFound;
        if vanished && !self.is_current(entry) {
            return self.look_again(index, entry);
        }
        self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Failed { tier }, IoTimes::default());
        if vanished || is_damage(&e) {
            // Only the copy that failed: another may be in its place by now.
            if let Some(held) = entry.release_if(tier, held) {
                let _ = self.remove_copies([(tier, held)]);
                if self.store.ledger.lose(entry, tier) {
                    self.lost(index, entry);
                }
            }
        }
        self.tell_end(index, Deed::Read, Fate::Failed, entry);
        self.job(index).outcome = Outcome::Failed(e);
    }

    /// An entry was gone before it could be read. Whether its key is there now is for the index to say: it
    /// may be stored again already.
    fn look_again(&mut self, index: usize, entry: &Arc<Stored>) {
        self.tell_end(index, Deed::Read, Fate::Absent, entry);
        let job = self.jobs[index].as_mut().expect("it is under way");
        job.plan_get(&self.store, self.store.voice(self.number, index), &entry.key);
        let is_there = job.steps.iter().any(|step| matches!(step, Step::Serve(_)));
        if !is_there {
            self.say(entry.key.fingerprint(), entry.bytes, StoreFact::Missed, IoTimes::default());
        }
    }

    /// Tells whoever records calls what became of an entry that this job was about.
    fn tell_end(&self, index: usize, deed: Deed, fate: Fate, entry: &Arc<Stored>) {
        let Some(job) = &self.jobs[index] else { return };
        let voice = self.store.voice(self.number, index);
        voice.tell_end(deed, fate, (&entry.key, entry.bytes), job.begun);
    }

    fn is_current(&self, entry: &Arc<Stored>) -> bool {
        self.store.index.read(&entry.key).is_some_and(|reading| Arc::ptr_eq(&reading.0, entry))
    }

    fn discard(&mut self, entry: &Arc<Stored>) -> io::Result<()> {
        self.remove_copies(entry.release_all())
    }

    fn discard_copy(&mut self, entry: &Arc<Stored>, tier: TierId) {
        let _ = self.remove_copies(entry.release(tier).map(|held| (tier, held)));
    }

    /// Removes copies from their devices. One that cannot be removed is counted, and still takes room there.
    fn remove_copies(&mut self, copies: impl IntoIterator<Item = (TierId, Arc<dyn Held>)>) -> io::Result<()> {
        let mut result = Ok(());
        for (tier, held) in copies {
            if let Err(e) = self.pipes.port(tier).remove(held) {
                self.unremoved += 1;
                result = Err(e);
            }
        }
        result
    }

    fn job(&mut self, index: usize) -> &mut crate::job::Job {
        self.jobs[index].as_mut().expect("it is under way")
    }
}

/// How often a copy that has just moved is looked for again.
const OPEN_ATTEMPTS: usize = 3;

/// A copy's tier, the copy, and its hold to read through.
type OpenedCopy = (TierId, Arc<dyn Held>, io::Result<Arc<dyn Held>>);

/// Whether what came back is not what was written.
fn is_damage(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

fn waits(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::WouldBlock
}

fn no_room(e: io::Error) -> io::Error {
    if waits(&e) { io::Error::new(io::ErrorKind::StorageFull, e) } else { e }
}
