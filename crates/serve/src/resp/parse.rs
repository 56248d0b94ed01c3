//! Commands from bytes as they come (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//!
//! Small arguments stay in the inbox they were read into. A large one, the value of a `SET`, is announced as
//! soon as its length is known, so that it can be read from the socket to where it will stay.

mod words;

use std::fmt;
use std::ops::Range;

use words::words;

/// What a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Arguments of one command.
    pub arguments: usize,
    /// Bytes of one argument.
    pub argument_bytes: u64,
    /// Arguments of at least so many bytes are announced.
    pub announced_bytes: u64,
    /// Bytes of a line: a length, or a command typed by hand.
    pub line_bytes: usize,
    /// Who sends it.
    pub whose: Whose,
}

/// Who sends commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A client that said who it is, or did not have to.
    Known,
    /// One that has to.
    Strangers,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            arguments: 1 << 20,
            argument_bytes: 512 << 20,
            announced_bytes: 16 << 10,
            line_bytes: 64 << 10,
            whose: Whose::Known,
        }
    }
}

impl Limits {
    /// What someone may send who did not say who they are: enough to say it.
    pub(crate) fn strangers() -> Self {
        Self {
            arguments: 10,
            argument_bytes: 16 << 10,
            announced_bytes: u64::MAX,
            whose: Whose::Strangers,
            ..Self::default()
        }
    }
}

/// An argument of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// In the inbox.
    Here(Range<usize>),
    /// Announced and read by someone else, so many bytes.
    Elsewhere(u64),
}

/// What the inbox holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Not enough of it yet.
    More,
    /// An argument of so many bytes begins at [`Parser::position`]; the parser goes on after
    /// [`Parser::elsewhere`].
    Announced(u64),
    /// A whole command: its arguments are in [`Parser::args`].
    Command,
}

/// What is not the protocol. A client that sent it is told and its connection closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A count of arguments that is no number, or too many.
    Count,
    /// A length that is no number, or too large.
    Length,
    /// Something else where an argument should begin.
    Expected(u8),
    /// A line without end.
    Line,
    /// An argument does not end where it says.
    Unended,
    /// Quotes that do not match.
    Quotes,
    /// A count that is too many for someone who has not said who they are.
    StrangersCount,
    /// A length that is too large for them.
    StrangersLength,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::Count => f.write_str("invalid multibulk length"),
            Self::Length => f.write_str("invalid bulk length"),
            Self::Expected(byte) => write!(f, "expected '$', got '{}'", byte.escape_ascii()),
            Self::Line => f.write_str("too big inline request"),
            Self::Unended => f.write_str("expected CRLF after an argument"),
            Self::Quotes => f.write_str("unbalanced quotes in request"),
            Self::StrangersCount => f.write_str("unauthenticated multibulk length"),
            Self::StrangersLength => f.write_str("unauthenticated bulk length"),
        }
    }
}

/// Where the parser is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a command.
    Start,
    /// So many arguments are to come, the next one from its length on.
    Length(usize),
    /// The same; the next one is of so many bytes.
    Body(usize, u64),
    /// The same; the end of line of the one just read is next.
    End(usize),
    /// All arguments are there.
    Whole,
}

/// Reads commands from an inbox that only grows until a command was taken.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    state: State,
    at: usize,
    /// How much of an unfinished line was searched for its end, so that one that comes byte by byte costs
    /// no more than its bytes.
    searched: usize,
    args: Vec<Arg>,
}

