//! One client: bytes come, commands are carried out in their order, replies go.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use wavetank_calls::Blank;

use super::commands::{self, Args, Call, Refusal};
use super::inbox::{INBOX_BYTES, Inbox, PEEKED_BYTES, again};
use super::mailbox::Ticket;
use super::outbox::{Flushed, Outbox};
use super::pace::Pace;
use super::parse::{Limits, Parser, Step};
use super::reply::Reply;
use super::session::{Access, Found, Session, Told, Wait};
use super::shared::Desk;
use super::turn::{Flow, Turn};

/// Reads of one connection before others have their turn.
const READS_PER_TURN: usize = 16;
/// Commands after a large value during which another one is expected.
const EXPECTING: u8 = 16;
/// How long a client that was told to go may go on sending; cut off at once, it would not hear why.
const LINGER: Duration = Duration::from_secs(1);

/// Where bytes go that come next.
enum Intake {
    /// To the inbox.
    Inbox,
    /// To a value, so far with so many bytes.
    Value(Blank, usize),
    /// Nowhere, so many.
    Skip(u64),
}

/// A client.
pub(super) struct Connection {
    socket: TcpStream,
    pub(super) session: Session,
    parser: Parser,
    inbox: Inbox,
    outbox: Outbox,
    intake: Intake,
    values: VecDeque<Blank>,
    /// What stands against the command that is being read.
    refusal: Option<Refusal>,
    wait: Option<Wait>,
    /// Bytes of `values` and of the one that is coming.
    value_bytes: u64,
    /// Bytes that this connection has of all connections' share.
    charged: u64,
    /// The same of values on their way out.
    sending: u64,
    /// Whether there may be something to read, and to write.
    is_readable: bool,
    is_writable: bool,
    /// The end of what the client sends is there to be read, and was read.
    is_hung_up: bool,
    is_ended: bool,
    /// It was told to go; until then it may.
    lingers: Option<Instant>,
    expecting: u8,
    pace: Pace,
}

impl Connection {
    /// A client that has just connected.
    pub(super) fn new(socket: TcpStream, session: Session, desk: &Desk) -> Self {
        let mut connection = Self {
            socket,
            session,
            parser: Parser::new(Limits::default()),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            intake: Intake::Inbox,
            values: VecDeque::new(),
            refusal: None,
            wait: None,
            value_bytes: 0,
            charged: 0,
            sending: 0,
            is_readable: false,
            is_writable: true,
            is_hung_up: false,
            is_ended: false,
            lingers: None,
            expecting: 0,
            pace: Pace::new(desk.now),
        };
        connection.bound(desk);
        connection
    }

    /// Its socket, to be watched.
    pub(super) fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Clients that did not say who they are may not send much.
    fn bound(&mut self, desk: &Desk) {
        self.parser.limit(match self.session.access {
            Access::Unknown => Limits::strangers(),
            Access::Granted => desk.shared.settings.limits(),
        });
    }

    /// Something happened to its socket.
    pub(super) fn notice(&mut self, event: &Event) {
        self.is_readable |= event.is_readable() || event.is_read_closed();
        self.is_writable |= event.is_writable() || event.is_write_closed() || event.is_error();
        // A short read is not the last one then: the end is still to be read.
        self.is_hung_up |= event.is_read_closed() || event.is_error();
    }

    /// Does what can be done.
    pub(super) fn turn(&mut self, desk: &mut Desk) -> Turn {
        self.inbox.borrow(&mut desk.inbox);
        if !self.outbox.is_equipped() {
            self.outbox.equip(&mut desk.outboxes);
        }
        // A connection that fails is gone: nobody is left to be told.
        let turn = self.serve(desk).unwrap_or(Turn::Over);
        self.settle(desk);
        turn
    }

    fn serve(&mut self, desk: &mut Desk) -> io::Result<Turn> {
        if self.lingers.is_some() {
            return self.linger(desk);
        }
        for _ in 0..READS_PER_TURN {
            match self.carry_out(desk) {
                Flow::Waiting => return Ok(Turn::Idle),
                Flow::Full if self.flush()? == Flushed::All => {}
                Flow::Full => return Ok(Turn::Idle),
                Flow::Leaving => return self.leave(desk),
                Flow::Hungry if self.is_ended => return self.leave(desk),
                Flow::Hungry if self.is_readable => self.read(desk)?,
                Flow::Hungry => return Ok(Turn::Idle),
            }
        }
        Ok(Turn::Again)
    }

