//! A latency, then a bandwidth that transfers share: in equal parts, or one after another.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use serde::Deserialize;
use wavetank_model::{Nanos, Operation};

use super::{Entry, Medium, Transfer, configure, with_bandwidth};
use crate::TransferId;
use crate::lane::Lane;
use crate::rates::{Rates, carried};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "queued",
    about: "latency_us, then gbps together (order share) or in turn (fifo); duplex half: one for both ways",
    build: |parameters, _| {
        let is_sharing = |key: &String| ["order", "duplex"].contains(&key.as_str());
        let (sharing, rates) = parameters.clone().into_iter().partition(|(key, _)| is_sharing(key));
        let rates = Rates::read(ENTRY.name, &rates)?;
        let sharing: Sharing = configure(ENTRY.name, &sharing)?;
        if sharing.duplex == Duplex::Half && rates.gbps(Operation::Read) != rates.gbps(Operation::Write) {
            let told = format!("medium \"{}\": one bandwidth is shared with duplex \"half\"", ENTRY.name);
            return Err(wavetank_model::Error::usage(told).hint("give gbps alone"));
        }
        Ok(Box::new(Queued::of(rates, sharing)))
    },
    sped: with_bandwidth,
    is_random: false,
};

/// How transfers are in each other's way.
#[derive(Clone, Copy, Deserialize)]
struct Sharing {
    #[serde(default)]
    order: Order,
    #[serde(default)]
    duplex: Duplex,
}

/// Who gets the bandwidth.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// All that are there, in equal parts.
    #[default]
    Share,
    /// The one that came first.
    Fifo,
}

/// Whether reads and writes have a bandwidth each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Duplex {
    #[default]
    Full,
    Half,
}

struct Queued {
    rates: Rates,
    latency: Nanos,
    /// Transfers before their first byte, in the order in which they began, for the latency of all is the
    /// same.
    starting: VecDeque<Starting>,
    /// One, or one for reads and one for writes.
    tracks: Vec<Track>,
    /// When the next thing happens on a track, and on which.
    next_on_tracks: Option<(Nanos, usize)>,
    /// Of no bytes.
    nothing: BinaryHeap<Reverse<(Nanos, TransferId)>>,
}

/// A run of transfers before its first byte.
struct Starting {
    /// When its latency is over.
    at: Nanos,
    id: TransferId,
    bytes: u64,
    count: u32,
    track: u32,
}

impl Queued {
    fn of(rates: Rates, sharing: Sharing) -> Self {
        let operations = match sharing.duplex {
            Duplex::Full => &[Operation::Read, Operation::Write][..],
            Duplex::Half => &[Operation::Read],
        };
        let track = |&operation| match sharing.order {
            Order::Share => Track::Share(Lane::of(rates.gbps(operation) * 1e6, f64::INFINITY)),
            Order::Fifo => {
                Track::Fifo { gbps: rates.gbps(operation), free: Nanos::ZERO, ends: VecDeque::new() }
            }
        };
        Self {
            rates,
            latency: rates.latency(),
            starting: VecDeque::new(),
            tracks: operations.iter().map(track).collect(),
            next_on_tracks: None,
            nothing: BinaryHeap::new(),
        }
    }

    /// Who is on the tracks has changed.
    fn look_ahead(&mut self) {
        let next = |(track, it): (usize, &Track)| it.next_end().map(|at| (at, track));
        self.next_on_tracks = self.tracks.iter().enumerate().filter_map(next).min();
    }

    /// Lets those in whose latency is over by `now`, before any of their successors can end.
    fn let_in(&mut self, now: Nanos) {
        while let Some(&Starting { at, .. }) = self.starting.front() {
            if at > now || self.next_on_tracks.is_some_and(|(end, _)| end < at) {
                return;
            }
            while let Some(starting) = self.starting.pop_front_if(|next| next.at == at) {
                self.tracks[starting.track as usize].join(&starting);
            }
            self.look_ahead();
            if self.starting.is_empty() {
                // Begins at its first place again: a ring that goes round is far from the processor.
                self.starting.clear();
            }
        }
    }
}

impl Medium for Queued {
    fn begin(&mut self, transfer: Transfer, now: Nanos) {
        let Transfer { id, count, operation, bytes, .. } = transfer;
        if bytes == 0 {
            return self.nothing.push(Reverse((now, id)));
        }
        let track = (operation == Operation::Write) as u32 % self.tracks.len() as u32;
        self.starting.push_back(Starting { at: now + self.latency, id, bytes, count, track });
        self.let_in(now);
    }

    fn next(&self) -> Option<Nanos> {
        let nothing = self.nothing.peek().map(|&Reverse((at, _))| at);
        let start = self.starting.front().map(|starting| starting.at);
        let on_tracks = self.next_on_tracks.map(|(at, _)| at);
        [nothing, start, on_tracks].into_iter().flatten().min()
    }

    fn end(&mut self, now: Nanos, ended: &mut Vec<TransferId>) -> Option<Nanos> {
        if let Some(&Reverse((at, id))) = self.nothing.peek()
            && at <= now
        {
            self.nothing.pop();
            ended.push(id);
            return Some(at);
        }
        self.let_in(now);
        let (at, track) = self.next_on_tracks.filter(|&(at, _)| at <= now)?;
        self.tracks[track].end_next(at, ended);
        self.look_ahead();
        Some(at)
    }

    fn takes_runs(&self) -> bool {
        self.tracks.iter().all(|track| matches!(track, Track::Share(_)))
    }

    fn alone(&self, operation: Operation, bytes: u64) -> Nanos {
        self.latency + self.rates.carried(operation, bytes)
    }

    fn peak_bytes_per_second(&self, operation: Operation, _bytes: u64) -> f64 {
        self.rates.gbps(operation) * 1e9
    }
}

/// One bandwidth and those on it.
enum Track {
    Share(Lane),
    Fifo {
        gbps: f64,
        /// When the last of them is through.
        free: Nanos,
        /// Those on it, with their ends.
        ends: VecDeque<(Nanos, TransferId)>,
    },
}

impl Track {
    fn join(&mut self, &Starting { at, id, bytes, count, .. }: &Starting) {
        match self {
            Self::Share(lane) => lane.join(id, count, bytes, at),
            Self::Fifo { gbps, free, ends } => {
                *free = (*free).max(at) + carried(bytes, *gbps);
                ends.push_back((*free, id));
            }
        }
    }

    fn next_end(&self) -> Option<Nanos> {
        match self {
            Self::Share(lane) => lane.next_end(),
            Self::Fifo { ends, .. } => ends.front().map(|&(at, _)| at),
        }
    }

    fn end_next(&mut self, now: Nanos, ended: &mut Vec<TransferId>) {
        match self {
            Self::Share(lane) => {
                ended.extend(lane.end_next(now));
                ended.extend(std::iter::from_fn(|| lane.end_like_last()));
            }
            Self::Fifo { ends, .. } => ended.extend(ends.pop_front().map(|(_, id)| id)),
        }
    }
}
