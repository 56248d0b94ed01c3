//! The native API: what a serving engine asks a cache for, as requests that begin, look up, retrieve, store
//! and end.

mod lookup;
mod retrieve;
mod store;
mod transfer;

use hyper::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::answer::{self, Answer, Refusal};
use super::desk::Desk;
pub(super) use lookup::lookup;
pub(super) use retrieve::retrieve;
pub(super) use store::store;

/// `{request_id}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ending {
    request_id: String,
}

/// Ends a request: what it holds is released.
pub(super) fn end(desk: &Desk, body: &[u8]) -> Result<Answer, Refusal> {
    let Ending { request_id } = read(body)?;
    let ended = desk.sessions.end(&request_id).is_some();
    Ok(answer::json(&json!({ "request_id": request_id, "ended": ended })))
}

/// A body in JSON.
fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::bad(format!("the body: {error}"), "it is JSON"))
}

fn check_id(id: &str) -> Result<(), Refusal> {
    match id.len() {
        1..=512 => Ok(()),
        0 => Err(Refusal::bad("request_id is missing", "any text that names the request")),
        _ => Err(Refusal::bad("request_id is longer than 512 bytes", "a shorter one")),
    }
}

fn not_begun(id: &str) -> Refusal {
    let shown: String = id.chars().take(100).collect();
    let error = format!("no request \"{shown}\" has begun, or it has ended");
    Refusal::of(StatusCode::NOT_FOUND, error, "POST /v1/lookup begins it")
}
