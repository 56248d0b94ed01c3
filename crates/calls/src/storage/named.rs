//! Objects by name, for servers: what clients write, read, hold and remove.
//!
//! An object is written before it has its name: readers see what was there before or all that is new.

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use wavetank_model::{Fate, FetchPolicy, KeyId, LayoutId, Prefetch, Row, StorageCall, WriteMode};

use super::Storage;
use super::background::called;
use super::deadlines::since_1970_ms;
use super::journal::thread_number;
use super::names::NOBODY;
use super::state::{Ending, Incoming, Load, Shared, State};
use crate::bytes::Object;

/// Room in memory for an object that has no name yet, with whatever was there before. Dropped, it is given
/// back.
pub struct Blank {
    object: Option<Object>,
    /// What it takes of memory.
    taken: u64,
    shared: Weak<Shared>,
}

impl Blank {
    /// Where its bytes go.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.object.as_deref_mut().unwrap_or_default()
    }
}

impl Drop for Blank {
    fn drop(&mut self) {
        if let (Some(_), Some(shared)) = (&self.object, self.shared.upgrade()) {
            shared.lock().take_unnamed(self.taken);
        }
    }
}

/// Which objects may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Only {
    /// Any.
    #[default]
    Any,
    /// Those that are not there.
    Absent,
    /// Those that are there.
    Present,
}

/// How an object is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetManner {
    /// Only if.
    pub only: Only,
    /// When it is not there any more, if ever.
    pub expires: Option<SystemTime>,
}

/// What became of a write.
pub struct Set {
    /// `Done`, or why not: `Resident`, `Absent`, or `NoMemory` where its tenant may not have so much.
    pub fate: Fate,
    /// What was there before, as far as memory had it.
    pub before: Option<Arc<Object>>,
}

/// Where an object is.
pub enum Got {
    /// In memory.
    Here(Arc<Object>),
    /// Behind memory: [`Storage::fetch`] brings it.
    Behind,
    /// Nowhere.
    Absent,
}

/// Where an object is that is to stay there.
pub enum Hold {
    /// In memory, where it stays as long as it is held.
    Here(Held),
    /// Behind memory: [`Storage::look`] brings it.
    Behind,
    /// Nowhere.
    Absent,
}

/// What a request looks up.
pub struct Lookup<'a> {
    /// A row per rank and object group with a name per chunk; rows are of one length.
    pub rows: &'a [Vec<&'a [u8]>],
    /// Which of the objects found are of use.
    pub policy: FetchPolicy,
    /// The request's name outside.
    pub request: &'a str,
}

/// Objects that stay in memory as long as this does, row by row. Those that are not there hold nothing.
pub struct Held {
    cells: Vec<Option<(KeyId, Arc<Object>)>>,
    /// What became of each cell.
    pub fates: Vec<Fate>,
    shared: Weak<Shared>,
}

impl Held {
    /// The object of a cell, if it is held.
    pub fn object(&self, cell: usize) -> Option<&Arc<Object>> {
        self.cells.get(cell)?.as_ref().map(|(_, object)| object)
    }

    /// Cells that are held.
    pub fn count(&self) -> usize {
        self.cells.iter().flatten().count()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.count() == 0 {
            return;
        }
        if let Some(shared) = self.shared.upgrade() {
            shared.lock().give_back(self.cells.iter().flatten());
        }
    }
}

/// Who is told when what was looked up is in memory, or has failed: called once, from some thread, holding no
/// lock.
pub type Then<T> = Box<dyn FnOnce(T) + Send>;

impl Storage {
    /// Room for an object of `bytes`; others leave memory for it where they have to. None where that does not
    /// help: everything is held, or it is larger than memory.
    pub fn room(&self, bytes: u64) -> Option<Blank> {
        let taken = self.shared.lock().make_room(bytes)?;
        let object = Some(self.shared.pool.object(bytes as usize));
        Some(Blank { object, taken, shared: Arc::downgrade(&self.shared) })
    }

