//! Conversations as chat traffic has them: a few prefixes used by many, contexts that grow with every turn,
//! lengths and pauses with long tails. Requests are made one at a time; the examples in the repository come
//! from here.

use std::ops::Range;

use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use wavetank_model::{Draw, Nanos, Result, seeded};

use super::arrival::{Process, Times};
use super::lengths::{Lengths, Shape};
use crate::requests::{Findings, Reader};
use crate::{Moment, Row};

/// More prefixes than this say nothing: of as many sessions as there can be none would use the next.
pub const MOST_PREFIXES: u32 = 64;

/// What is generated.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversations {
    /// Requests, over all sessions.
    pub requests: u64,
    /// When sessions start.
    pub arrivals: Arrivals,
    /// Turns of a session; always 1 gives single requests without session names.
    pub turns: Lengths,
    /// Tokens that a turn asks.
    pub input: Lengths,
    /// Tokens that are answered.
    pub output: Lengths,
    /// Milliseconds between the end of a turn and the next one.
    pub pause_ms: Lengths,
    /// Prefixes, such as system prompts; the first is used most, each about twice as often as the next;
    /// [`MOST_PREFIXES`] at most.
    pub shared_prefixes: u32,
    /// Tokens of a prefix, rounded up to whole blocks; without it, one to six blocks.
    pub prefix_tokens: Option<Lengths>,
    /// What a turn repeats.
    pub growth: Growth,
    /// A session ends before a prompt that is longer.
    pub most_context: u32,
    /// Tokens per id.
    pub tokens_per_id: u32,
    /// The seed.
    pub seed: u64,
}

/// When sessions start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// With exponential gaps that are drawn between the sessions themselves, as the examples are.
    Interleaved {
        /// Mean sessions per second.
        per_second: f64,
    },
    /// By a process with its own draws, which changes nothing else.
    Process(Process),
}

/// What a turn's prompt repeats of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// All that was asked and answered before.
    Conversation,
    /// The prefix alone.
    Prefix,
}

impl Conversations {
    /// `examples/conversation.jsonl`.
    pub fn example() -> Self {
        let tail = |mean_log: f64, deviation_log: f64, most: u32| Lengths {
            shape: Shape::LogNormal { mean_log, deviation_log },
            most,
        };
        Self {
            requests: 500,
            arrivals: Arrivals::Interleaved { per_second: 1.0 },
            turns: Lengths { shape: Shape::Uniform(1, 6), most: u32::MAX },
            input: tail(5.0, 1.0, 8_000),
            output: tail(5.0, 0.8, 2_000),
            pause_ms: tail(8.5, 0.7, 60_000),
            shared_prefixes: 8,
            prefix_tokens: None,
            growth: Growth::Conversation,
            most_context: u32::MAX,
            tokens_per_id: 512,
            seed: 42,
        }
    }

    /// The requests, in the order of session starts, the turns of a session together.
    pub fn rows(&self) -> Generated {
        let times = match self.arrivals {
            Arrivals::Interleaved { .. } => None,
            Arrivals::Process(process) => Some(process.times(self.seed)),
        };
        let mut generated = Generated {
            plan: self.clone(),
            draw: seeded(self.seed, "conversations"),
            times,
            next_id: 0,
            prefixes: Vec::new(),
            start_ms: 0.0,
            sessions: 0,
            made: 0,
            current: Session::default(),
        };
        generated.prefixes = (0..self.shared_prefixes).map(|_| generated.prefix()).collect();
        generated
    }
}

/// Requests being generated; one session at a time is held.
#[derive(Clone, Debug)]
pub struct Generated {
    plan: Conversations,
    draw: Draw,
    times: Option<Times>,
    next_id: u64,
    /// The ids of every prefix.
    prefixes: Vec<Range<u64>>,
    start_ms: f64,
    /// How many sessions were begun, and how many requests were made.
    sessions: u64,
    made: u64,
    current: Session,
}

/// The session whose turns are made.
#[derive(Clone, Debug, Default)]
struct Session {
    /// What its next turn repeats: ids of whole blocks, and tokens.
    ids: Vec<u64>,
    tokens: u32,
    prefix_blocks: usize,
    turn: u32,
    turns: u32,
}

impl Generated {
    fn prefix(&mut self) -> Range<u64> {
        let blocks = match &self.plan.prefix_tokens {
            None => self.draw.random_range(1..=6),
            Some(tokens) => tokens.draw(&mut self.draw).div_ceil(self.plan.tokens_per_id).into(),
        };
        self.fresh(blocks)
    }

