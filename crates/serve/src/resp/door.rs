//! The front door: opened, and closed.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Poll, Waker};
use wavetank_model::{Error, ErrorKind, Result};

use super::mailbox::{Letter, Mailbox};
use super::reactor::{Reactor, WAKE};
use super::settings::Settings;
use super::shared::{Desk, Shared};
use crate::cache::Cache;

/// Clients that wait to be taken. One that finds no place there tries again after a second.
const BACKLOG: i32 = 4096;

/// Serves clients of Redis until it is drained or dropped.
pub struct Door {
    shared: Arc<Shared>,
    address: SocketAddr,
    mailboxes: Arc<[Arc<Mailbox>]>,
    threads: Vec<JoinHandle<()>>,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Clients that are connected.
    pub connections: usize,
    /// Bytes of commands half read, values on their way in, and replies on their way out.
    pub memory_bytes: u64,
    /// Bytes of values that stay in memory for clients that saw them.
    pub leased_bytes: u64,
}

impl Door {
    /// Listens and serves.
    pub fn open(settings: Settings, cache: Arc<Cache>) -> Result<Self> {
        settings.check()?;
        let listener = Self::listen(settings.listen)?;
        Self::serve(listener, settings, cache)
    }

    /// Takes the port; clients that connect wait until they are served.
    pub(crate) fn listen(address: SocketAddr) -> Result<StdListener> {
        let taken = || {
            let listener = StdListener::bind(address)?;
            listener.set_nonblocking(true)?;
            rustix::net::listen(&listener, BACKLOG)?;
            Ok(listener)
        };
        taken().map_err(|error| cannot_listen(address, error))
    }

    /// Serves who comes to `listener`.
    pub(crate) fn serve(listener: StdListener, settings: Settings, cache: Arc<Cache>) -> Result<Self> {
        let place = settings.listen;
        let listener = TcpListener::from_std(listener);
        Self::start(listener, settings, cache).map_err(|error| cannot_listen(place, error))
    }

    fn start(listener: TcpListener, settings: Settings, cache: Arc<Cache>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let mut listener = Some(listener);
        let polls: Vec<Poll> = (0..settings.threads).map(|_| Poll::new()).collect::<io::Result<_>>()?;
        let mailbox = |poll: &Poll| Ok(Mailbox::new(Waker::new(poll.registry(), WAKE)?));
        let mailboxes: Arc<[Arc<Mailbox>]> = polls.iter().map(mailbox).collect::<io::Result<_>>()?;
        let shared = Arc::new(Shared::new(settings, cache, address.port()));
        // Whatever fails from here on, dropping it ends the threads that there are.
        let mut door = Self { shared, address, mailboxes, threads: Vec::new() };
        for (number, poll) in polls.into_iter().enumerate() {
            let desk = Desk::new(Arc::clone(&door.shared), Arc::clone(&door.mailboxes[number]));
            let reactor = Reactor::new(poll, desk, Arc::clone(&door.mailboxes), listener.take())?;
            let thread = Builder::new().name(format!("resp-{number}"));
            door.threads.push(thread.spawn(move || reactor.run())?);
        }
        Ok(door)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How it is.
    pub fn status(&self) -> Status {
        Status {
            connections: self.shared.connected.load(Ordering::Relaxed),
            memory_bytes: self.shared.memory.value() + self.shared.sending.value(),
            leased_bytes: self.shared.leased.value(),
        }
    }

    /// Takes no more clients, answers what was read, and closes; after `patience` without the answers.
    pub fn drain(mut self, patience: Duration) {
        self.end(patience);
    }

    fn end(&mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        self.mailboxes.iter().for_each(|mailbox| mailbox.post(Letter::Drain(deadline)));
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn cannot_listen(address: SocketAddr, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot listen: {error}")).at(address.to_string()).source(error)
}

impl Drop for Door {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}
