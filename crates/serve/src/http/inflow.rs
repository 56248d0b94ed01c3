//! Bodies as they come, from clients that may be slow or say too much.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::answer::Refusal;
use super::desk::Desk;

/// The longest body that is read as a whole.
pub(super) const MOST_JSON: usize = 16 << 20;

/// A client that sends so much is not slow.
const MOVED_BYTES: u64 = 64 << 10;
/// What room is taken in, for a body that does not say how long it is.
const STEP: u64 = 64 << 10;

/// A body, and how long to wait for so much of it that its client is not slow.
pub(crate) struct Inflow {
    body: Incoming,
    patience: Duration,
    /// How long was waited since then, and what has come.
    waited: Duration,
    bytes: u64,
}

impl Inflow {
    pub(super) fn of(body: Incoming, patience: Duration) -> Self {
        Self { body, patience, waited: Duration::ZERO, bytes: 0 }
    }

    /// The next piece; none at the end.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let slow =
                |_| Refusal::of(StatusCode::REQUEST_TIMEOUT, "the body does not come", "send it faster");
            let (left, began) = (self.patience.saturating_sub(self.waited), Instant::now());
            let came = timeout(left, frame).await.map_err(slow)?;
            self.waited += began.elapsed();
            match came {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(Refusal::bad(format!("the body broke off: {error}"), "send it again"));
                }
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.took(bytes.len() as u64);
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    fn took(&mut self, bytes: u64) {
        self.bytes += bytes;
        if self.bytes >= MOVED_BYTES {
            (self.waited, self.bytes) = (Duration::ZERO, 0);
        }
    }

    /// All of it, if it is short, with its part of what may be under way.
    pub(super) async fn whole(&mut self, desk: &Desk) -> Result<(Vec<u8>, OwnedSemaphorePermit), Refusal> {
        let long = || {
            let error = format!("the body is longer than {MOST_JSON} bytes");
            Refusal::of(StatusCode::PAYLOAD_TOO_LARGE, error, "objects go to /v1/store")
        };
        if self.body.size_hint().lower() > MOST_JSON as u64 {
            return Err(long());
        }
        let mut room = self.body.size_hint().lower();
        let mut share = desk.share(room).await?;
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await? {
            let length = whole.len() + piece.len();
            if length > MOST_JSON {
                return Err(long());
            }
            while room < length as u64 {
                share.merge(desk.share(STEP).await?);
                room += STEP;
            }
            whole.extend_from_slice(&piece);
        }
        Ok((whole, share))
    }
}
