//! An operation and the steps it takes: what is displaced for it first, then its own bytes.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use wavetank_cache::{Destination, Refusal, Resident, TierId};
use wavetank_model::{Fate, IoTimes, Nanos};

use crate::backend::{Birth, NewEntry};
use crate::call::{Deed, Voice};
use crate::index::{Claim, Reading, Stored};
use crate::key::Key;
use crate::ledger::Displaced;
use crate::payload::Payload;
use crate::store::Store;
use crate::transfer::{Transfer, Want};

/// Names an operation of a lane.
pub type OpId = u64;

/// An entry to be written.
#[derive(Clone, Debug)]
pub struct Put {
    /// Its name.
    pub key: Key,
    /// Its bytes.
    pub payload: Payload,
    /// Whose it is; 0 where nobody asks.
    pub tenant: u32,
    /// What if it is there already.
    pub existing: Existing,
}

/// What happens to an entry that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is written.
    #[default]
    Keep,
    /// The new one takes its place once it is written.
    Replace,
}

/// How an operation ended.
#[derive(Debug)]
pub enum Outcome {
    /// Written; the fastest tier it is in.
    Stored(TierId),
    /// There already, or being written by someone else.
    Existed,
    /// Read, from this tier.
    Hit(TierId),
    /// Not there.
    Missed,
    /// Removed; `false` when it was not there.
    Removed(bool),
    /// No tier takes it.
    Refused(Refusal),
    /// A device failed, or it was given up: the entry is as if the operation had not been asked for; what
    /// made room for it stays so.
    Failed(io::Error),
}

/// An operation that ended.
#[derive(Debug)]
pub struct Done {
    /// Which.
    pub op: OpId,
    /// How.
    pub outcome: Outcome,
    /// The entry's length, where there is one.
    pub bytes: u64,
    /// What was read, where it was wanted.
    pub data: Option<Vec<u8>>,
    /// Where the time went.
    pub times: IoTimes,
}

/// What a caller asks for.
pub(crate) enum Request {
    /// With where it comes from, if that is not here.
    Put(Put, Option<Birth>),
    Get {
        key: Key,
        want: Want,
    },
    Remove(Key),
}

/// One thing to do for an operation.
pub(crate) enum Step {
    /// An entry makes room.
    Displace(Displaced),
    /// An entry's copy goes because it was removed or replaced.
    Discard { entry: Arc<Stored> },
    /// The new entry is written to a tier.
    Store { entry: Arc<Stored>, tier: TierId, payload: Payload },
    /// The new entry is there.
    Publish { entry: Arc<Stored>, tier: TierId },
    /// An entry is read, and on its way may move up.
    Serve(Serve),
}

/// An entry that is read for a caller.
pub(crate) struct Serve {
    pub(crate) reading: Reading,
    pub(crate) want: Want,
    pub(crate) up: Option<Up>,
    /// It was read before and came back wrong: once more, then it is given up.
    pub(crate) again: bool,
}

/// A move up on the way to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Up {
    pub(crate) to: TierId,
    pub(crate) keeps_below: bool,
}

/// An operation under way.
pub(crate) struct Job {
    pub(crate) op: OpId,
    pub(crate) asked: Instant,
    pub(crate) begun: Instant,
    pub(crate) steps: VecDeque<Step>,
    /// The step that is being carried out, with its transfer.
    pub(crate) current: Option<(Step, Transfer)>,
    /// Since when the next step waits for room.
    pub(crate) blocked: Option<Instant>,
    pub(crate) claim: Option<Claim>,
    /// Of one that reads.
    want: Want,
    pub(crate) outcome: Outcome,
    pub(crate) bytes: u64,
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) times: IoTimes,
}

impl Job {
    /// Decides what `request` takes. Decisions are made here, in the order jobs are planned.
    pub(crate) fn plan(
        store: &Store,
        voice: Voice<'_>,
        (op, asked): (OpId, Instant),
        request: Request,
    ) -> Self {
        let begun = store.clock.now();
        let mut job = Self {
            op,
            asked,
            begun,
            steps: VecDeque::new(),
            current: None,
            blocked: None,
            claim: None,
            want: Want::Nothing,
            outcome: Outcome::Missed,
            bytes: 0,
            data: None,
            times: IoTimes { queue: nanos(begun - asked), ..IoTimes::default() },
        };
        match request {
            Request::Put(put, birth) => job.plan_put(store, voice, put, birth),
            Request::Get { key, want } => {
                job.want = want;
                job.plan_get(store, voice, &key);
            }
            Request::Remove(key) => job.plan_remove(store, voice, &key),
        }
        job.times.host = nanos(store.clock.since(begun));
        job
    }

