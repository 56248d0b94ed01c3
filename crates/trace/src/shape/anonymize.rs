//! A trace that may be shown: names and ids re-mapped under a key, times from zero, lengths and times made
//! vague. What its requests share stays exactly as it was.

use std::collections::HashMap;
use std::fmt;

use rand::RngExt;
use wavetank_model::{Draw, Error, Nanos, Result, seeded};

use super::around::Around;
use super::feistel::Permutation;
use crate::convert::key;
use crate::requests::Reader;
use crate::{Moment, Row};

/// Less than this can be guessed.
const SHORTEST_KEY: usize = 16;
const PURPOSE: &str = "wavetank trace anonymize: names, ids, jitter";
/// Hexadecimal digits of a name: of 2^40 names no two meet.
const NAME_DIGITS: usize = 24;

/// A key, which is never shown.
pub struct Secret {
    names: [u8; 32],
    ids: [u8; 64],
    jitter: u64,
}

impl Secret {
    /// From what a user keeps secret; white space around it does not count.
    pub fn of(text: &[u8]) -> Result<Self> {
        let text = text.trim_ascii();
        if text.len() < SHORTEST_KEY {
            return Err(Error::usage(format!("the key has fewer than {SHORTEST_KEY} bytes"))
                .hint("a key that can be guessed hides nothing: head -c 32 /dev/urandom | base64"));
        }
        let mut bytes = [0; 32 + 64 + 8];
        blake3::Hasher::new_derive_key(PURPOSE).update(text).finalize_xof().fill(&mut bytes);
        let (names, rest) = bytes.split_at(32);
        let (ids, jitter) = rest.split_at(64);
        Ok(Self {
            names: names.try_into().expect("as cut"),
            ids: ids.try_into().expect("as cut"),
            jitter: u64::from_le_bytes(jitter.try_into().expect("as cut")),
        })
    }

    fn name(&self, sort: u8, name: &str) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.names);
        let hash = hasher.update(&[sort]).update(name.as_bytes()).finalize();
        hash.to_hex()[..NAME_DIGITS].to_owned()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What is made vague.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scrub {
    /// Times move by up to so much, and stay in their order.
    pub jitter: Nanos,
    /// Lengths become multiples of it; 0 leaves them.
    pub round_tokens: u32,
    /// Whether kinds and policy classes stay.
    pub keep_classes: bool,
    /// Whether ids count up from zero in the order they are met, which takes memory for each.
    pub dense_ids: bool,
}

/// A trace being scrubbed.
pub struct Anonymous {
    reader: Box<dyn Reader>,
    secret: Secret,
    ids: Permutation,
    scrub: Scrub,
    draw: Draw,
    dense: HashMap<u64, u64>,
    /// The first time of the trace, if that is known.
    origin: Option<Moment>,
    /// The time of the row before it, before and after.
    last: Option<[Moment; 2]>,
    /// The time of each session's last turn.
    sessions: HashMap<u128, Moment>,
    moved: u64,
}

impl Anonymous {
    /// What `reader` reads, scrubbed; `origin` is its first time, without which it is the first request's.
    pub fn of(reader: Box<dyn Reader>, secret: Secret, scrub: Scrub, origin: Option<Moment>) -> Self {
        let ids = Permutation::of(&secret.ids);
        let draw = seeded(secret.jitter, "jitter");
        let (dense, sessions) = (HashMap::new(), HashMap::new());
        Self { reader, secret, ids, scrub, draw, dense, origin, last: None, sessions, moved: 0 }
    }

    fn scrub(&mut self, row: &mut Row) {
        for id in &mut row.ids {
            let next = self.dense.len() as u64;
            *id = match self.scrub.dense_ids {
                true => *self.dense.entry(*id).or_insert(next),
                false => self.ids.apply(*id),
            };
        }
        if let Some(start) = row.start {
            row.start = Some(self.start(start, row));
        }
        row.pause = row.pause.map(|pause| self.vague(pause));
        row.tool_wait = row.tool_wait.map(|wait| self.vague(wait));
        for name in row.request.iter_mut().chain(&mut row.wait_for) {
            *name = self.secret.name(b'r', name);
        }
        row.session = row.session.take().map(|name| self.secret.name(b's', &name));
        if !self.scrub.keep_classes {
            (row.policy_class, row.kind) = (None, None);
        }
        if self.scrub.round_tokens > 0 {
            self.round(row);
        }
    }

    /// A time from zero, moved; never before an earlier one of the trace, or of its session, that it was not
    /// before.
    fn start(&mut self, start: Moment, row: &Row) -> Moment {
        let origin = *self.origin.get_or_insert(start);
        self.moved += u64::from(start < origin);
        let jitter = self.jitter();
        let from_zero = start.since(origin).unwrap_or_default().0.saturating_add(jitter);
        let mut now = Moment { nanos: i64::try_from(from_zero).unwrap_or(i64::MAX) };
        if let Some([before, given]) = self.last
            && before <= start
        {
            now = now.max(given);
        }
        if let Some(session) = row.session.as_deref().filter(|_| self.scrub.jitter != Nanos::ZERO) {
            let last = self.sessions.entry(key(session)).or_insert(now);
            now = now.max(*last);
            *last = now;
        }
        self.last = Some([start, now]);
        now
    }

    fn jitter(&mut self) -> u64 {
        match self.scrub.jitter {
            Nanos::ZERO => 0,
            Nanos(most) => self.draw.random_range(0..=most),
        }
    }

    /// A span moved by up to half the jitter either way.
    fn vague(&mut self, span: Nanos) -> Nanos {
        let jitter = self.jitter();
        Nanos(span.0.saturating_add(jitter).saturating_sub(self.scrub.jitter.0 / 2))
    }

    /// Lengths rounded up, but a prompt never beyond its ids.
    fn round(&self, row: &mut Row) {
        let multiple = self.scrub.round_tokens;
        let up = |tokens: u32| tokens.checked_next_multiple_of(multiple).unwrap_or(tokens);
        let covered = self
            .reader
            .tokens_per_id()
            .filter(|_| !row.ids.is_empty())
            .map_or(u64::MAX, |per_id| u64::from(per_id).saturating_mul(row.ids.len() as u64));
        let most = u32::try_from(covered).unwrap_or(u32::MAX);
        row.input_tokens = row.input_tokens.map(|tokens| up(tokens).min(most.max(tokens)));
        row.output_tokens = row.output_tokens.map(up);
    }
}

impl Around for Anonymous {
    fn advance(&mut self, row: &mut Row) -> Result<bool> {
        let is_read = self.reader.read(row)?;
        if is_read {
            self.scrub(row);
        }
        Ok(is_read)
    }

    fn inner(&self) -> &dyn Reader {
        self.reader.as_ref()
    }

    fn note(&self, notes: &mut Vec<String>) {
        if self.moved > 0 {
            notes.push(format!("{} requests came before the first of the file: they come at 0", self.moved));
        }
    }
}