    fn fresh(&mut self, blocks: u64) -> Range<u64> {
        self.next_id += blocks;
        self.next_id - blocks..self.next_id
    }

    fn begin_session(&mut self) {
        if let Arrivals::Interleaved { per_second } = self.plan.arrivals
            && self.sessions > 0
        {
            let gap: f64 = Exp1.sample(&mut self.draw);
            self.start_ms += gap * 1000.0 / per_second;
        }
        if let Some(time) = self.times.as_mut().and_then(Iterator::next) {
            self.start_ms = time;
        }
        self.sessions += 1;
        // Halving weights: prefix k is drawn about twice as often as k + 1.
        self.current.ids.clear();
        if let Some(most) = self.prefixes.len().checked_sub(1) {
            let prefix = (0..most).find(|_| self.draw.random_bool(0.5)).unwrap_or(most);
            // What no prompt can hold is not laid out.
            let most_blocks = self.plan.most_context.div_ceil(self.plan.tokens_per_id) as usize;
            self.current.ids.extend(self.prefixes[prefix].clone().take(most_blocks));
        }
        self.current.prefix_blocks = self.current.ids.len();
        self.current.tokens = self.prefix_tokens();
        self.current.turns = self.plan.turns.draw(&mut self.draw);
        self.current.turn = 0;
    }

    /// The next turn of the session; false where its prompt would be too long.
    fn turn(&mut self, row: &mut Row) -> bool {
        let asked = self.plan.input.draw(&mut self.draw);
        let most = self.plan.most_context;
        let tokens = match self.current.tokens.checked_add(asked).filter(|tokens| *tokens <= most) {
            Some(tokens) => tokens,
            None if self.current.turn == 0 => most.max(1),
            None => return false,
        };
        let blocks = u64::from(tokens.div_ceil(self.plan.tokens_per_id));
        let missing = blocks.saturating_sub(self.current.ids.len() as u64);
        let fresh = self.fresh(missing);
        self.current.ids.extend(fresh);
        self.current.ids.truncate(blocks as usize);
        let output_tokens = self.plan.output.draw(&mut self.draw);
        row.clear();
        let is_first = self.current.turn == 0;
        if self.plan.turns.largest() > 1 {
            row.session = Some(format!("session-{}", self.sessions - 1));
        }
        row.start = if is_first { Moment::from_ms(self.start_ms.round()) } else { None };
        row.pause = (!is_first).then(|| Nanos::from_ms(self.plan.pause_ms.draw(&mut self.draw).into()));
        (row.input_tokens, row.output_tokens) = (Some(tokens), Some(output_tokens));
        row.ids.extend_from_slice(&self.current.ids);
        self.current.turn += 1;
        self.repeat(tokens, output_tokens);
        true
    }

    /// What the next turn repeats: a block begun by the answer is new.
    fn repeat(&mut self, tokens: u32, output_tokens: u32) {
        let per_id = self.plan.tokens_per_id;
        match self.plan.growth {
            Growth::Conversation => {
                self.current.ids.truncate((tokens / per_id) as usize);
                self.current.tokens = tokens.saturating_add(output_tokens);
            }
            Growth::Prefix => {
                self.current.ids.truncate(self.current.prefix_blocks);
                self.current.tokens = self.prefix_tokens();
            }
        }
    }

    /// Tokens of the session's prefix.
    fn prefix_tokens(&self) -> u32 {
        (self.current.prefix_blocks as u32).saturating_mul(self.plan.tokens_per_id)
    }
}

impl Reader for Generated {
    fn read(&mut self, row: &mut Row) -> Result<bool> {
        if self.made == self.plan.requests {
            return Ok(false);
        }
        loop {
            if self.current.turn == self.current.turns {
                self.begin_session();
            }
            if self.turn(row) {
                self.made += 1;
                return Ok(true);
            }
            self.current.turns = self.current.turn;
        }
    }

    fn place(&self) -> String {
        format!("<generated>:{}", self.made)
    }

    fn line(&self) -> u64 {
        self.made
    }

    fn tokens_per_id(&self) -> Option<u32> {
        Some(self.plan.tokens_per_id)
    }

    fn findings(&self) -> Findings {
        Findings::default()
    }
}

