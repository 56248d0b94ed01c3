//! Conversations as chat traffic has them: a few system prompts used by many, contexts that grow with every
//! turn, lengths and pauses with long tails. The examples in the repository come from here.

use rand::RngExt;
use rand_distr::{Distribution, Exp1, LogNormal};
use wavetank_model::{Draw, Nanos, seeded};

use crate::{Moment, Row};

/// What is generated.
#[derive(Clone, Debug)]
pub struct Conversations {
    /// Rows, over all sessions.
    pub requests: usize,
    /// Mean sessions started per second.
    pub sessions_per_second: f64,
    /// Most turns of a session; 1 gives single requests without session ids.
    pub most_turns: u32,
    /// System prompts; the first is used most.
    pub system_prompts: u32,
    /// Tokens per id.
    pub tokens_per_id: u32,
    /// The seed.
    pub seed: u64,
}

/// The state of one generation.
struct Writer<'a> {
    shape: &'a Conversations,
    draw: Draw,
    next_id: u64,
    systems: Vec<System>,
}

/// A system prompt: its ids and its length in tokens.
struct System {
    ids: Vec<u64>,
}

impl Conversations {
    /// The rows, in the order of session starts, the turns of a session together.
    pub fn rows(&self) -> Vec<Row> {
        let mut writer =
            Writer { shape: self, draw: seeded(self.seed, "conversations"), next_id: 0, systems: Vec::new() };
        writer.systems = (0..self.system_prompts).map(|_| writer.system()).collect();
        let (mut rows, mut start_ms, mut session) = (Vec::new(), 0.0, 0);
        while rows.len() < self.requests {
            let left = self.requests - rows.len();
            rows.extend(writer.session(session, start_ms).into_iter().take(left));
            let gap: f64 = Exp1.sample(&mut writer.draw);
            start_ms += gap * 1000.0 / self.sessions_per_second;
            session += 1;
        }
        rows
    }
}

impl Writer<'_> {
    /// A system prompt of one to six whole blocks.
    fn system(&mut self) -> System {
        let blocks = self.draw.random_range(1..=6);
        System { ids: self.fresh(blocks) }
    }

    fn fresh(&mut self, blocks: u64) -> Vec<u64> {
        let first = self.next_id;
        self.next_id += blocks;
        (first..self.next_id).collect()
    }

    fn session(&mut self, number: usize, start_ms: f64) -> Vec<Row> {
        // Halving weights: system prompt k is drawn about twice as often as k + 1.
        let most = self.systems.len() - 1;
        let system = (0..most).find(|_| self.draw.random_bool(0.5)).unwrap_or(most);
        let mut ids = self.systems[system].ids.clone();
        let mut tokens = ids.len() as u32 * self.shape.tokens_per_id;
        let turns = self.draw.random_range(1..=self.shape.most_turns);
        let mut rows = Vec::new();
        for turn in 0..turns {
            tokens += self.length(5.0, 1.0, 8_000);
            let missing = u64::from(tokens.div_ceil(self.shape.tokens_per_id)) - ids.len() as u64;
            ids.extend(self.fresh(missing));
            let output_length = self.length(5.0, 0.8, 2_000);
            rows.push(Row {
                session: (self.shape.most_turns > 1).then(|| format!("session-{number}")),
                start: if turn == 0 { Moment::from_ms(start_ms.round()) } else { None },
                pause: (turn > 0).then(|| Nanos::from_ms(self.length(8.5, 0.7, 60_000).into())),
                input_tokens: Some(tokens),
                output_tokens: Some(output_length),
                ids: ids.clone(),
                ..Row::default()
            });
            // The next turn repeats this one's prompt and answer; a block begun by the answer is new.
            ids.truncate((tokens / self.shape.tokens_per_id) as usize);
            tokens += output_length;
        }
        rows
    }

    /// A log-normal length from 1 to `most`.
    fn length(&mut self, mean_log: f64, deviation_log: f64, most: u32) -> u32 {
        let lengths = LogNormal::new(mean_log, deviation_log).expect("the deviations above are positive");
        let length: f64 = lengths.sample(&mut self.draw);
        (length.round() as u32).clamp(1, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Conversations {
        Conversations {
            requests: 200,
            sessions_per_second: 1.0,
            most_turns: 6,
            system_prompts: 4,
            tokens_per_id: 512,
            seed: 42,
        }
    }

    #[test]
    fn contexts_grow_and_share() {
        let rows = shape().rows();
        assert_eq!(rows.len(), 200);
        for pair in rows.windows(2).filter(|pair| pair[0].session == pair[1].session) {
            assert!(pair[1].input_tokens > pair[0].input_tokens);
            let whole = (pair[0].input_tokens.unwrap() / 512) as usize;
            assert_eq!(pair[0].ids[..whole], pair[1].ids[..whole]);
        }
        let first_ids: std::collections::BTreeSet<u64> = rows.iter().map(|row| row.ids[0]).collect();
        assert_eq!(first_ids.len(), 4, "every session begins with one of the system prompts");
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(shape().rows(), shape().rows());
        assert_ne!(shape().rows(), Conversations { seed: 1, ..shape() }.rows());
    }
}
