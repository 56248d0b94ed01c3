//! Looking objects up by name, as it is decided under the lock, and what is told of it.

use std::sync::Arc;

use wavetank_model::{Fate, FetchPolicy, KeyId, LayoutId, Prefetch, Row, StorageCall};

use super::journal::thread_number;
use super::named::{Got, Held, Lookup};
use super::names::NOBODY;
use super::state::{Ending, Incoming, Load, Shared, State};
use crate::bytes::{Object, Wanted};
use crate::prefetch::Fetching;

/// Objects that a lookup found in memory, held while room is made for the others.
pub(super) type Kept = Vec<(KeyId, Arc<Object>)>;

/// A lookup that was decided. Without anything to load it is over.
pub(super) struct Begun {
    pub(super) asked: Prefetch,
    pub(super) fates: Vec<Fate>,
    pub(super) load: Option<Loading>,
}

/// What it has to load.
pub(super) struct Loading {
    handle: u64,
    fetching: Fetching,
    wanted: Vec<Wanted>,
}

impl Loading {
    pub(super) fn with(self, asked: Prefetch, ending: Ending) -> Load {
        let Self { handle, fetching, wanted } = self;
        Load { handle, asked: Box::new(asked), fetching, wanted, ending }
    }
}

/// What callers hold of a lookup that is over.
pub(super) fn held(
    shared: &Arc<Shared>,
    state: &State,
    cells: impl Iterator<Item = KeyId>,
    mut fates: Vec<Fate>,
) -> Held {
    let cell = |(key, fate): (KeyId, &mut Fate)| {
        if !matches!(fate, Fate::FirstTier | Fate::LowerTier) {
            return None;
        }
        let object = state.resident(key).map(|object| (key, Arc::clone(object)));
        if object.is_none() {
            // It was held for too long while something else came.
            *fate = Fate::Expired;
        }
        object
    };
    let cells = cells.zip(&mut fates).map(cell).collect();
    Held { cells, fates, shared: Arc::downgrade(shared) }
}

impl State {
    pub(super) fn get(&mut self, name: &[u8]) -> Got {
        let Some(key) = self.live(name) else {
            self.tell_miss(name);
            return Got::Absent;
        };
        if let Some(object) = self.resident(key).cloned() {
            self.engine.use_resident(key);
            if self.is_told() {
                self.tell_use(key, object.len() as u64);
            }
            if self.engine.has_notes() {
                self.follow(&mut Incoming::default());
            }
            return Got::Here(object);
        }
        if self.engine.is_there(key) {
            return Got::Behind;
        }
        self.tell_miss(name);
        Got::Absent
    }

    /// The calls that a use of one object in memory stands for.
    pub(super) fn tell_use(&self, key: KeyId, bytes: u64) {
        let (thread, done) = (Some(thread_number()), [Fate::Done]);
        let asked = || StorageCall::SubmitPrefetch(Box::new(Prefetch::of([row([key].into(), bytes)])));
        self.tell(thread, asked, Some(&[Fate::FirstTier]));
        self.tell_read(key);
        self.tell(thread, || StorageCall::FinishRead { keys: [key].into(), locks: 1 }, Some(&done));
    }

    pub(super) fn tell_read(&self, key: KeyId) {
        let thread = Some(thread_number());
        self.tell(thread, || StorageCall::ReadEnter { keys: [key].into() }, Some(&[Fate::Done]));
        self.tell(thread, || StorageCall::ReadExit { keys: [key].into() }, None);
    }

    /// A lookup of one name that found nothing. A name that has no number has one while it is told.
    pub(super) fn tell_miss(&mut self, name: &[u8]) {
        if !self.is_told() {
            return;
        }
        let key = self.names.find(name).unwrap_or_else(|| self.number(name));
        let call = || StorageCall::SubmitPrefetch(Box::new(Prefetch::of([row([key].into(), 0)])));
        self.tell(Some(thread_number()), call, Some(&[Fate::Absent]));
        self.free_if_unknown(key);
    }

