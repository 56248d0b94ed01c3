//! Bodies as they come, from clients that may be slow or say too much.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use super::answer::Refusal;

/// The longest body that is read as a whole.
pub(super) const MOST_JSON: usize = 16 << 20;

/// A body, and how long to wait for its next piece.
pub(crate) struct Inflow {
    body: Incoming,
    patience: Duration,
}

impl Inflow {
    pub(super) fn of(body: Incoming, patience: Duration) -> Self {
        Self { body, patience }
    }

    /// The next piece; none at the end.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let slow =
                |_| Refusal::of(StatusCode::REQUEST_TIMEOUT, "the body does not come", "send it faster");
            match timeout(self.patience, frame).await.map_err(slow)? {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(Refusal::bad(format!("the body broke off: {error}"), "send it again"));
                }
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// All of it, if it is short.
    pub(super) async fn whole(mut self) -> Result<Vec<u8>, Refusal> {
        let long = || {
            let error = format!("the body is longer than {MOST_JSON} bytes");
            Refusal::of(StatusCode::PAYLOAD_TOO_LARGE, error, "objects go to /v1/store")
        };
        if self.body.size_hint().lower() > MOST_JSON as u64 {
            return Err(long());
        }
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await? {
            whole.extend_from_slice(&piece);
            if whole.len() > MOST_JSON {
                return Err(long());
            }
        }
        Ok(whole)
    }
}