    /// Whether it is in the middle of a large value: one comes, or the client has not taken all of one.
    pub(super) fn is_streaming(&self) -> bool {
        !matches!(self.intake, Intake::Inbox) || !self.is_writable
    }

    /// Whether it has replies that can be sent.
    pub(super) fn has_mail(&self) -> bool {
        self.is_writable && self.outbox.bytes() > 0
    }

    /// Sends its replies.
    pub(super) fn send(&mut self, desk: &mut Desk) -> Turn {
        let sent = self.flush();
        self.settle(desk);
        sent.map_or(Turn::Over, |_| Turn::Idle)
    }

    /// Carries commands out until something is missing.
    fn carry_out(&mut self, desk: &mut Desk) -> Flow {
        loop {
            if self.wait.is_some() {
                return Flow::Waiting;
            }
            if self.session.is_leaving {
                return Flow::Leaving;
            }
            if self.is_full(desk) {
                return Flow::Full;
            }
            if !matches!(self.intake, Intake::Inbox) {
                return Flow::Hungry;
            }
            match self.parser.step(self.inbox.bytes_mut()) {
                Ok(Step::Command) => self.run(desk),
                Ok(Step::Announced(bytes)) => self.announced(desk, bytes),
                Ok(Step::More) => {
                    if self.parser.is_between() {
                        self.inbox.consume(self.parser.take());
                    }
                    return Flow::Hungry;
                }
                Err(fault) => self.expel(desk, ("ERR", fault.to_string().into())),
            }
        }
    }

    /// Whether the client has to read before more is done for it.
    fn is_full(&self, desk: &Desk) -> bool {
        let (waiting, shared) = (self.outbox.bytes(), &desk.shared);
        // When all have too much, each has the replies of one command at most.
        let new = waiting.saturating_sub(self.charged + self.sending);
        let all = || shared.memory.value() + shared.sending.value() + new;
        waiting >= shared.settings.connection_bytes || waiting > 0 && all() > shared.settings.memory_bytes
    }

    fn call<'a>(&'a mut self, desk: &'a mut Desk) -> Call<'a> {
        Call {
            args: Args::new(self.inbox.bytes(), self.parser.args()),
            values: &mut self.values,
            session: &mut self.session,
            out: &mut self.outbox,
            desk,
            wait: &mut self.wait,
            told: Told::default(),
            command: ("", None),
        }
    }

    fn run(&mut self, desk: &mut Desk) {
        if commands::is_web(&Args::new(self.inbox.bytes(), self.parser.args())) {
            return self.hang_up(desk);
        }
        let refusal = self.refusal.take();
        let before = self.session.access;
        commands::run(&mut self.call(desk), refusal);
        if self.session.access != before {
            self.bound(desk);
        }
        self.done();
    }

    /// The command is done with, unless it waits.
    fn done(&mut self) {
        if self.wait.is_some() {
            return;
        }
        if self.value_bytes == 0 {
            self.expecting = self.expecting.saturating_sub(1);
        }
        self.values.clear();
        self.value_bytes = 0;
        self.inbox.consume(self.parser.take());
    }

    /// A large argument begins: it goes where it will stay, if it may.
    fn announced(&mut self, desk: &mut Desk, bytes: u64) {
        let position = self.parser.position();
        self.intake = match self.room(desk, bytes) {
            Ok(mut blank) => {
                self.expecting = EXPECTING;
                let filled = self.inbox.take(position, blank.bytes_mut());
                Intake::Value(blank, filled)
            }
            Err(refusal) => {
                self.refusal.get_or_insert(refusal);
                Intake::Skip(bytes - self.inbox.skip(position, bytes))
            }
        };
        self.taken_in();
    }

    /// Goes on with the command if the large argument is there.
    fn taken_in(&mut self) {
        let is_whole = match &mut self.intake {
            Intake::Inbox => false,
            Intake::Value(blank, filled) => *filled == blank.bytes_mut().len(),
            Intake::Skip(left) => *left == 0,
        };
        if is_whole {
            if let Intake::Value(blank, _) = std::mem::replace(&mut self.intake, Intake::Inbox) {
                self.values.push_back(blank);
            }
            self.parser.elsewhere();
        }
    }