    /// The object of the only cell of a lookup that is over: it is read, and given back.
    pub(super) fn give(&mut self, cell: Option<(KeyId, Fate)>) -> Option<Arc<Object>> {
        let is_there = |(_, fate): &(KeyId, Fate)| matches!(fate, Fate::FirstTier | Fate::LowerTier);
        let (key, _) = cell.filter(is_there)?;
        let object = self.resident(key).cloned()?;
        self.tell_read(key);
        self.give_back([&(key, Arc::clone(&object))].into_iter());
        Some(object)
    }

    /// Gives objects back that were held. One that is not there any more, or has been written again, is not
    /// held any more.
    pub(super) fn give_back<'h>(&mut self, held: impl Iterator<Item = &'h (KeyId, Arc<Object>)>) {
        let is_it = |key: KeyId, object: &Arc<Object>| {
            self.resident(key).is_some_and(|resident| Arc::ptr_eq(resident, object))
        };
        let keys: Vec<KeyId> =
            held.filter(|(key, object)| is_it(*key, object)).map(|(key, _)| *key).collect();
        if keys.is_empty() {
            return;
        }
        let mut fates = Vec::with_capacity(keys.len());
        self.engine.finish_read(&keys, 1, &mut fates);
        let call = || StorageCall::FinishRead { keys: keys.into(), locks: 1 };
        self.tell(Some(thread_number()), call, Some(&fates));
        self.follow(&mut Incoming::default());
    }

    /// A prefetch of one object.
    pub(super) fn row_of(&self, key: KeyId) -> Prefetch {
        Prefetch::of([row([key].into(), self.bytes_of(key))])
    }

    pub(super) fn bytes_of(&self, key: KeyId) -> u64 {
        let here = self.resident(key).map(|object| object.len() as u64);
        here.or_else(|| self.engine.bytes_anywhere_behind(key)).unwrap_or(0)
    }

    /// What a lookup asks for, in numbers. Where someone writes down what happens, names without one have
    /// one until it is told.
    pub(super) fn grid(&mut self, lookup: &Lookup<'_>) -> Prefetch {
        // The first lookup of all may be of names that nobody has.
        self.know([NOBODY].into_iter());
        let mut rows = Vec::with_capacity(lookup.rows.len());
        for names in lookup.rows {
            let keys: Box<[KeyId]> = names.iter().map(|name| self.cell(name)).collect();
            let bytes = keys.iter().map(|key| self.bytes_of(*key)).find(|bytes| *bytes > 0);
            rows.push(row(keys, bytes.unwrap_or(0)));
        }
        Prefetch { policy: lookup.policy, request: lookup.request.into(), ..Prefetch::of(rows) }
    }

    pub(super) fn cell(&mut self, name: &[u8]) -> KeyId {
        if let Some(key) = self.live(name) {
            return key;
        }
        match (self.is_told(), self.names.find(name)) {
            (_, Some(key)) => key,
            (true, None) => self.number(name),
            (false, None) => NOBODY,
        }
    }

    /// Decides a lookup. What comes from behind gets room, if it can have it without what was found in memory
    /// leaving for it, and if not too much is under way.
    pub(super) fn begin(&mut self, mut asked: Prefetch) -> Begun {
        let mut behind: Vec<KeyId> = asked.rows.iter().flat_map(|row| &row.keys).copied().collect();
        behind.retain(|key| self.resident(*key).is_none() && self.engine.is_there(*key));
        if behind.is_empty() {
            return self.begin_now(asked);
        }
        let bytes: u64 = behind.iter().map(|key| self.bytes_of(*key)).sum();
        if self.loads_too_much(bytes) {
            self.flow.refused_loads += behind.len() as u64;
            asked.skip_l2 = true;
            return self.begin_now(asked);
        }
        let coming = behind.iter().map(|key| self.engine.taken_by(self.bytes_of(*key))).sum::<u64>();
        // A row gets all of its room or nothing: nothing leaves for one that cannot have it.
        let is_vain = asked.rows.len() == 1 && coming > self.available();
        if is_vain || self.engine.has_room(coming) {
            return self.begin_now(asked);
        }
        let held = self.hold_found(asked.clone());
        self.make_free(coming, u64::MAX);
        self.follow(&mut Incoming::default());
        let begun = self.begin_now(asked);
        self.give_back(held.iter());
        begun
    }

    /// Holds what a lookup finds in memory.
    fn hold_found(&mut self, asked: Prefetch) -> Kept {
        let found = self.decide(Prefetch { policy: FetchPolicy::Full, skip_l2: true, ..asked });
        let is_held = |(_, fate): &(KeyId, &Fate)| **fate == Fate::FirstTier;
        let cells = found.asked.rows.iter().flat_map(|row| &row.keys).copied().zip(&found.fates);
        let cells = cells.filter(is_held);
        cells.filter_map(|(key, _)| Some((key, Arc::clone(self.resident(key)?)))).collect()
    }

    /// What a lookup has to bring, where memory has no room for it but could; what it finds in memory is held
    /// then.
    pub(super) fn hold_for(&mut self, lookup: &Lookup<'_>) -> Option<(u64, Kept)> {
        if self.flow.storing.is_empty() {
            return None;
        }
        let known = lookup.rows.iter().flatten().filter_map(|name| self.names.find(name));
        let (here, away): (Vec<KeyId>, Vec<KeyId>) = known.partition(|key| self.resident(*key).is_some());
        let lengths = away.iter().filter_map(|key| self.engine.bytes_anywhere_behind(*key));
        let (bytes, coming) = lengths
            .fold((0, 0), |(bytes, coming), length| (bytes + length, coming + self.engine.taken_by(length)));
        if self.engine.has_room(coming) || self.loads_too_much(bytes) || coming > self.available() {
            return None;
        }
        let held =
            if here.is_empty() { Vec::new() } else { self.hold_found(Prefetch::of([row(here.into(), 0)])) };
        Some((coming, held))
    }

    fn loads_too_much(&self, bytes: u64) -> bool {
        self.flow.loading > 0 && self.flow.loading + bytes > self.flow.loading_most
    }

    /// The length of an object that is behind memory, if it is about to come and memory has no room for it.
    pub(super) fn needs_room(&self, name: &[u8]) -> Option<u64> {
        let key = self.names.find(name)?;
        if self.resident(key).is_some() || self.fetches.has(key) {
            return None;
        }
        let bytes = self.engine.bytes_anywhere_behind(key)?;
        let has_room = self.engine.has_room(self.engine.taken_by(bytes));
        (!has_room && !self.loads_too_much(bytes)).then_some(bytes)
    }

    /// Decides a lookup as things are. Names that had a number only to be told have none any more.
    pub(super) fn begin_now(&mut self, asked: Prefetch) -> Begun {
        let begun = self.decide(asked);
        if self.is_told() {
            for row in &begun.asked.rows {
                row.keys.iter().for_each(|key| self.free_if_unknown(*key));
            }
        }
        begun
    }

    fn decide(&mut self, mut asked: Prefetch) -> Begun {
        let mut fates = Vec::new();
        let fetching = self.engine.begin_prefetch(&asked, &mut fates);
        let wanted = self.wanted(&asked, &fetching);
        self.handles += 1;
        let handle = self.handles;
        asked.handle = (!wanted.is_empty()).then_some(handle);
        let call = || StorageCall::SubmitPrefetch(Box::new(asked.clone()));
        self.tell(Some(thread_number()), call, Some(&fates));
        if !wanted.is_empty() {
            return Begun { asked, fates, load: Some(Loading { handle, fetching, wanted }) };
        }
        fates.clear();
        self.engine.end_prefetch(&asked, fetching, &[], &mut fates);
        self.follow(&mut Incoming::default());
        Begun { asked, fates, load: None }
    }
}

/// A row of a lookup. Objects have no layout here but their length.
fn row(keys: Box<[KeyId]>, bytes: u64) -> Row {
    Row { keys, group: 0, layout: layout(bytes), window: -1 }
}

/// The number of a layout is the length of its objects.
pub(super) fn layout(bytes: u64) -> LayoutId {
    LayoutId(u32::try_from(bytes).unwrap_or(u32::MAX))
}