impl Iterator for Generated {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let mut row = Row::default();
        let is_made = self.read(&mut row).expect("what is generated is never wrong");
        is_made.then_some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Conversations {
        Conversations { requests: 200, shared_prefixes: 4, ..Conversations::example() }
    }

    fn rows(shape: &Conversations) -> Vec<Row> {
        shape.rows().collect()
    }

    #[test]
    fn contexts_grow_and_share() {
        let rows = rows(&shape());
        assert_eq!(rows.len(), 200);
        for pair in rows.windows(2).filter(|pair| pair[0].session == pair[1].session) {
            assert!(pair[1].input_tokens > pair[0].input_tokens);
            let whole = (pair[0].input_tokens.unwrap() / 512) as usize;
            assert_eq!(pair[0].ids[..whole], pair[1].ids[..whole]);
        }
        let first_ids: std::collections::BTreeSet<u64> = rows.iter().map(|row| row.ids[0]).collect();
        assert_eq!(first_ids.len(), 4, "every session begins with one of the prefixes");
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(rows(&shape()), rows(&shape()));
        assert_ne!(rows(&shape()), rows(&Conversations { seed: 1, ..shape() }));
    }

    /// Broken by: a draw more or less, or in another order, than when the examples were written.
    #[test]
    fn the_examples_come_from_here() {
        let single = Conversations {
            turns: Lengths { shape: Shape::Uniform(1, 1), most: 1 },
            arrivals: Arrivals::Interleaved { per_second: 8.0 },
            ..Conversations::example()
        };
        for (name, shape) in [("conversation", Conversations::example()), ("single_turn", single)] {
            let mut text = Vec::new();
            shape.rows().for_each(|row| crate::requests::mooncake::write(&row, &mut text).unwrap());
            let path = format!("{}/../../examples/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
            assert!(text == std::fs::read(path).unwrap(), "{name}");
        }
    }

    /// Broken by: arrivals that draw from the stream of the contents.
    #[test]
    fn arrivals_change_nothing_else() {
        let with = |process| {
            let rows = rows(&Conversations { arrivals: Arrivals::Process(process), ..shape() });
            let starts: Vec<_> = rows.iter().map(|row| row.start).collect();
            (starts, rows.into_iter().map(|row| Row { start: None, ..row }).collect::<Vec<_>>())
        };
        let constant = with(Process::Constant { interval_ms: 100.0 });
        let poisson = with(Process::Poisson { per_second: 10.0 });
        assert_eq!(constant.1, poisson.1);
        assert_ne!(constant.0, poisson.0);
    }

    /// Broken by: a prefix that is laid out where no prompt can hold it, or whose tokens are past counting.
    #[test]
    fn a_prefix_may_be_longer_than_every_prompt() {
        let prefix_tokens = Some(Lengths::fixed(u32::MAX));
        let endless = Conversations { prefix_tokens, tokens_per_id: 1, most_context: 1000, ..shape() };
        assert!(endless.rows().take(9).all(|row| row.input_tokens == Some(1000) && row.ids.len() == 1000));
        let whole = Conversations { tokens_per_id: u32::MAX, most_context: u32::MAX, ..shape() };
        assert!(whole.rows().take(9).all(|row| row.ids.len() == 1));
    }

    #[test]
    fn a_context_has_a_limit() {
        let long = Conversations { most_context: 2_000, turns: Lengths::fixed(50), ..shape() };
        let rows = rows(&long);
        assert!(rows.iter().all(|row| row.input_tokens.unwrap() <= 2_000));
        assert!(rows.iter().all(|row| row.ids.len() as u32 == row.input_tokens.unwrap().div_ceil(512)));
        assert!(rows.iter().filter(|row| row.start.is_some()).count() > 4, "sessions end at the limit");
    }

    #[test]
    fn turns_may_repeat_the_prefix_alone() {
        let fresh = Conversations { growth: Growth::Prefix, input: Lengths::fixed(600), ..shape() };
        for row in rows(&fresh) {
            let blocks = row.ids.len();
            assert_eq!(row.input_tokens.unwrap() % 512, 88, "a prefix and what is asked");
            assert!(row.ids[..blocks - 2].iter().all(|id| *id < 24), "{:?}", row.ids);
        }
        let none = Conversations { shared_prefixes: 0, turns: Lengths::fixed(1), ..shape() };
        let ids: Vec<u64> = rows(&none).iter().flat_map(|row| row.ids.clone()).collect();
        assert!(ids.iter().copied().eq(0..ids.len() as u64), "nothing is shared");
    }
}