    /// Room for a value, if this argument is one.
    fn room(&mut self, desk: &mut Desk, bytes: u64) -> Result<Blank, Refusal> {
        let args = Args::new(self.inbox.bytes(), self.parser.args());
        if self.refusal.is_some() || !commands::is_value(&args, self.session.row) {
            return Err(("ERR", "an argument that is not a value is too large".into()));
        }
        let limit = desk.shared.settings.memory_bytes;
        let is_charged = desk.shared.memory.try_add(bytes, limit);
        let blank = is_charged.then(|| desk.shared.cache.storage.room(bytes)).flatten();
        self.charged += if is_charged { bytes } else { 0 };
        self.value_bytes += if blank.is_some() { bytes } else { 0 };
        blank.ok_or_else(|| {
            desk.tally.refused_stores += 1;
            commands::no_room()
        })
    }

    /// The client does not speak the protocol, or too much of it: it is told and goes.
    fn expel(&mut self, desk: &mut Desk, (code, why): Refusal) {
        desk.tally.protocol_errors += 1;
        self.outbox.reply(&Reply::Error(code, &why));
        self.session.is_leaving = true;
    }

    /// A browser was made to speak to us: nothing of what it says is done, and it is told nothing.
    fn hang_up(&mut self, desk: &mut Desk) {
        desk.tally.protocol_errors += 1;
        self.session.is_leaving = true;
        self.done();
    }

    /// Something became of a key that a command waits for.
    pub(super) fn brought(&mut self, desk: &mut Desk, (ticket, place): (Ticket, usize), what: Found) {
        let Some(wait) = self.wait.as_mut().filter(|wait| wait.ticket == ticket) else { return };
        if let Some(found @ Found::Coming) = wait.found.get_mut(place) {
            *found = what;
            wait.coming -= 1;
        }
        if wait.coming == 0 {
            self.go_on(desk, ticket, commands::resume);
        }
    }

    /// A command that waits asks again.
    pub(super) fn retry(&mut self, desk: &mut Desk, ticket: Ticket) {
        self.go_on(desk, ticket, commands::retry);
    }

    /// A command has waited long enough: what did not come is a miss.
    pub(super) fn end_wait(&mut self, desk: &mut Desk, ticket: Ticket) {
        self.go_on(desk, ticket, commands::finish);
    }

