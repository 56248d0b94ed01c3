//! `POST /v1/retrieve`: objects that a request has found, as they are in memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use serde::Deserialize;
use wavetank_calls::Object;
use wavetank_model::TransferWay;

use super::super::answer::{self, Answer, Pieces, Refusal};
use super::super::desk::Desk;
use super::super::frame;
use super::super::grid::{Grid, hashes};
use super::super::session::Found;
use super::transfer::{Caller, Done, Transfer};
use super::{not_begun, read};
use crate::name::check_hash;

/// Which of what was looked up.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    request_id: String,
    /// The first chunk.
    #[serde(default)]
    from: usize,
    /// The chunk after the last.
    to: Option<usize>,
    /// Or chunks by their hashes.
    #[serde(default, deserialize_with = "hashes")]
    chunk_hashes: Option<Vec<String>>,
    device: Option<String>,
    engine_id: Option<u64>,
}

/// Sends what is held of the chunks asked for; waits for what is on its way.
pub(in crate::http) async fn retrieve(desk: &Arc<Desk>, body: &[u8]) -> Result<Answer, Refusal> {
    let wanted: Wanted = desk.apart(body.len(), || read(body)).await?;
    let busy = desk.sessions.find(&wanted.request_id).ok_or_else(|| not_begun(&wanted.request_id))?;
    let nothing = || {
        let error = "the request has looked nothing up";
        Refusal::of(StatusCode::CONFLICT, error, "POST /v1/lookup comes before")
    };
    let mut looked = busy.0.looked().ok_or_else(nothing)?;
    let columns = desk.apart(body.len(), || wanted.columns(&looked.grid)).await?;
    let caller = Caller::of(wanted.device.as_deref(), wanted.engine_id);
    let transfer = Transfer::submit(desk, busy, TransferWay::Retrieve, &caller);
    // It comes within the server's patience, with what there is by then.
    let found = match looked.found.wait_for(Option::is_some).await {
        Ok(found) => found.clone().unwrap_or_default(),
        Err(_) => Arc::default(),
    };
    transfer.start(&caller, &looked.grid.model, &looked.grid.salt);
    Ok(send(Sending { desk, grid: &looked.grid, found }, &columns, transfer))
}

impl Wanted {
    fn columns(&self, grid: &Grid) -> Result<Vec<usize>, Refusal> {
        let all: Range<usize> = 0..grid.columns();
        let Some(hashes) = &self.chunk_hashes else {
            let to = self.to.unwrap_or(all.end);
            if self.from > to || to > all.end {
                let error = format!("chunks {} to {to} of {} are asked for", self.from, all.end);
                return Err(Refusal::bad(error, "from is the first, to the one after the last"));
            }
            return Ok((self.from..to).collect());
        };
        if hashes.len() > all.end {
            let error = format!("{} chunks are named, and {} were looked up", hashes.len(), all.end);
            return Err(Refusal::bad(error, "name each once"));
        }
        // The first place of each.
        let places: HashMap<&str, usize> =
            grid.hashes.iter().enumerate().rev().map(|(place, hash)| (hash.as_str(), place)).collect();
        let place = |text: &String| -> Result<usize, Refusal> {
            let hash = check_hash(text)?;
            let unknown = || Refusal::bad(format!("{hash} was not looked up"), "by this request");
            places.get(hash.as_str()).copied().ok_or_else(unknown)
        };
        hashes.iter().map(place).collect()
    }
}

struct Sending<'a> {
    desk: &'a Arc<Desk>,
    grid: &'a Grid,
    found: Arc<Found>,
}

/// Frames chunk by chunk, so that the start of a prompt comes first; what is not there is left out.
fn send(sending: Sending<'_>, columns: &[usize], mut transfer: Transfer) -> Answer {
    let Sending { desk, grid, found } = sending;
    let (mut body, mut done, mut missing) = (Pieces::default(), Done::default(), 0u64);
    for column in columns {
        let before = missing;
        for cell in (0..grid.rows()).map(|row| row * grid.columns() + column) {
            match found.objects.get(cell).and_then(Option::as_ref) {
                None => missing += 1,
                Some(object) => {
                    done.objects += 1;
                    done.bytes += object.len() as u64;
                    body.push(frame::head(cell as u32, object.len() as u64));
                    body.push(Bytes::from_owner(Shown(Arc::clone(object))));
                }
            }
        }
        done.tokens += if before == missing { grid.chunk_size } else { 0 };
    }
    transfer.moved(done);
    let desk = Arc::clone(desk);
    body.at_end(move |unsent| {
        // What is held stays until it was sent.
        drop(found);
        desk.cache.counters.bytes_out.add(done.bytes.saturating_sub(unsent));
        transfer.end((unsent > 0).then_some("the client went away"));
    });
    let answer = answer::with(answer::binary(body), "wavetank-objects", done.objects);
    answer::with(answer, "wavetank-missing", missing)
}

/// An object as a piece of a body.
struct Shown(Arc<Object>);

impl AsRef<[u8]> for Shown {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
