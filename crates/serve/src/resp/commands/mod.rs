//! Every command, one row each. Replies and errors are those of Redis 7.0
//! (<https://redis.io/docs/latest/commands/>).

mod about;
mod client;
mod config;
mod info;
mod lookup;
mod set;
mod strings;

use std::borrow::Cow;
use std::collections::VecDeque;

use wavetank_calls::Blank;
use wavetank_model::Nanos;

use super::outbox::Outbox;
use super::parse::Arg;
use super::reply::Reply;
use super::session::{Access, Session, Told, Wait};
use super::shared::Desk;
pub(super) use client::access;
pub(super) use lookup::{finish, resume, retry};
pub(super) use set::no_room;

/// The release whose replies these are; clients ask for it.
pub(super) const COMPATIBLE: &str = "7.0.15";

/// Why a command was not carried out: a code, and a sentence.
pub(super) type Refusal = (&'static str, Cow<'static, str>);
/// What became of a command. It has replied unless it was refused.
pub(super) type Outcome = Result<(), Refusal>;

/// Where a command has its keys: the first, the last (from the end if negative), how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyPlaces(i32, i32, i32);

const NO_KEYS: KeyPlaces = KeyPlaces(0, 0, 0);
const ONE_KEY: KeyPlaces = KeyPlaces(1, 1, 1);
const ALL_KEYS: KeyPlaces = KeyPlaces(1, -1, 1);
const PAIRS: KeyPlaces = KeyPlaces(1, -1, 2);

/// A command.
pub(super) struct Row {
    /// Its name, in capitals.
    pub(super) name: &'static str,
    /// How many arguments it has with its name; at least so many if negative.
    arity: i32,
    /// As `COMMAND` tells them.
    flags: &'static str,
    keys: KeyPlaces,
    /// What `COMMAND DOCS` says.
    about: &'static str,
    run: fn(&mut Call<'_>) -> Outcome,
}

macro_rules! rows {
    ($($name:literal $arity:literal $flags:literal $keys:ident $run:path, $about:literal;)+) => {
        /// Every command, alphabetical.
        pub(super) const ALL: &[Row] = &[$(Row {
            name: $name, arity: $arity, flags: $flags, keys: $keys, about: $about, run: $run,
        },)+];
    };
}

rows! {
    "AUTH" -2 "noscript loading stale fast no_auth allow_busy" NO_KEYS client::auth,
        "Says who the client is";
    "CLIENT" -2 "" NO_KEYS client::client,
        "Names the connection and tells of it";
    "COMMAND" -1 "loading stale" NO_KEYS about::command,
        "Tells which commands there are";
    "CONFIG" -2 "" NO_KEYS config::config,
        "Tells how the server is set";
    "DBSIZE" 1 "readonly fast" NO_KEYS strings::dbsize,
        "Counts keys";
    "DEL" -2 "write" ALL_KEYS strings::del,
        "Removes keys";
    "ECHO" 2 "loading stale fast" NO_KEYS client::echo,
        "Says what it was told";
    "EXISTS" -2 "readonly fast" ALL_KEYS strings::exists,
        "Counts keys that are there and leases them to the client";
    "FLUSHALL" -1 "write" NO_KEYS strings::flush,
        "Removes every key, where that is enabled";
    "FLUSHDB" -1 "write" NO_KEYS strings::flush,
        "Removes every key, where that is enabled";
    "GET" 2 "readonly fast" ONE_KEY lookup::get,
        "Reads a value";
    "GETRANGE" 4 "readonly" ONE_KEY lookup::getrange,
        "Reads a part of a value";
    "HELLO" -1 "noscript loading stale fast no_auth allow_busy" NO_KEYS client::hello,
        "Begins: version, who the client is, its name";
    "INFO" -1 "loading stale" NO_KEYS info::info,
        "Tells how the server is";
    "MGET" -2 "readonly fast" ALL_KEYS lookup::mget,
        "Reads values";
    "MSET" -3 "write denyoom" PAIRS set::mset,
        "Writes values";
    "PING" -1 "fast" NO_KEYS client::ping,
        "Says that the server is there";
    "PTTL" 2 "readonly fast" ONE_KEY strings::pttl,
        "Tells how many milliseconds a key stays";
    "QUIT" -1 "noscript loading stale fast no_auth allow_busy" NO_KEYS client::quit,
        "Ends the connection";
    "RESET" 1 "noscript loading stale fast no_auth allow_busy" NO_KEYS client::reset,
        "Begins again";
    "SELECT" 2 "loading stale fast" NO_KEYS client::select,
        "Names a database; there is one";
    "SET" -3 "write denyoom" ONE_KEY set::set,
        "Writes a value";
    "STRLEN" 2 "readonly fast" ONE_KEY strings::strlen,
        "Tells how long a value is";
    "TTL" 2 "readonly fast" ONE_KEY strings::ttl,
        "Tells how many seconds a key stays";
    "UNLINK" -2 "write fast" ALL_KEYS strings::del,
        "Removes keys";
}

/// The row of a command; `last` is tried first.
pub(super) fn find(name: &[u8], last: usize) -> Option<usize> {
    let is_it = |row: &Row| name.eq_ignore_ascii_case(row.name.as_bytes());
    if ALL.get(last).is_some_and(is_it) {
        return Some(last);
    }
    ALL.iter().position(is_it)
}

/// Whether it is a line of a web request. A page may make a browser send one to any port, with commands in
/// its body; no client of ours does.
pub(super) fn is_web(args: &Args<'_>) -> bool {
    args.is(0, "POST") || args.is(0, "Host:")
}

/// Whether the argument that comes after `args` is a value that is written.
pub(super) fn is_value(args: &Args<'_>, last: usize) -> bool {
    match find(args.bytes(0), last).map(|row| ALL[row].name) {
        Some("SET") => args.len() == 2,
        Some("MSET") => args.len() >= 2 && args.len().is_multiple_of(2),
        _ => false,
    }
}

/// The arguments of a command, its name first.
#[derive(Clone, Copy)]
pub(super) struct Args<'a> {
    inbox: &'a [u8],
    args: &'a [Arg],
}