    fn go_on(&mut self, desk: &mut Desk, ticket: Ticket, how: fn(&mut Call<'_>, Wait)) {
        if let Some(wait) = self.wait.take_if(|wait| wait.ticket == ticket) {
            how(&mut self.call(desk), wait);
            self.done();
        }
    }

    fn read(&mut self, desk: &mut Desk) -> io::Result<()> {
        let (asked, got) = match &mut self.intake {
            Intake::Skip(left) => {
                let most = (*left).min(desk.sink.len() as u64) as usize;
                let got = again(|| self.socket.read(&mut desk.sink[..most]));
                *left -= got.as_ref().map_or(0, |got| *got as u64);
                (most, got)
            }
            Intake::Value(blank, filled) => {
                self.inbox.reserve(PEEKED_BYTES);
                let rest = &mut blank.bytes_mut()[*filled..];
                let asked = rest.len() + PEEKED_BYTES;
                let got = self.inbox.read(&mut self.socket, rest, PEEKED_BYTES);
                *filled += got.as_ref().map_or(0, |got| got.0);
                (asked, got.map(|got| got.0 + got.1))
            }
            Intake::Inbox => {
                let Some(most) = self.more(desk) else { return Ok(()) };
                self.inbox.reserve(most);
                (most, self.inbox.read(&mut self.socket, &mut [], most).map(|got| got.1))
            }
        };
        self.taken_in();
        self.account(asked, got)
    }

    /// What was asked of the socket, and what came of it.
    fn account(&mut self, asked: usize, got: io::Result<usize>) -> io::Result<()> {
        match got {
            Ok(0) => self.is_ended = true,
            Ok(got) => {
                self.pace.moved(got as u64);
                // Less than asked for is all there is; the next of it is told again.
                self.is_readable = got == asked || self.is_hung_up;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_readable = false,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// How much to read to the inbox; none if the command is too long.
    fn more(&mut self, desk: &mut Desk) -> Option<usize> {
        let here = self.inbox.bytes().len();
        if self.expecting > 0 && here < PEEKED_BYTES {
            return Some(PEEKED_BYTES);
        }
        let most = if here < INBOX_BYTES { INBOX_BYTES - here } else { here };
        let size = self.inbox.size_for(most);
        let more = size.saturating_sub(self.inbox.size().max(INBOX_BYTES)) as u64;
        let settings = &desk.shared.settings;
        if size as u64 > settings.connection_bytes {
            self.expel(desk, ("ERR", "Protocol error: too big request".into()));
            return None;
        }
        if more > 0 && !desk.shared.memory.try_add(more, settings.memory_bytes) {
            self.expel(desk, commands::no_room());
            return None;
        }
        self.charged += more;
        Some(most)
    }

    fn flush(&mut self) -> io::Result<Flushed> {
        let before = self.outbox.bytes();
        if before == 0 || !self.is_writable {
            return Ok(if before == 0 { Flushed::All } else { Flushed::Some });
        }
        let flushed = self.outbox.flush(&mut self.socket)?;
        self.pace.moved(before - self.outbox.bytes());
        self.is_writable = flushed == Flushed::All;
        Ok(flushed)
    }

    /// Sends what is left and goes.
    fn leave(&mut self, desk: &mut Desk) -> io::Result<Turn> {
        if self.flush()? == Flushed::Some {
            return Ok(Turn::Idle);
        }
        if self.is_ended {
            return Ok(Turn::Over);
        }
        self.socket.shutdown(Shutdown::Write)?;
        self.lingers = Some(desk.now + LINGER);
        self.linger(desk)
    }

    /// Throws away what the client still sends.
    fn linger(&mut self, desk: &mut Desk) -> io::Result<Turn> {
        for _ in 0..READS_PER_TURN {
            match again(|| self.socket.read(&mut desk.sink)) {
                Ok(0) => return Ok(Turn::Over),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Turn::Idle),
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::Again)
    }

    /// No more commands are read; it goes when it has its replies.
    pub(super) fn drain(&mut self) {
        self.is_ended = true;
    }

    /// Gives back what it does not need until its next turn, and says how much it has.
    fn settle(&mut self, desk: &mut Desk) {
        self.inbox.give_back(&mut desk.inbox);
        if self.outbox.bytes() == 0 {
            self.outbox.give_back(&mut desk.outboxes);
        }
        let is_busy = self.outbox.bytes() > 0 || !self.inbox.is_empty();
        self.pace.turn(is_busy, desk.now);
        let inbox = self.inbox.size().saturating_sub(INBOX_BYTES) as u64;
        let own = inbox + self.parser.own_bytes() + self.outbox.own_bytes();
        self.charge(desk, own + self.value_bytes, self.outbox.value_bytes());
    }

    /// Has so many bytes of all connections' share, and so many of values on their way out: who takes long
    /// to read keeps nobody from writing.
    fn charge(&mut self, desk: &Desk, bytes: u64, sending: u64) {
        desk.shared.memory.change(self.charged, bytes);
        desk.shared.sending.change(self.sending, sending);
        (self.charged, self.sending) = (bytes, sending);
    }

    /// Whether it is too slow, or too quiet.
    pub(super) fn is_overdue(&mut self, desk: &Desk) -> bool {
        match self.lingers {
            Some(until) => until <= desk.now,
            None => self.wait.is_none() && self.pace.is_overdue(desk.now, &desk.shared.settings),
        }
    }

    /// Whether it was told to go.
    pub(super) fn is_lingering(&self) -> bool {
        self.lingers.is_some()
    }

    /// Says that it is gone.
    pub(super) fn close(mut self, desk: &mut Desk) {
        self.charge(desk, 0, 0);
        desk.shared.connected.fetch_sub(1, Ordering::Relaxed);
        desk.tally.connections_closed += 1;
        self.session.tell_closed(&desk.shared.cache.bus);
    }
}