    fn plan_put(&mut self, store: &Store, voice: Voice<'_>, put: Put, birth: Option<Birth>) {
        let Put { key, payload, tenant, existing } = put;
        self.bytes = payload.bytes();
        let tell = |fate| voice.tell(Deed::Reserve(existing), fate, (&key, payload.bytes()));
        if existing == Existing::Keep {
            self.claim = store.index.claim(&key, tell);
            if self.claim.is_none() {
                self.outcome = Outcome::Existed;
                return;
            }
        }
        let resident = Resident { fingerprint: key.fingerprint(), bytes: self.bytes, tenant };
        let mut displaced = Vec::new();
        let here = || Birth { put: store.next_put(), tenant, expires_s: 0 };
        let birth = birth.inspect(|birth| store.skip_puts(birth.put)).unwrap_or_else(here);
        let entry = NewEntry { key: &key, bytes: self.bytes, recipe: payload.recipe(), birth };
        let make = |slot| Stored::new(&entry, slot);
        let placed = store.ledger.admit(&resident, &mut displaced, make);
        self.displace(store, voice, displaced);
        match placed {
            Err(refusal) => {
                tell(Fate::NoMemory);
                self.outcome = Outcome::Refused(refusal);
            }
            Ok((entry, tiers)) => {
                tell(Fate::Done);
                let fastest = tiers.fastest().expect("it was placed somewhere");
                for tier in tiers.iter() {
                    let (entry, payload) = (Arc::clone(&entry), payload.clone());
                    self.steps.push_back(Step::Store { entry, tier, payload });
                }
                self.steps.push_back(Step::Publish { entry, tier: fastest });
            }
        }
    }

    /// Also where an entry was gone before it could be read: another one may be in its place.
    pub(crate) fn plan_get(&mut self, store: &Store, voice: Voice<'_>, key: &Key) {
        self.outcome = Outcome::Missed;
        let Some((reading, tier)) = store.index.look_up(key, voice) else { return };
        self.bytes = reading.0.bytes;
        store.ledger.hit(&reading.0);
        let mut displaced = Vec::new();
        let promoted = if tier == 0 { None } else { store.ledger.promote(&reading.0, &mut displaced) };
        self.displace(store, voice, displaced);
        let up = promoted.map(|promoted| Up { to: promoted.to, keeps_below: promoted.keeps_below });
        self.steps.push_back(Step::Serve(Serve { reading, want: self.want, up, again: false }));
    }

    fn plan_remove(&mut self, store: &Store, voice: Voice<'_>, key: &Key) {
        let entry = store.index.take(key, voice);
        self.outcome = Outcome::Removed(entry.is_some());
        if let Some(entry) = entry {
            store.ledger.remove(&entry);
            self.bytes = entry.bytes;
            self.steps.push_back(Step::Discard { entry });
        }
    }

    /// What leaves the store is not found any more from here on.
    fn displace(&mut self, store: &Store, voice: Voice<'_>, displaced: Vec<Displaced>) {
        for displaced in displaced {
            if displaced.to == Destination::Out {
                store.index.forget(&displaced.entry, voice);
            }
            self.steps.push_back(Step::Displace(displaced));
        }
    }

    /// Adds the times of a step that ends now to the operation's, and gives them as the caller sees them:
    /// from being asked for.
    pub(crate) fn spent(&mut self, times: IoTimes, now: Instant) -> IoTimes {
        self.times.host += times.host;
        self.times.device += times.device;
        IoTimes { queue: self.times.queue, total: nanos(now - self.asked), ..times }
    }

    /// Ends the operation.
    pub(crate) fn finish(mut self, now: Instant) -> Done {
        self.times.total = nanos(now - self.asked);
        let Self { op, outcome, bytes, data, times, .. } = self;
        Done { op, outcome, bytes, data, times }
    }
}

pub(crate) fn nanos(span: std::time::Duration) -> Nanos {
    Nanos(span.as_nanos() as u64)
}