    /// Gives what was written its name. What had that name before is nowhere any more, nor does a copy of it
    /// that is under way come back.
    pub fn set(&self, name: &[u8], mut blank: Blank, manner: SetManner) -> Set {
        let object = Arc::new(blank.object.take().expect("it is there until it is dropped"));
        let mut state = self.shared.lock();
        state.take_unnamed(blank.taken);
        state.set(name, object, manner)
    }

    /// An object, if it is in memory; where it is otherwise. It counts as used.
    pub fn get(&self, name: &[u8]) -> Got {
        self.shared.lock().get(name)
    }

    /// Brings an object from behind memory. Where too much is under way already it is not brought.
    pub fn fetch(&self, name: &[u8], then: Then<Option<Arc<Object>>>) {
        let mut state = self.shared.lock();
        match state.get(name) {
            Got::Behind => {}
            got => {
                drop(state);
                return called(|| then(got.here()));
            }
        }
        let lookup = Lookup { rows: &[vec![name]], policy: FetchPolicy::Prefix, request: "" };
        let asked = state.grid(&lookup);
        let begun = state.begin(asked);
        let Some(load) = begun.load else {
            let cell = begun.asked.rows.first().and_then(|row| row.keys.first().copied());
            let object = state.give(cell.zip(begun.fates.first().copied()));
            drop(state);
            return called(|| then(object));
        };
        state.load(load.with(begun.asked, Ending::Fetch(then)));
    }

    /// How long an object is, wherever it is. It does not count as used.
    pub fn size(&self, name: &[u8]) -> Option<u64> {
        let mut state = self.shared.lock();
        let key = state.live(name)?;
        let here = state.resident(key).map(|object| object.len() as u64);
        here.or_else(|| state.engine.bytes_anywhere_behind(key))
    }

    /// Holds an object that is in memory, so that it stays. It counts as used.
    pub fn hold(&self, name: &[u8]) -> Hold {
        let mut state = self.shared.lock();
        let Some(key) = state.live(name) else { return Hold::Absent };
        if state.resident(key).is_none() {
            return if state.engine.is_there(key) { Hold::Behind } else { Hold::Absent };
        }
        let asked = state.row_of(key);
        let begun = state.begin(asked);
        let cells = begun.asked.rows.iter().flat_map(|row| &row.keys).copied();
        Hold::Here(held(&self.shared, &state, cells, begun.fates))
    }

    /// Looks names up and holds what is found and of use; what is behind memory is brought. Answers at once
    /// with what was decided, and tells `then` what came of it.
    pub fn look(&self, lookup: &Lookup<'_>, then: Then<Held>) -> Vec<Fate> {
        let mut state = self.shared.lock();
        let asked = state.grid(lookup);
        if asked.columns() == 0 {
            let held = Held { cells: Vec::new(), fates: Vec::new(), shared: Weak::new() };
            drop(state);
            called(|| then(held));
            return Vec::new();
        }
        let Begun { asked, fates, load } = state.begin(asked);
        if let Some(load) = load {
            state.load(load.with(asked, Ending::Look(then)));
            return fates;
        }
        let cells = asked.rows.iter().flat_map(|row| &row.keys).copied();
        let held = held(&self.shared, &state, cells, fates.clone());
        drop(state);
        called(|| then(held));
        fates
    }

    /// Removes an object from everywhere; whether it was there. Who reads it goes on reading.
    pub fn remove(&self, name: &[u8]) -> bool {
        let mut state = self.shared.lock();
        let Some(key) = state.live(name) else { return false };
        let was_there = state.remove(key);
        state.follow(&mut Incoming::default());
        was_there
    }

    /// Removes every object from everywhere.
    pub fn clear(&self) {
        let mut state = self.shared.lock();
        let keys: Vec<KeyId> = state.names.keys().collect();
        for key in keys {
            state.remove(key);
        }
        state.follow(&mut Incoming::default());
    }

