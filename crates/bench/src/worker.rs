//! A worker on one request: which entry it touches next, from how the last one went.
//!
//! The order is the reference's (spec/kv-bench.md 7): shared prompt, history, prefill, documents, decode,
//! generation. Unlike there, a shared prompt that is not in the cache is written, so that the next request
//! hits it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use wavetank_model::{Nanos, Why};

use crate::request::{Name, Phase, Request};

/// What a worker does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Reads an entry.
    Read {
        /// Which.
        name: Name,
        /// Why.
        why: Why,
    },
    /// Writes an entry.
    Write {
        /// Which.
        name: Name,
        /// How many tokens it holds.
        tokens: u32,
        /// Why.
        why: Why,
    },
    /// Generates tokens, which takes time and touches nothing.
    Generate(u32),
}

/// How often generating reads an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Once, and once more for every so many generated tokens, as the reference.
    PerBatch(u32),
    /// Once.
    Once,
}

/// Which parts of a request this machine does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// All of it.
    #[default]
    Both,
    /// It computes prompts; another one generates.
    Prefill,
    /// It generates from prompts that another one computed.
    Decode,
}

/// A worker on one request.
#[derive(Debug)]
pub struct Worker {
    acts: VecDeque<Act>,
    tokens: u32,
    prompt_tokens: u32,
    further_reads: u32,
    /// Whether a missing entry of its own may still be computed, which it is once.
    computes: bool,
    role: Role,
}

impl Worker {
    /// Begins with a request.
    pub fn new(request: &Request, reads: Reads, role: Role) -> Self {
        let mut acts = VecDeque::new();
        if let Some(prompt) = request.prompt {
            acts.push_back(Act::Read { name: Name::Prompt(prompt.number), why: Why::Prompt });
        }
        if role != Role::Decode {
            acts.extend(request.history().map(|name| Act::Read { name, why: Why::History }));
        }
        let (name, tokens) = (request.name, request.context_tokens);
        if request.phase != Phase::Decode && role != Role::Decode {
            acts.push_back(Act::Write { name, tokens, why: Why::Prefill });
        }
        if let Some((document, chunks)) = &request.chunks {
            let read = |chunk| Name::Chunk { document: *document, chunk };
            acts.extend(chunks.clone().map(|chunk| Act::Read { name: read(chunk), why: Why::Document }));
        }
        if request.phase != Phase::Prefill && role != Role::Prefill {
            acts.push_back(Act::Read { name, why: Why::Decode });
        }
        acts.push_back(Act::Generate(request.generate_tokens));
        let further_reads = match reads {
            Reads::PerBatch(batch) => request.generate_tokens.div_ceil(batch.max(1)).max(1),
            Reads::Once => 0,
        };
        let prompt_tokens = request.prompt.map_or(0, |prompt| prompt.tokens);
        Self { acts, tokens, prompt_tokens, further_reads, computes: role != Role::Decode, role }
    }

    /// What to do now; `None` when the request is done.
    pub(crate) fn next_act(&mut self) -> Option<Act> {
        self.acts.pop_front()
    }

    /// The entry read last was there, or was not. What follows from it comes next.
    pub(crate) fn was_read(&mut self, name: Name, why: Why, hit: bool) {
        match (why, hit) {
            (Why::Prompt, false) if self.role != Role::Decode => {
                self.acts.push_front(Act::Write { name, tokens: self.prompt_tokens, why });
            }
            (Why::Decode, true) => {
                for _ in 0..std::mem::take(&mut self.further_reads) {
                    self.acts.push_front(Act::Read { name, why });
                }
            }
            (Why::Decode, false) if std::mem::take(&mut self.computes) => {
                self.further_reads = 0;
                self.acts.push_front(Act::Write { name, tokens: self.tokens, why });
            }
            _ => {}
        }
    }
}

/// How long generating takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace(pub Nanos);

impl Pace {
    /// The time for `tokens` tokens.
    pub fn time(self, tokens: u32) -> Nanos {
        Nanos(self.0.0 * u64::from(tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetank_model::Class;

    use crate::request::SharedPrompt;

    fn request(turn: u32, prompt: Option<u8>) -> Request {
        let prompt = prompt.map(|number| SharedPrompt { number, tokens: 50 });
        Request {
            user: 1,
            number: turn,
            at: Nanos::ZERO,
            class: Class::Batch,
            phase: Phase::PrefillDecode,
            name: Name::Turn { user: 1, conversation: 1, turn },
            context_tokens: 100,
            generate_tokens: 70,
            prompt,
            chunks: None,
            place: None,
        }
    }

    /// Runs a worker against a cache that has what was written and what is in `there`.
    fn run(request: &Request, reads: Reads, role: Role, there: &[Name]) -> Vec<String> {
        let mut worker = Worker::new(request, reads, role);
        let mut cache = there.to_vec();
        let mut log = Vec::new();
        while let Some(act) = worker.next_act() {
            match act {
                Act::Read { name, why } => {
                    let hit = cache.contains(&name);
                    log.push(format!("{} {name} for {why:?}", if hit { "hit" } else { "miss" }));
                    worker.was_read(name, why, hit);
                }
                Act::Write { name, tokens, why } => {
                    cache.push(name);
                    log.push(format!("write {name} {tokens} for {why:?}"));
                }
                Act::Generate(tokens) => log.push(format!("generate {tokens}")),
            }
        }
        log
    }

    #[test]
    fn a_second_turn_reads_its_history_and_itself_per_batch() {
        let first = Name::Turn { user: 1, conversation: 1, turn: 1 };
        let log = run(&request(2, Some(1)), Reads::PerBatch(32), Role::Both, &[first]);
        let own = "conv_user_0001_000001_turn_2";
        let expected = [
            "miss kv_system_1 for Prompt".to_owned(),
            "write kv_system_1 50 for Prompt".to_owned(),
            "hit conv_user_0001_000001_turn_1 for History".to_owned(),
            format!("write {own} 100 for Prefill"),
            format!("hit {own} for Decode"),
            format!("hit {own} for Decode"),
            format!("hit {own} for Decode"),
            format!("hit {own} for Decode"),
            "generate 70".to_owned(),
        ];
        assert_eq!(log, expected, "70 tokens are three batches of 32: one read and three more");
    }

    #[test]
    fn roles_and_reading_once_leave_things_out() {
        let request = request(1, None);
        let own = "conv_user_0001_000001_turn_1";
        let write = format!("write {own} 100 for Prefill");
        assert_eq!(run(&request, Reads::Once, Role::Both, &[]).len(), 3);
        assert_eq!(run(&request, Reads::Once, Role::Prefill, &[]), [write, "generate 70".to_owned()]);
        let misses = run(&request, Reads::PerBatch(32), Role::Decode, &[]);
        assert_eq!(misses, [format!("miss {own} for Decode"), "generate 70".to_owned()]);
    }

    #[test]
    fn what_is_gone_by_the_time_it_is_needed_is_computed_again() {
        let mut request = request(1, None);
        request.phase = Phase::Decode;
        let own = "conv_user_0001_000001_turn_1";
        let expected = [
            format!("miss {own} for Decode"),
            format!("write {own} 100 for Decode"),
            "generate 70".to_owned(),
        ];
        assert_eq!(run(&request, Reads::PerBatch(32), Role::Both, &[]), expected);
    }
}
