//! What a connection is besides its bytes: who it is, and what it waits for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use wavetank_calls::{Blank, Object, SetManner};
use wavetank_model::{CacheEvent, CacheFact, Nanos};
use wavetank_telemetry::Bus;

use super::mailbox::Ticket;

/// Whether a client said who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// It has to.
    Unknown,
    /// It did, or nobody asks.
    Granted,
}

/// Who is connected.
pub(super) struct Session {
    /// Which connection of this process.
    pub(super) id: u64,
    /// Where it is served.
    pub(super) slot: usize,
    pub(super) peer: SocketAddr,
    pub(super) access: Access,
    /// As the client calls itself.
    pub(super) name: Vec<u8>,
    pub(super) library: [Vec<u8>; 2],
    pub(super) opened: Instant,
    /// The row of its last command: clients say the same thing again and again.
    pub(super) row: usize,
    /// No more commands are taken.
    pub(super) is_leaving: bool,
    /// Its name in spans, where somebody listens.
    span: Option<Arc<str>>,
}

/// A command's part in a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) keys: u32,
    pub(super) hits: u32,
    pub(super) bytes: u64,
}

impl Session {
    /// One that begins.
    pub(super) fn new(id: u64, slot: usize, peer: SocketAddr, access: Access, now: Instant) -> Self {
        Self {
            id,
            slot,
            peer,
            access,
            name: Vec::new(),
            library: Default::default(),
            opened: now,
            row: 0,
            is_leaving: false,
            span: None,
        }
    }

    /// Says that it began.
    pub(super) fn tell_opened(&mut self, bus: &Bus) {
        if bus.is_on() {
            let session: Arc<str> = format!("resp-{}", self.id).into();
            let fact = CacheFact::ConnectionOpened { peer: self.peer.to_string().into() };
            self.span = Some(Arc::clone(&session));
            bus.publish(|| CacheEvent { at: since_1970(), session, fact });
        }
    }

    /// When a command begins, where somebody listens.
    pub(super) fn started(&self) -> Option<Nanos> {
        self.span.as_ref().map(|_| since_1970())
    }

    /// Says that a command was answered.
    pub(super) fn tell_command(
        &self,
        bus: &Bus,
        (command, started): (&'static str, Option<Nanos>),
        told: Told,
        failed: bool,
    ) {
        let (Some(session), Some(started)) = (&self.span, started) else { return };
        let Told { keys, hits, bytes } = told;
        bus.command(|| CacheEvent {
            at: since_1970(),
            session: Arc::clone(session),
            fact: CacheFact::CommandEnded { command, started, keys, hits, bytes, failed },
        });
    }

    /// Says that it ended.
    pub(super) fn tell_closed(&self, bus: &Bus) {
        let Some(session) = &self.span else { return };
        let session = Arc::clone(session);
        bus.publish(|| CacheEvent { at: since_1970(), session, fact: CacheFact::ConnectionClosed });
    }
}

fn since_1970() -> Nanos {
    Nanos(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64)
}

/// What became of a key that was asked for.
pub(super) enum Found {
    /// It was in memory.
    Here(Arc<Object>),
    /// It came from behind.
    Brought(Arc<Object>),
    /// It is on its way.
    Coming,
    /// It is behind, and too much else was on its way.
    Refused,
    /// It was behind, and did not come.
    Lost,
    /// It is nowhere.
    Absent,
}

impl Found {
    /// Its object, if it has one.
    pub(super) fn object(&self) -> Option<&Arc<Object>> {
        match self {
            Self::Here(object) | Self::Brought(object) => Some(object),
            Self::Coming | Self::Refused | Self::Lost | Self::Absent => None,
        }
    }
}

/// What objects are asked for.
pub(super) enum Purpose {
    /// `GET`.
    Whole,
    /// `MGET`.
    Each,
    /// `GETRANGE`, from and to.
    Range(i64, i64),
    /// `SET` with `GET`: what is written after that.
    Replace(Blank, SetManner),
}

/// A command that waits for objects from behind memory. Its arguments stay where they are.
pub(super) struct Wait {
    pub(super) ticket: Ticket,
    /// What became of each key; the first one is the first argument.
    pub(super) found: Vec<Found>,
    pub(super) coming: usize,
    pub(super) purpose: Purpose,
    /// Its name, and when it began.
    pub(super) command: (&'static str, Option<Nanos>),
}