impl<'a> Args<'a> {
    /// Arguments in `inbox`.
    pub(super) fn new(inbox: &'a [u8], args: &'a [Arg]) -> Self {
        Self { inbox, args }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.args.len()
    }

    /// One of them; empty if it is not here.
    pub(super) fn bytes(&self, index: usize) -> &'a [u8] {
        match self.args.get(index) {
            Some(Arg::Here(range)) => &self.inbox[range.clone()],
            _ => &[],
        }
    }

    /// Whether one of them was announced.
    fn is_elsewhere(&self, index: usize) -> bool {
        matches!(self.args.get(index), Some(Arg::Elsewhere(_)))
    }

    /// Those from `from` on.
    fn iter(&self, from: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let args = *self;
        (from..self.args.len()).map(move |index| args.bytes(index))
    }

    /// Whether one of them is this word.
    fn is(&self, index: usize, word: &str) -> bool {
        self.bytes(index).eq_ignore_ascii_case(word.as_bytes())
    }
}

/// A command that is carried out.
pub(super) struct Call<'a> {
    pub(super) args: Args<'a>,
    /// Values that were announced, in order.
    pub(super) values: &'a mut VecDeque<Blank>,
    pub(super) session: &'a mut Session,
    pub(super) out: &'a mut Outbox,
    pub(super) desk: &'a mut Desk,
    pub(super) wait: &'a mut Option<Wait>,
    pub(super) told: Told,
    /// Its name, and when it began.
    pub(super) command: (&'static str, Option<Nanos>),
}