impl Parser {
    /// A parser at the start of a connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: State::Start, at: 0, searched: 0, args: Vec::new() }
    }

    /// Other limits hold from the next command on.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Whether nothing of a command was read yet.
    pub fn is_between(&self) -> bool {
        self.state == State::Start
    }

    /// How much of the inbox is understood.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Memory for arguments beyond what every client may keep.
    pub(crate) fn own_bytes(&self) -> u64 {
        (self.args.capacity().saturating_sub(KEPT_ARGS) * size_of::<Arg>()) as u64
    }

    /// The arguments of the command, so far.
    pub fn args(&self) -> &[Arg] {
        &self.args
    }

    /// The command was carried out: how many bytes of the inbox were its own. The rest begins at 0.
    pub fn take(&mut self) -> usize {
        self.args.clear();
        // A client that once sent many is not worth their room for ever.
        self.args.shrink_to(KEPT_ARGS);
        self.state = State::Start;
        std::mem::take(&mut self.at)
    }

    /// The announced argument was read elsewhere, and is not in the inbox; its end of line comes next.
    pub fn elsewhere(&mut self) {
        if let State::Body(left, bytes) = self.state {
            self.args.push(Arg::Elsewhere(bytes));
            self.state = State::End(left);
        }
    }

    /// Goes as far as the inbox allows. Words that a person typed are there without quotes and escapes then.
    pub fn step(&mut self, inbox: &mut [u8]) -> Result<Step, Fault> {
        loop {
            let moved = match self.state {
                State::Whole => return Ok(Step::Command),
                State::Start => self.start(inbox)?,
                State::Length(left) => self.length(inbox, left)?,
                State::Body(_, bytes) if bytes >= self.limits.announced_bytes => {
                    return Ok(Step::Announced(bytes));
                }
                State::Body(left, bytes) => self.body(inbox, left, bytes),
                State::End(left) => self.end(inbox, left)?,
            };
            if !moved {
                return Ok(Step::More);
            }
        }
    }

    fn start(&mut self, inbox: &mut [u8]) -> Result<bool, Fault> {
        match inbox.get(self.at) {
            None => Ok(false),
            Some(b'*') => {
                let Some(line) = self.line(inbox, self.at + 1)? else { return Ok(false) };
                let count = number(&inbox[line.clone()]).ok_or(Fault::Count)?;
                let most = i64::try_from(self.limits.arguments).unwrap_or(i64::MAX);
                if count > most {
                    return Err(self.too_much(count, Fault::StrangersCount, Fault::Count));
                }
                self.at = line.end + 2;
                // Nothing, or less, is no command: as if it had not been sent.
                if count > 0 {
                    self.state = State::Length(count as usize);
                }
                Ok(true)
            }
            Some(_) => self.typed(inbox),
        }
    }

    /// A command as a person types it: words on a line.
    fn typed(&mut self, inbox: &mut [u8]) -> Result<bool, Fault> {
        let rest = &mut inbox[self.at..];
        let known = rest.len().min(self.limits.line_bytes);
        let Some(end) = rest[self.searched..known].iter().position(|byte| *byte == b'\n') else {
            self.searched = known;
            return if known == self.limits.line_bytes { Err(Fault::Line) } else { Ok(false) };
        };
        let (start, end) = (self.at, end + std::mem::take(&mut self.searched));
        // A return before the end of the line is a blank.
        for word in words(&mut rest[..end])? {
            self.args.push(Arg::Here(start + word.start..start + word.end));
        }
        self.at += end + 1;
        if !self.args.is_empty() {
            self.state = State::Whole;
        }
        Ok(true)
    }

    fn length(&mut self, inbox: &[u8], left: usize) -> Result<bool, Fault> {
        match inbox.get(self.at) {
            None => return Ok(false),
            Some(b'$') => {}
            Some(other) => return Err(Fault::Expected(*other)),
        }
        let Some(line) = self.line(inbox, self.at + 1)? else { return Ok(false) };
        let count = number(&inbox[line.clone()]).ok_or(Fault::Length)?;
        let bytes = u64::try_from(count).map_err(|_| Fault::Length)?;
        if bytes > self.limits.argument_bytes {
            return Err(self.too_much(count, Fault::StrangersLength, Fault::Length));
        }
        self.at = line.end + 2;
        self.state = State::Body(left, bytes);
        Ok(true)
    }

    /// What a number is called that is over its limit.
    fn too_much(&self, number: i64, strangers: Fault, anybody: Fault) -> Fault {
        let is_usual = self.limits.whose == Whose::Strangers && number <= i64::from(i32::MAX);
        if is_usual { strangers } else { anybody }
    }

    fn body(&mut self, inbox: &[u8], left: usize, bytes: u64) -> bool {
        let end = self.at + bytes as usize;
        if inbox.len() < end {
            return false;
        }
        self.args.push(Arg::Here(self.at..end));
        self.at = end;
        self.state = State::End(left);
        true
    }

    fn end(&mut self, inbox: &[u8], left: usize) -> Result<bool, Fault> {
        let Some(end) = inbox.get(self.at..self.at + 2) else { return Ok(false) };
        if end != b"\r\n" {
            return Err(Fault::Unended);
        }
        self.at += 2;
        self.state = if left > 1 { State::Length(left - 1) } else { State::Whole };
        Ok(true)
    }

    /// A line from `start` on, without its end.
    fn line(&self, inbox: &[u8], start: usize) -> Result<Option<Range<usize>>, Fault> {
        let rest = inbox.get(start..).unwrap_or_default();
        // Numbers are short; a long line is none.
        match rest.iter().take(MOST_DIGITS + 2).position(|byte| *byte == b'\n') {
            Some(end) if end > 0 && rest[end - 1] == b'\r' => Ok(Some(start..start + end - 1)),
            Some(_) => Err(Fault::Length),
            None if rest.len() >= MOST_DIGITS + 2 => Err(Fault::Length),
            None => Ok(None),
        }
    }
}

/// Arguments there is room for between commands, at most.
const KEPT_ARGS: usize = 1024;
/// The longest number: a sign and the digits of 2^63.
const MOST_DIGITS: usize = 20;

fn number(text: &[u8]) -> Option<i64> {
    // `parse` takes a plus sign; the protocol does not.
    if text.first() == Some(&b'+') {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
