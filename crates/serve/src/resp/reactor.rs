//! A thread of the front door: waits until something happens to one of its connections, and does what can be
//! done. Sockets say once that something happened, so each is read until it gives less than asked for.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use super::commands;
use super::connection::Connection;
use super::luck::Luck;
use super::mailbox::{Letter, Mailbox, Ticket};
use super::session::Session;
use super::shared::Desk;
use super::turn::Turn;

/// Somebody else has something to say.
pub(super) const WAKE: Token = Token(usize::MAX);
/// Somebody wants to connect.
const KNOCK: Token = Token(usize::MAX - 1);
/// What happened, at most so much at a time.
const EVENTS: usize = 1024;
/// How often slow connections are looked for.
const LOOK: Duration = Duration::from_millis(250);
/// When connections can be taken again that could not, for want of descriptors.
const RETRY: Duration = Duration::from_millis(50);

/// A thread's connections.
pub(super) struct Reactor {
    poll: Poll,
    desk: Desk,
    listener: Option<TcpListener>,
    mailboxes: Arc<[Arc<Mailbox>]>,
    /// Whose turn it is to be given a connection.
    next: usize,
    connections: Vec<Option<Box<Connection>>>,
    vacant: Vec<usize>,
    /// Those that have more to do, and those that have replies to send.
    again: Vec<usize>,
    mail: Vec<usize>,
    /// Whether any of them is in the middle of a large value.
    is_streaming: bool,
    luck: Luck,
    looked: Instant,
    retry: Option<Instant>,
    /// No more connections are taken; after that none is served.
    deadline: Option<Instant>,
}

impl Reactor {
    /// One without connections; with a listener it takes them for all.
    pub(super) fn new(
        poll: Poll,
        desk: Desk,
        mailboxes: Arc<[Arc<Mailbox>]>,
        mut listener: Option<TcpListener>,
    ) -> io::Result<Self> {
        if let Some(listener) = &mut listener {
            poll.registry().register(listener, KNOCK, Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            looked: desk.now,
            desk,
            listener,
            mailboxes,
            next: 0,
            connections: Vec::new(),
            vacant: Vec::new(),
            again: Vec::new(),
            mail: Vec::new(),
            is_streaming: false,
            luck: Luck::default(),
            retry: None,
            deadline: None,
        })
    }

    /// Serves until it is drained.
    pub(super) fn run(mut self) {
        self.desk.mailbox.own();
        let (mut events, mut letters) = (Events::with_capacity(EVENTS), Vec::new());
        loop {
            self.desk.mailbox.take(&mut letters);
            let timeout = if letters.is_empty() { self.timeout() } else { Some(Duration::ZERO) };
            self.wait(&mut events, timeout);
            self.is_streaming = false;
            self.desk.now = Instant::now();
            for event in &events {
                match event.token() {
                    WAKE => {}
                    KNOCK => self.accept(),
                    Token(slot) => {
                        if let Some(connection) = self.connection(slot) {
                            connection.notice(event);
                            self.turn(slot);
                        }
                    }
                }
            }
            letters.drain(..).for_each(|letter| self.read(letter));
            std::mem::take(&mut self.again).into_iter().for_each(|slot| self.turn(slot));
            self.look();
            // Who has a reply finds it counted.
            self.settle();
            self.send();
            self.settle();
            if self.deadline.is_some() && self.vacant.len() == self.connections.len() {
                return;
            }
        }
    }

