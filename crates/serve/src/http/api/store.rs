//! `PUT /v1/store`: objects into the cache, each written where it stays as it comes.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use wavetank_calls::{Blank, Only, SetManner};
use wavetank_http::Inflow;
use wavetank_model::{Fate, TraceParent, TransferWay};

use super::super::answer::{self, Answer, Refusal};
use super::super::desk::Desk;
use super::super::frame::{PREAMBLE, Part, Reader};
use super::super::grid::{Asked, Grid};
use super::super::inflow::MOST_JSON;
use super::transfer::{Caller, Done, Transfer};
use super::{check_id, read};

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum StoreState {
    /// It is there now.
    Stored,
    /// It was there before.
    Exists,
    /// There is no room: all of memory is held.
    NoRoom,
}

#[derive(Serialize)]
struct StoredObject {
    index: u32,
    state: StoreState,
}

/// What a client is told.
#[derive(Serialize)]
struct Told {
    request_id: String,
    stored: u64,
    exists: u64,
    no_room: u64,
    bytes: u64,
    objects: Vec<StoredObject>,
}

/// Takes what comes.
pub(in crate::http) async fn store(
    desk: &Arc<Desk>,
    query: &str,
    mut inflow: Inflow,
    parent: Option<TraceParent>,
) -> Result<Answer, Refusal> {
    let (objects, seen, now) = (Vec::new(), HashSet::new(), Now::Between);
    let mut taking = Taking { desk, query, parent, into: None, objects, seen, now };
    match take(&mut taking, &mut inflow).await {
        Ok(()) => taking.finish(),
        Err(refusal) => {
            if let Some(into) = taking.into.take() {
                into.transfer.end(Some(refusal.error()));
            }
            Err(refusal)
        }
    }
}

async fn take(taking: &mut Taking<'_>, inflow: &mut Inflow) -> Result<(), Refusal> {
    let desk = taking.desk;
    let mut reader = Reader::default();
    while let Some(mut piece) = inflow.piece().await? {
        while let Some(part) = reader.next(&mut piece) {
            match part {
                Part::Begin { index, length } => taking.begin(index, length).await?,
                Part::Bytes(bytes) => taking.bytes(&bytes),
                Part::End => desk.apart(taking.words(), || taking.end()).await?,
            }
        }
    }
    if reader.is_whole() {
        return Ok(());
    }
    Err(Refusal::bad("the body ends within an object", "each has its index, length and bytes"))
}

/// Objects that come.
struct Taking<'a> {
    desk: &'a Arc<Desk>,
    query: &'a str,
    parent: Option<TraceParent>,
    into: Option<Into>,
    objects: Vec<StoredObject>,
    /// Their indices: what is told of them is as long as what was named.
    seen: HashSet<u32>,
    now: Now,
}

/// Where they go.
struct Into {
    id: String,
    grid: Arc<Grid>,
    transfer: Transfer,
    done: Done,
}

/// What comes right now.
enum Now {
    Between,
    /// Words about the objects.
    Words(Vec<u8>, OwnedSemaphorePermit),
    /// An object.
    Object {
        index: u32,
        blank: Blank,
        filled: usize,
        /// Its part of what may be under way.
        _share: OwnedSemaphorePermit,
    },
    /// An object that is not taken.
    Skipped,
}

