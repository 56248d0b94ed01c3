//! Bodies as they come, from clients that may be slow or say too much.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// A client that sends so much is not slow.
const MOVED_BYTES: u64 = 64 << 10;

/// A body, and how long to wait for so much of it that its client is not slow.
pub struct Inflow {
    body: Incoming,
    patience: Duration,
    /// How long was waited since then, and what has come.
    waited: Duration,
    bytes: u64,
}

/// Why a body did not come.
#[derive(Debug)]
pub enum Fault {
    /// Its client takes too long.
    Slow,
    /// The connection broke, or what came is no body.
    Broken(hyper::Error),
    /// It is longer than this.
    Long(usize),
}

/// Memory for bodies, which clients may have to wait for.
pub trait Room {
    /// Why there is none, or no body.
    type Refusal: From<Fault>;

    /// Takes `bytes`, once; whoever made the room gives them back.
    fn take(&mut self, bytes: u64) -> impl Future<Output = Result<(), Self::Refusal>> + Send;

    /// Gives back what was taken but for `bytes`.
    fn keep(&mut self, bytes: u64);
}

/// As much as is asked for.
struct Endless;

impl Room for Endless {
    type Refusal = Fault;

    async fn take(&mut self, _: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn keep(&mut self, _: u64) {}
}

/// Gives back what `held` has beyond `kept`.
pub fn give_back(held: &mut OwnedSemaphorePermit, kept: usize) {
    drop(held.split(held.num_permits().saturating_sub(kept)));
}

impl Inflow {
    /// What comes of `body`, from a client that moves it within `patience`.
    pub fn of(body: Incoming, patience: Duration) -> Self {
        Self { body, patience, waited: Duration::ZERO, bytes: 0 }
    }

    /// How long it is, if it says so.
    pub fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next piece; none at the end.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let (left, began) = (self.patience.saturating_sub(self.waited), Instant::now());
            let came = timeout(left, frame).await.map_err(|_| Fault::Slow)?;
            self.waited += began.elapsed();
            match came {
                None => return Ok(None),
                Some(Err(error)) => return Err(Fault::Broken(error)),
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

    /// All of it, if it has at most `most` bytes.
    pub async fn whole(&mut self, most: usize) -> Result<Vec<u8>, Fault> {
        self.whole_in(most, &mut Endless).await
    }

    /// All of it, if it has at most `most` bytes, in `room`. All room is taken before any of it comes: bodies
    /// that hold some and wait for more would wait for each other. One that does not say how long it is takes
    /// as much as it may have, until it is there.
    pub async fn whole_in<R: Room>(&mut self, most: usize, room: &mut R) -> Result<Vec<u8>, R::Refusal> {
        let length = self.length().unwrap_or(most as u64);
        if length > most as u64 {
            return Err(Fault::Long(most).into());
        }
        room.take(length).await?;
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await? {
            if whole.len() + piece.len() > most {
                return Err(Fault::Long(most).into());
            }
            whole.extend_from_slice(&piece);
        }
        room.keep(whole.len() as u64);
        Ok(whole)
    }
}