    /// Waits until something happens. Right after something did, more is about to: who asks next need not
    /// wake this thread if it has not gone to sleep.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) {
        // Large values come in larger pieces to one who sleeps.
        let glances = if events.is_empty() || self.is_streaming { 0 } else { self.luck.glances() };
        for _ in 0..glances {
            self.poll_once(events, Some(Duration::ZERO));
            if !events.is_empty() {
                return self.luck.found();
            }
        }
        if glances > 0 {
            self.luck.found_nothing();
        }
        self.poll_once(events, timeout);
    }

    fn poll_once(&mut self, events: &mut Events, timeout: Option<Duration>) {
        if self.poll.poll(events, timeout).is_err() {
            // It fails only when interrupted: nothing happened then.
            events.clear();
        }
    }

    fn settle(&mut self) {
        self.desk.tally.settle(&self.desk.shared.cache.counters);
    }

    fn connection(&mut self, slot: usize) -> Option<&mut Connection> {
        self.connections.get_mut(slot)?.as_deref_mut()
    }

    fn turn(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        let turn = connection.turn(&mut self.desk);
        self.is_streaming |= connection.is_streaming();
        if connection.has_mail() {
            self.mail.push(slot);
        }
        match turn {
            Turn::Idle => {}
            Turn::Again => self.again.push(slot),
            Turn::Over => self.close(slot),
        }
    }

    /// Sends replies, after all commands were carried out: clients that are woken one by one would ask one by
    /// one.
    fn send(&mut self) {
        while let Some(slot) = self.mail.pop() {
            let Some(connection) = self.connections[slot].as_mut() else { continue };
            let is_over = connection.has_mail() && connection.send(&mut self.desk) == Turn::Over;
            self.is_streaming |= connection.is_streaming();
            if is_over {
                self.close(slot);
            }
        }
    }

    fn close(&mut self, slot: usize) {
        if let Some(connection) = self.connections[slot].take() {
            connection.close(&mut self.desk);
            self.vacant.push(slot);
        }
    }

    /// Takes all who want to connect.
    fn accept(&mut self) {
        self.retry = None;
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok((socket, peer)) => self.admit(socket, peer),
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // There are no descriptors left: some will be, and nobody says when.
                    self.retry = Some(self.desk.now + RETRY);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, mut socket: TcpStream, peer: SocketAddr) {
        let shared = &self.desk.shared;
        if shared.connected.fetch_add(1, Ordering::Relaxed) >= shared.settings.connections {
            shared.connected.fetch_sub(1, Ordering::Relaxed);
            self.desk.tally.connections_refused += 1;
            // Best effort: a connection that takes nothing is gone without being told.
            let _ = socket.write(b"-ERR max number of clients reached\r\n");
            return;
        }
        self.desk.tally.connections_opened += 1;
        self.next = (self.next + 1) % self.mailboxes.len();
        if Arc::ptr_eq(&self.mailboxes[self.next], &self.desk.mailbox) {
            self.open(socket, peer);
        } else {
            self.mailboxes[self.next].post(Letter::Connected(socket, peer));
        }
    }

    fn open(&mut self, socket: TcpStream, peer: SocketAddr) {
        // Replies are gathered here; the kernel need not wait for more of them.
        let _ = socket.set_nodelay(true);
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let shared = &self.desk.shared;
        let id = shared.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let access = commands::access(&shared.settings);
        let mut session = Session::new(id, slot, peer, access, self.desk.now);
        session.tell_opened(&shared.cache.bus);
        let mut connection = Box::new(Connection::new(socket, session, &self.desk));
        let interest = Interest::READABLE | Interest::WRITABLE;
        let watched = self.poll.registry().register(connection.socket(), Token(slot), interest);
        self.connections[slot] = Some(connection);
        if watched.is_err() || self.deadline.is_some() {
            self.close(slot);
        }
    }

    fn read(&mut self, letter: Letter) {
        match letter {
            Letter::Connected(socket, peer) => self.open(socket, peer),
            Letter::Held(mark, number, held) => self.desk.leases.hold(mark, number, held),
            Letter::Brought(ticket, place, found) => {
                self.wake(ticket, |connection, desk| connection.brought(desk, (ticket, place), found));
            }
            Letter::Drain(deadline) => self.drain(deadline),
        }
    }

    /// Something happened to a command that waits, if its connection is still there.
    fn wake(&mut self, ticket: Ticket, what: impl FnOnce(&mut Connection, &mut Desk)) {
        let connection = self.connections.get_mut(ticket.slot).and_then(Option::as_mut);
        if let Some(connection) = connection.filter(|it| it.session.id == ticket.connection) {
            what(connection, &mut self.desk);
            self.turn(ticket.slot);
        }
    }

    fn drain(&mut self, deadline: Instant) {
        self.listener = None;
        self.deadline = Some(deadline);
        for slot in 0..self.connections.len() {
            // What was read is answered; then it is over.
            self.turn(slot);
            if let Some(connection) = self.connection(slot) {
                connection.drain();
                self.turn(slot);
            }
        }
    }

    /// Looks after what is late.
    fn look(&mut self) {
        let now = self.desk.now;
        while let Some((_, ticket)) = self.desk.waits.pop_front_if(|(when, _)| *when <= now) {
            self.wake(ticket, |connection, desk| connection.end_wait(desk, ticket));
        }
        while let Some(ticket) = self.desk.retries.due(now) {
            self.wake(ticket, |connection, desk| connection.retry(desk, ticket));
        }
        let desk = &mut self.desk;
        desk.leases.expire(now, &mut desk.tally);
        if self.retry.is_some_and(|retry| retry <= now) {
            self.accept();
        }
        let is_late = self.deadline.is_some_and(|deadline| deadline <= now);
        if is_late || now - self.looked >= LOOK {
            self.looked = now;
            self.look_for_slow();
        }
    }

    fn look_for_slow(&mut self) {
        let is_late = self.deadline.is_some_and(|deadline| deadline <= self.desk.now);
        for slot in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[slot] else { continue };
            if connection.is_overdue(&self.desk) {
                self.desk.tally.connections_timed_out += u64::from(!connection.is_lingering());
                self.close(slot);
            } else if is_late {
                self.close(slot);
            }
        }
    }

    /// How long nothing needs to be done; for ever when absent.
    fn timeout(&self) -> Option<Duration> {
        if !self.again.is_empty() {
            return Some(Duration::ZERO);
        }
        let is_empty = self.vacant.len() == self.connections.len();
        let look = (!is_empty).then(|| self.looked + LOOK);
        let wait = self.desk.waits.front().map(|(when, _)| *when);
        let next = [look, wait, self.desk.retries.next(), self.desk.leases.next(), self.retry, self.deadline]
            .into_iter()
            .flatten()
            .min()?;
        Some(next.saturating_duration_since(self.desk.now))
    }
}
