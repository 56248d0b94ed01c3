//! Replies that wait for a client. Values stay where they are: only what is around them is written here.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::sync::Arc;

use wavetank_calls::Object;

use super::reply::{END, Protocol, Reply};

/// Parts written at a time.
const PARTS_AT_A_TIME: usize = 64;
/// Smaller values are copied: that is cheaper than a part of their own.
pub(super) const COPIED_BYTES: usize = 1024;
/// What an outbox begins with.
const TEXT_BYTES: usize = 512;
/// One that is larger is not used again; nor are more than so many.
const KEPT_BYTES: usize = 64 << 10;
const SPARES: usize = 256;

/// Memory of an outbox.
pub(super) type Memory = (Vec<u8>, VecDeque<Part>);

/// Some of what is to be sent.
pub(super) enum Part {
    /// The next so many bytes of `text`.
    Text(usize),
    /// Bytes of a value.
    Value(Arc<Object>, Range<usize>),
}

/// What is to be sent, in order.
#[derive(Default)]
pub(super) struct Outbox {
    /// Which version the client speaks.
    pub(super) protocol: Protocol,
    text: Vec<u8>,
    /// How much of `text` was sent.
    sent: usize,
    parts: VecDeque<Part>,
    bytes: u64,
    /// Those of values, which are where they are anyway.
    value_bytes: u64,
}

/// Whether all was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Nothing is left.
    All,
    /// The client has to read first.
    Some,
}

impl Outbox {
    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Those of values.
    pub(super) fn value_bytes(&self) -> u64 {
        self.value_bytes
    }

    /// Memory of its own.
    pub(super) fn own_bytes(&self) -> u64 {
        (self.text.len() + self.parts.len() * size_of::<Part>()) as u64
    }

    /// Adds a reply, or a part of one.
    pub(super) fn reply(&mut self, reply: &Reply<'_>) {
        let before = self.text.len();
        reply.write(self.protocol, &mut self.text);
        self.grown(before);
    }

    /// Adds a text that is a whole.
    pub(super) fn text(&mut self, format: &[u8; 3], text: &str) {
        if self.protocol == Protocol::Resp2 {
            return self.reply(&Reply::Bulk(text.as_bytes()));
        }
        let before = self.text.len();
        self.text.extend(format!("={}\r\n", text.len() + format.len() + 1).bytes());
        self.text.extend(format);
        self.text.push(b':');
        self.text.extend(text.bytes());
        self.text.extend(END);
        self.grown(before);
    }

    /// Adds a value, or a part of one.
    pub(super) fn value(&mut self, value: &Arc<Object>, range: Range<usize>) {
        if range.len() < COPIED_BYTES {
            return self.reply(&Reply::Bulk(&value[range]));
        }
        self.reply(&Reply::BulkHead(range.len() as u64));
        self.bytes += range.len() as u64;
        self.value_bytes += range.len() as u64;
        self.parts.push_back(Part::Value(Arc::clone(value), range));
        let before = self.text.len();
        self.text.extend(END);
        self.grown(before);
    }

    fn grown(&mut self, before: usize) {
        let more = self.text.len() - before;
        self.bytes += more as u64;
        match self.parts.back_mut() {
            Some(Part::Text(bytes)) => *bytes += more,
            _ => self.parts.push_back(Part::Text(more)),
        }
    }

    /// Sends what the client takes.
    pub(super) fn flush(&mut self, to: &mut impl Write) -> io::Result<Flushed> {
        while self.bytes > 0 {
            let (asked, sent) = self.send(to)?;
            self.bytes -= sent as u64;
            self.forget(sent);
            if sent < asked {
                self.compact();
                return Ok(Flushed::Some);
            }
        }
        self.text.clear();
        self.sent = 0;
        Ok(Flushed::All)
    }

    /// Sends as many parts as go at a time: how many bytes that are, and how many were taken.
    fn send(&self, to: &mut impl Write) -> io::Result<(usize, usize)> {
        let mut slices = [IoSlice::new(&[]); PARTS_AT_A_TIME];
        let (mut count, mut asked, mut at) = (0, 0, self.sent);
        for (slice, part) in slices.iter_mut().zip(&self.parts) {
            let bytes = match part {
                Part::Text(bytes) => {
                    at += bytes;
                    &self.text[at - bytes..at]
                }
                Part::Value(value, range) => &value[range.clone()],
            };
            *slice = IoSlice::new(bytes);
            asked += bytes.len();
            count += 1;
        }
        loop {
            let sent = match &slices[..count] {
                [one] => to.write(one),
                many => to.write_vectored(many),
            };
            match sent {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => return Ok((asked, sent)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((asked, 0)),
                Err(error) => return Err(error),
            }
        }
    }

    /// The first `sent` bytes are gone.
    fn forget(&mut self, mut sent: usize) {
        while sent > 0 {
            let Some(part) = self.parts.front_mut() else { return };
            let gone = match part {
                Part::Text(bytes) => {
                    let gone = sent.min(*bytes);
                    *bytes -= gone;
                    self.sent += gone;
                    (gone, *bytes == 0)
                }
                Part::Value(_, range) => {
                    let gone = sent.min(range.len());
                    range.start += gone;
                    self.value_bytes -= gone as u64;
                    (gone, range.start == range.end)
                }
            };
            sent -= gone.0;
            if gone.1 {
                self.parts.pop_front();
            }
        }
    }

    /// Forgets what was sent, where that is most of it: a client that is always behind must not make it grow.
    fn compact(&mut self) {
        if self.sent > KEPT_BYTES && self.sent > self.text.len() / 2 {
            self.text.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Takes memory from `spare`, or some of its own.
    pub(super) fn equip(&mut self, spare: &mut Vec<Memory>) {
        let (text, parts) = spare.pop().unwrap_or_else(|| (Vec::with_capacity(TEXT_BYTES), VecDeque::new()));
        (self.text, self.parts) = (text, parts);
    }

    /// An empty one gives its memory to `spare`.
    pub(super) fn give_back(&mut self, spare: &mut Vec<Memory>) {
        let (text, parts) = (std::mem::take(&mut self.text), std::mem::take(&mut self.parts));
        let is_usual = text.capacity() <= KEPT_BYTES && parts.capacity() <= 2 * PARTS_AT_A_TIME;
        if is_usual && text.capacity() > 0 && spare.len() < SPARES {
            spare.push((text, parts));
        }
    }

    /// Whether it has memory of its own.
    pub(super) fn is_equipped(&self) -> bool {
        self.text.capacity() > 0
    }
}

#[cfg(test)]
mod tests;
