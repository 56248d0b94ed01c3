//! `POST /v1/lookup`: what is there of a prompt. What is found is held, and what is behind memory is brought.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use wavetank_calls::{Got, Held, Lookup};
use wavetank_model::{CacheFact, Fate, TraceParent};

use super::super::answer::{self, Answer, Refusal};
use super::super::desk::Desk;
use super::super::grid::{Asked, ChunkState, Grid, LookupMode};
use super::super::session::{Busy, Found, Looked};
use super::{check_id, read};

/// What a client is told.
#[derive(Serialize)]
struct Told<'a> {
    request_id: &'a str,
    mode: LookupMode,
    found_chunks: u64,
    chunk_size: u64,
    requested_tokens: u64,
    hit_tokens: u64,
    l1_hit_tokens: u64,
    l2_hit_tokens: u64,
    l1_hit_keys: u64,
    l2_hit_keys: u64,
    early_exit_reason: &'static str,
    rows: usize,
    chunks: Vec<ChunkState>,
    chunk_hashes: &'a [String],
}

/// Looks up; the answer says what was decided, and does not wait for what is behind memory.
pub(in crate::http) fn lookup(
    desk: &Arc<Desk>,
    body: &[u8],
    parent: Option<TraceParent>,
) -> Result<Answer, Refusal> {
    let asked: Asked = read(body)?;
    check_id(&asked.request_id)?;
    let grid = desk.sessions.keep(Grid::of(&asked, desk.plan.chunk_size)?)?;
    let busy = desk.sessions.enter(&asked.request_id, asked.mode.policy(), parent)?;
    let number = desk.lookup_number();
    desk.sessions.publish(&busy.0.id, || CacheFact::LookupStarted { lookup: number });
    desk.counts.lookup_requests.add(1);
    let fates = if grid.columns() == 0 {
        desk.counts.lookup_early_exits.add(1);
        let outcome = Box::new(grid.outcome(&[]));
        desk.sessions.publish(&busy.0.id, || CacheFact::LookupEnded { lookup: number, outcome });
        Vec::new()
    } else {
        begin(desk, &grid, (busy, number))
    };
    let outcome = grid.outcome(&fates);
    Ok(answer::json(&Told {
        request_id: &asked.request_id,
        mode: asked.mode,
        found_chunks: outcome.found_count,
        chunk_size: desk.plan.chunk_size,
        requested_tokens: outcome.requested_tokens,
        hit_tokens: outcome.hit_tokens,
        l1_hit_tokens: outcome.l1_hit_tokens,
        l2_hit_tokens: outcome.l2_hit_tokens,
        l1_hit_keys: outcome.l1_hit_keys,
        l2_hit_keys: outcome.l2_hit_keys,
        early_exit_reason: outcome.early_exit_reason,
        rows: grid.rows(),
        chunks: grid.states(&fates),
        chunk_hashes: &grid.hashes,
    }))
}

/// Begins to bring what is there, and gives what was decided.
fn begin(desk: &Arc<Desk>, grid: &Arc<Grid>, (busy, number): (Busy, u64)) -> Vec<Fate> {
    let (tell, mut told) = oneshot::channel();
    let (sender, found) = watch::channel(None);
    busy.0.look(Looked { grid: Arc::clone(grid), found });
    let names = grid.names();
    let lookup = Lookup { rows: &names, policy: grid.mode.policy(), request: &busy.0.id };
    // Who does not wait any more lets what comes go.
    let decided = desk.cache.storage.look(&lookup, Box::new(move |held| drop(tell.send(held))));
    let (desk, grid) = (Arc::clone(desk), Arc::clone(grid));
    let waiting = Waiting { desk, grid, number, decided: decided.clone(), busy };
    match told.try_recv() {
        Ok(held) => waiting.settle(Some(held), &sender),
        Err(_) => {
            tokio::spawn(async move {
                let came = timeout(waiting.desk.cache.patience, told).await;
                waiting.settle(came.ok().and_then(Result::ok), &sender);
            });
        }
    }
    decided
}

/// A lookup whose end is awaited.
struct Waiting {
    desk: Arc<Desk>,
    grid: Arc<Grid>,
    number: u64,
    decided: Vec<Fate>,
    busy: Busy,
}

impl Waiting {
    /// It ends: with what came, or because that took too long.
    fn settle(self, came: Option<Held>, sender: &watch::Sender<Option<Arc<Found>>>) {
        let (fates, found) = came.map_or_else(|| self.late(), all_of);
        self.count(&fates);
        sender.send_replace(Some(Arc::new(found)));
        let outcome = self.grid.outcome(&fates);
        let counts = &self.desk.counts;
        counts.lookup_requested_tokens.add(outcome.requested_tokens);
        counts.lookup_hit_tokens.add(outcome.hit_tokens);
        counts.lookup_l1_hit_tokens.add(outcome.l1_hit_tokens);
        counts.lookup_l2_hit_tokens.add(outcome.l2_hit_tokens);
        counts.lookup_l1_hit_keys.add(outcome.l1_hit_keys);
        counts.lookup_l2_hit_keys.add(outcome.l2_hit_keys);
        let ended = CacheFact::LookupEnded { lookup: self.number, outcome: Box::new(outcome) };
        self.desk.sessions.publish(&self.busy.0.id, || ended);
    }

    /// What memory has by itself: nobody waits for the rest.
    fn late(&self) -> (Vec<Fate>, Found) {
        let object = |(cell, fate): (usize, &Fate)| match fate {
            Fate::FirstTier => match self.desk.cache.storage.get(self.grid.name(cell)?) {
                Got::Here(object) => Some(object),
                Got::Behind | Got::Absent => None,
            },
            _ => None,
        };
        let objects: Vec<_> = self.decided.iter().enumerate().map(object).collect();
        let fates = objects.iter().map(|found| match found {
            Some(_) => Fate::FirstTier,
            None => Fate::Absent,
        });
        (fates.collect(), Found { objects, _held: None })
    }

    /// Every object asked for is a hit, a miss, or was there and did not come.
    fn count(&self, fates: &[Fate]) {
        let counters = &self.desk.cache.counters;
        counters.lookups.add(fates.len() as u64);
        for (decided, fate) in self.decided.iter().zip(fates) {
            match (decided, fate) {
                (_, Fate::FirstTier) => counters.l1_hits.add(1),
                (_, Fate::LowerTier) => counters.l2_hits.add(1),
                (_, Fate::Failed) | (Fate::LowerTier, _) => counters.l2_failures.add(1),
                _ => counters.misses.add(1),
            }
        }
    }
}

fn all_of(held: Held) -> (Vec<Fate>, Found) {
    let objects = (0..held.fates.len()).map(|cell| held.object(cell).cloned()).collect();
    (held.fates.clone(), Found { objects, _held: Some(held) })
}