impl Taking<'_> {
    async fn begin(&mut self, index: u32, length: u64) -> Result<(), Refusal> {
        if index == PREAMBLE && self.into.is_none() {
            if length > MOST_JSON as u64 {
                return Err(too_large("the preamble", MOST_JSON as u64));
            }
            let share = self.desk.share(length).await?;
            self.now = Now::Words(Vec::with_capacity(length as usize), share);
            return Ok(());
        }
        if self.into.is_none() {
            let asked = of_query(self.query)?;
            self.open(&asked)?;
        }
        let grid = &self.into.as_ref().expect("it was opened").grid;
        let beyond = || Refusal::bad(format!("no object {index} was named"), "row by row, from 0");
        let name = grid.name(index as usize).ok_or_else(beyond)?;
        if !self.seen.insert(index) {
            return Err(Refusal::bad(format!("object {index} comes twice"), "send each once"));
        }
        let most = self.desk.plan.limits.value_bytes;
        if length > most {
            return Err(too_large("an object", most));
        }
        if self.desk.cache.storage.size(name).is_some() {
            return self.skip(index, StoreState::Exists);
        }
        let share = self.desk.share(length).await?;
        let Some(blank) = self.desk.cache.storage.room(length) else {
            return self.skip(index, StoreState::NoRoom);
        };
        self.now = Now::Object { index, blank, filled: 0, _share: share };
        Ok(())
    }

    fn skip(&mut self, index: u32, state: StoreState) -> Result<(), Refusal> {
        self.note(index, state);
        self.now = Now::Skipped;
        Ok(())
    }

    fn bytes(&mut self, bytes: &Bytes) {
        match &mut self.now {
            Now::Between | Now::Skipped => {}
            Now::Words(words, _) => words.extend_from_slice(bytes),
            Now::Object { blank, filled, .. } => {
                blank.bytes_mut()[*filled..*filled + bytes.len()].copy_from_slice(bytes);
                *filled += bytes.len();
            }
        }
    }

    /// Bytes of words that have come about objects.
    fn words(&self) -> usize {
        if let Now::Words(words, _) = &self.now { words.len() } else { 0 }
    }

    fn end(&mut self) -> Result<(), Refusal> {
        match std::mem::replace(&mut self.now, Now::Between) {
            Now::Between | Now::Skipped => Ok(()),
            Now::Words(words, _share) => self.open(&read(&words)?),
            Now::Object { index, blank, filled, .. } => {
                let into = self.into.as_mut().expect("an object goes somewhere");
                let name = into.grid.name(index as usize).expect("it was named");
                let manner = SetManner { only: Only::Absent, expires: None };
                let state = match self.desk.cache.storage.set(name, blank, manner).fate {
                    Fate::Done => StoreState::Stored,
                    Fate::Resident => StoreState::Exists,
                    _ => StoreState::NoRoom,
                };
                if state == StoreState::Stored {
                    into.done.objects += 1;
                    into.done.bytes += filled as u64;
                    into.done.tokens = into.done.objects / into.grid.rows() as u64 * into.grid.chunk_size;
                    into.transfer.moved(into.done);
                    self.desk.cache.counters.stores.add(1);
                    self.desk.cache.counters.bytes_in.add(filled as u64);
                }
                self.note(index, state);
                Ok(())
            }
        }
    }

    fn note(&mut self, index: u32, state: StoreState) {
        if state == StoreState::NoRoom {
            self.desk.cache.counters.refused_stores.add(1);
        }
        self.objects.push(StoredObject { index, state });
    }

    /// Objects are known by name from here on: as said, or as looked up before.
    fn open(&mut self, asked: &Asked) -> Result<(), Refusal> {
        check_id(&asked.request_id)?;
        let is_named = asked.token_ids.is_some() || asked.chunk_hashes.is_some();
        let before = self.desk.sessions.find(&asked.request_id).and_then(|busy| busy.0.looked());
        let grid = match before {
            Some(looked) if !is_named => looked.grid,
            _ => self.desk.sessions.keep(Grid::of(asked, self.desk.plan.chunk_size)?)?,
        };
        let busy = self.desk.sessions.enter(&asked.request_id, asked.mode.policy(), self.parent)?;
        let caller = Caller::of(asked.device.as_deref(), asked.engine_id);
        let transfer = Transfer::submit(self.desk, busy, TransferWay::Store, &caller);
        transfer.start(&caller, &grid.model, &grid.salt);
        self.into = Some(Into { id: asked.request_id.clone(), grid, transfer, done: Done::default() });
        Ok(())
    }

    fn finish(self) -> Result<Answer, Refusal> {
        let Some(Into { id, transfer, done, .. }) = self.into else {
            return Err(Refusal::bad("the body holds no object", "each has its index, length and bytes"));
        };
        transfer.end(None);
        let count = |state| self.objects.iter().filter(|object| object.state == state).count() as u64;
        let told = Told {
            request_id: id,
            stored: count(StoreState::Stored),
            exists: count(StoreState::Exists),
            no_room: count(StoreState::NoRoom),
            bytes: done.bytes,
            objects: self.objects,
        };
        Ok(answer::json(&told))
    }
}

/// What the objects are, from the query of the address; lists are split at commas.
fn of_query(query: &str) -> Result<Asked, Refusal> {
    let mut asked = Asked::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let number = |text: &str| {
            let wrong = |_| Refusal::bad(format!("{name}: {text} is no number"), "of 32 bits");
            text.parse::<u32>().map_err(wrong)
        };
        let numbers = || value.split(',').map(number).collect::<Result<Vec<u32>, Refusal>>();
        match &*name {
            "request_id" => asked.request_id = value.into_owned(),
            "model" => asked.model = value.into_owned(),
            "cache_salt" => asked.cache_salt = value.into_owned(),
            "chunk_hashes" => asked.chunk_hashes = Some(value.split(',').map(str::to_owned).collect()),
            "token_ids" => asked.token_ids = Some(numbers()?),
            "kv_ranks" => asked.kv_ranks = Some(numbers()?),
            "groups" => asked.groups = Some(numbers()?),
            "device" => asked.device = Some(value.into_owned()),
            "engine_id" => asked.engine_id = Some(u64::from(number(&value)?)),
            other => {
                let known = "request_id, model, cache_salt, chunk_hashes, token_ids, kv_ranks, groups, \
                             device, engine_id";
                return Err(Refusal::bad(format!("unknown parameter \"{other}\""), known));
            }
        }
    }
    Ok(asked)
}

fn too_large(what: &str, most: u64) -> Refusal {
    let error = format!("{what} is longer than {most} bytes");
    Refusal::of(StatusCode::PAYLOAD_TOO_LARGE, error, "--max-value says how long objects may be")
}