    /// Objects there are, wherever they are.
    pub fn len(&self) -> usize {
        self.shared.lock().names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Got {
    fn here(self) -> Option<Arc<Object>> {
        match self {
            Self::Here(object) => Some(object),
            Self::Behind | Self::Absent => None,
        }
    }
}

/// A lookup that was decided. Without anything to load it is over.
struct Begun {
    asked: Prefetch,
    fates: Vec<Fate>,
    load: Option<Loading>,
}

/// What it has to load.
struct Loading {
    handle: u64,
    fetching: crate::prefetch::Fetching,
    wanted: Vec<crate::bytes::Wanted>,
}

impl Loading {
    fn with(self, asked: Prefetch, ending: Ending) -> Load {
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
    fn take_unnamed(&mut self, taken: u64) {
        self.engine.set_unnamed(self.engine.unnamed() - taken);
    }

    /// Takes room for an object without a name; how much.
    fn make_room(&mut self, bytes: u64) -> Option<u64> {
        let taken = self.engine.room_of(bytes)?;
        self.engine.set_unnamed(self.engine.unnamed() + taken);
        if !self.engine.fits() {
            self.make_fit();
            self.follow(&mut Incoming::default());
        }
        if !self.engine.fits() {
            self.take_unnamed(taken);
            return None;
        }
        Some(taken)
    }

    /// The number of a name under which something is known. What has had its time is gone.
    fn live(&mut self, name: &[u8]) -> Option<KeyId> {
        let key = self.names.find(name)?;
        if self.deadlines.is_over(key) {
            self.remove(key);
            self.deadlines.remove(key);
            self.follow(&mut Incoming::default());
            return None;
        }
        Some(key)
    }

    fn set(&mut self, name: &[u8], object: Arc<Object>, manner: SetManner) -> Set {
        let known = self.live(name);
        let there = known.filter(|key| self.engine.is_there(*key));
        let before = there.and_then(|key| self.resident(key).cloned());
        let refused = match manner.only {
            Only::Any => None,
            Only::Absent => there.map(|_| Fate::Resident),
            Only::Present => there.is_none().then_some(Fate::Absent),
        };
        if let Some(fate) = refused {
            return Set { fate, before };
        }
        // Something may be known of a name that is nowhere: a copy of what was there is under way.
        let known = known.or_else(|| self.names.find(name));
        let key = known.unwrap_or_else(|| self.number(name));
        if self.engine.is_above_quota(key, object.len() as u64) {
            self.free_if_unknown(key);
            return Set { fate: Fate::NoMemory, before };
        }
        if there.is_some() {
            self.remove(key);
        }
        let fate = self.write(key, object, manner.expires);
        Set { fate, before }
    }

    /// Writes an object whose key has none: room was taken for it.
    fn write(&mut self, key: KeyId, object: Arc<Object>, expires: Option<SystemTime>) -> Fate {
        let (keys, bytes) = ([key], object.len() as u64);
        let mut fates = std::mem::take(&mut self.fates);
        fates.clear();
        self.engine.reserve_write(&keys, bytes, &mut fates);
        let (layout, mode) = (layout(bytes), WriteMode::New);
        let call = || StorageCall::ReserveWrite { keys: keys.into(), layout, mode };
        self.tell(Some(thread_number()), call, Some(&fates));
        let fate = fates[0];
        if fate == Fate::Done {
            fates.clear();
            self.engine.finish_write(&keys, &mut fates);
            let call = || StorageCall::FinishWrite { keys: keys.into() };
            self.tell(Some(thread_number()), call, Some(&fates));
            self.deadlines.set(key, expires.map(since_1970_ms));
            self.follow(&mut Incoming::one(key, object));
        } else {
            self.follow(&mut Incoming::default());
            self.free_if_unknown(key);
        }
        self.fates = fates;
        fate
    }

    fn free_if_unknown(&mut self, key: KeyId) {
        if !self.is_known(key) {
            self.free_number(key);
        }
    }

    fn get(&mut self, name: &[u8]) -> Got {
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
    fn tell_use(&self, key: KeyId, bytes: u64) {
        let (thread, done) = (Some(thread_number()), [Fate::Done]);
        let asked = || StorageCall::SubmitPrefetch(Box::new(Prefetch::of([row([key].into(), bytes)])));
        self.tell(thread, asked, Some(&[Fate::FirstTier]));
        self.tell_read(key);
        self.tell(thread, || StorageCall::FinishRead { keys: [key].into(), locks: 1 }, Some(&done));
    }

    fn tell_read(&self, key: KeyId) {
        let thread = Some(thread_number());
        self.tell(thread, || StorageCall::ReadEnter { keys: [key].into() }, Some(&[Fate::Done]));
        self.tell(thread, || StorageCall::ReadExit { keys: [key].into() }, None);
    }

    /// A lookup of one name that found nothing. A name that has no number has one while it is told.
    fn tell_miss(&mut self, name: &[u8]) {
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
    fn give_back<'h>(&mut self, held: impl Iterator<Item = &'h (KeyId, Arc<Object>)>) {
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
    fn row_of(&self, key: KeyId) -> Prefetch {
        Prefetch::of([row([key].into(), self.bytes_of(key))])
    }

    fn bytes_of(&self, key: KeyId) -> u64 {
        let here = self.resident(key).map(|object| object.len() as u64);
        here.or_else(|| self.engine.bytes_anywhere_behind(key)).unwrap_or(0)
    }

    /// What a lookup asks for, in numbers. Where someone writes down what happens, names without one have
    /// one until it is told.
    fn grid(&mut self, lookup: &Lookup<'_>) -> Prefetch {
        let mut rows = Vec::with_capacity(lookup.rows.len());
        for names in lookup.rows {
            let keys: Box<[KeyId]> = names.iter().map(|name| self.cell(name)).collect();
            let bytes = keys.iter().map(|key| self.bytes_of(*key)).find(|bytes| *bytes > 0);
            rows.push(row(keys, bytes.unwrap_or(0)));
        }
        self.know([NOBODY].into_iter());
        Prefetch { policy: lookup.policy, request: lookup.request.into(), ..Prefetch::of(rows) }
    }

    fn cell(&mut self, name: &[u8]) -> KeyId {
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
    fn begin(&mut self, mut asked: Prefetch) -> Begun {
        let mut behind: Vec<KeyId> = asked.rows.iter().flat_map(|row| &row.keys).copied().collect();
        behind.retain(|key| self.resident(*key).is_none() && self.engine.is_there(*key));
        if behind.is_empty() {
            return self.begin_now(asked);
        }
        let bytes: u64 = behind.iter().map(|key| self.bytes_of(*key)).sum();
        if self.flow.loading > 0 && self.flow.loading + bytes > self.flow.loading_most {
            self.flow.refused_loads += behind.len() as u64;
            asked.skip_l2 = true;
            return self.begin_now(asked);
        }
        let coming = behind.iter().filter_map(|key| self.engine.room_of(self.bytes_of(*key))).sum::<u64>();
        if self.engine.has_room(coming) {
            return self.begin_now(asked);
        }
        let all = Prefetch { policy: FetchPolicy::Full, skip_l2: true, ..asked.clone() };
        let held = self.begin_now(all);
        let is_held = |(_, fate): &(KeyId, &Fate)| **fate == Fate::FirstTier;
        let cells = held.asked.rows.iter().flat_map(|row| &row.keys).copied().zip(&held.fates);
        let cells = cells.filter(is_held).filter_map(|(key, _)| Some((key, Arc::clone(self.resident(key)?))));
        let cells: Vec<(KeyId, Arc<Object>)> = cells.collect();
        self.engine.set_unnamed(self.engine.unnamed() + coming);
        self.make_fit();
        self.take_unnamed(coming);
        self.follow(&mut Incoming::default());
        let begun = self.begin_now(asked);
        self.give_back(cells.iter());
        begun
    }

    fn begin_now(&mut self, mut asked: Prefetch) -> Begun {
        let mut fates = Vec::new();
        let fetching = self.engine.begin_prefetch(&asked, &mut fates);
        let wanted = self.wanted(&asked, &fetching);
        self.handles += 1;
        let handle = self.handles;
        asked.handle = (!wanted.is_empty()).then_some(handle);
        let call = || StorageCall::SubmitPrefetch(Box::new(asked.clone()));
        self.tell(Some(thread_number()), call, Some(&fates));
        if self.is_told() {
            for row in &asked.rows {
                row.keys.iter().for_each(|key| self.free_if_unknown(*key));
            }
        }
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
fn layout(bytes: u64) -> LayoutId {
    LayoutId(u32::try_from(bytes).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