impl Call<'_> {
    fn ok(&mut self) -> Outcome {
        self.reply(&Reply::Simple("OK"))
    }

    fn reply(&mut self, reply: &Reply<'_>) -> Outcome {
        self.out.reply(reply);
        Ok(())
    }

    fn integer(&mut self, number: u64) -> Outcome {
        self.reply(&Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    /// A key, unless it is too long.
    fn key(&self, index: usize) -> Result<&[u8], Refusal> {
        let key = self.args.bytes(index);
        let most = self.desk.shared.settings.key_bytes;
        if key.len() > most || self.args.is_elsewhere(index) {
            return Err(error(format!("the key has more than {most} bytes")));
        }
        Ok(key)
    }

    /// Every key from the first argument on, each `step`th, is short enough.
    fn check_keys(&self, step: usize) -> Outcome {
        (1..self.args.len()).step_by(step).try_for_each(|index| self.key(index).map(|_| ()))
    }
}

/// Carries a command out and replies. `refusal` is what stands against it, if its name is right.
pub(super) fn run(call: &mut Call<'_>, refusal: Option<Refusal>) {
    let row = find(call.args.bytes(0), call.session.row);
    call.session.row = row.unwrap_or(call.session.row);
    let row = row.map(|row| &ALL[row]);
    call.command = (row.map_or("UNKNOWN", |row| row.name), call.session.started());
    let outcome = match row {
        None => Err(unknown(&call.args)),
        Some(row) => admitted(row, call, refusal).and_then(|()| (row.run)(call)),
    };
    conclude(call, outcome);
}

/// Counts a command and says what became of it.
fn conclude(call: &mut Call<'_>, outcome: Outcome) {
    if let Err((code, why)) = &outcome {
        call.desk.tally.command_errors += 1;
        call.out.reply(&Reply::Error(code, why));
    }
    if call.wait.is_none() {
        call.desk.tally.commands += 1;
        let bus = &call.desk.shared.cache.bus;
        call.session.tell_command(bus, call.command, call.told, outcome.is_err());
    }
}

fn admitted(row: &Row, call: &Call<'_>, refusal: Option<Refusal>) -> Outcome {
    let count = call.args.len() as i32;
    if if row.arity < 0 { count < -row.arity } else { count != row.arity } {
        return Err(wrong_count(&row.name.to_ascii_lowercase()));
    }
    if call.session.access == Access::Unknown && !row.flags.contains("no_auth") {
        return Err(("NOAUTH", "Authentication required.".into()));
    }
    refusal.map_or(Ok(()), Err)
}

fn error(why: impl Into<Cow<'static, str>>) -> Refusal {
    ("ERR", why.into())
}

fn syntax() -> Refusal {
    error("syntax error")
}

fn wrong_count(name: &str) -> Refusal {
    error(format!("wrong number of arguments for '{name}' command"))
}

fn not_a_number() -> Refusal {
    error("value is not an integer or out of range")
}

/// Bytes of a command that an error repeats.
const REPEATED_BYTES: usize = 128;

fn unknown(args: &Args<'_>) -> Refusal {
    let cut =
        |bytes: &[u8], most: usize| String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned();
    let mut rest = String::new();
    for arg in args.iter(1) {
        if rest.len() >= REPEATED_BYTES {
            break;
        }
        let left = REPEATED_BYTES - rest.len();
        rest += &format!("'{}' ", cut(arg, left));
    }
    let name = cut(args.bytes(0), REPEATED_BYTES);
    error(format!("unknown command '{name}', with args beginning with: {rest}"))
}

fn unknown_part(args: &Args<'_>) -> Refusal {
    let part = String::from_utf8_lossy(&args.bytes(1)[..args.bytes(1).len().min(REPEATED_BYTES)]);
    let name = String::from_utf8_lossy(args.bytes(0)).to_ascii_uppercase();
    error(format!("unknown subcommand '{part}'. Try {name} HELP."))
}

/// A number as clients write it.
fn number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    // No signs or zeros in front, as other servers want it.
    let is_plain = digits.first().is_some_and(|first| (b'1'..=b'9').contains(first)) || text == b"0";
    std::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok()
}
