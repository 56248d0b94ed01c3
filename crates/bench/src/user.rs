//! A simulated user: a stream of requests that depends on the seed and the user's number alone.
//!
//! The rules are those of the reference (spec/kv-bench.md 5): lengths and think time are drawn once per user,
//! each request varies them; users ask on their own schedule and never wait for answers. Unlike there, every
//! user has a generator of its own and conversations are counted, so that no timing changes what is asked.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use wavetank_model::{Class, Draw, Nanos, seeded};

use crate::class::ClassShare;
use crate::document::{Documents, Library};
use crate::persona::{Mix, Persona, Template};
use crate::prompt::PROMPTS;
use crate::request::{Name, Phase, Request, SharedPrompt};

/// A prompt from here on is only prefilled: its answer comes later, from another worker.
const PREFILL_ONLY_TOKENS: u32 = 10_000;

/// Nobody asks faster than this, whatever the configuration says: time has to go on.
const SHORTEST_PAUSE_S: f64 = 0.001;
/// Tokens of entries that nobody asked for, as in the reference.
pub const UNASKED_TOKENS: u32 = 2048;

/// What all users have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Habits {
    /// How many users there are of each persona.
    pub mix: Mix,
    /// What is drawn for each persona, in the order of [`Persona::ALL`].
    pub templates: [Template; 3],
    /// How users fall into classes.
    pub classes: ClassShare,
    /// Whether requests follow on each other.
    pub multi_turn: bool,
    /// The chance that a conversation ends before its next turn.
    pub end_probability: f64,
    /// The longest conversation.
    pub turns_max: u32,
    /// The chance that a request begins with a shared prompt; zero without prefix caching.
    pub prompt_probability: f64,
    /// A shared prompt takes at least this many tokens: what is around its words in a chat template.
    pub prompt_tokens_min: u32,
    /// How many shared prompts are kept at most; the others are part of the request's own entry.
    pub prompts_max: u32,
    /// How many conversations go on at a time at most; the one that was quiet for longest ends.
    pub conversations_max: u32,
    /// Entries that are there from the start, one of which each request generates from; none normally.
    pub prepared: u32,
    /// Documents to retrieve from.
    pub documents: Documents,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            mix: Mix::default(),
            templates: Persona::ALL.map(Persona::template),
            classes: ClassShare::default(),
            multi_turn: true,
            end_probability: 0.2,
            turns_max: 50,
            prompt_probability: 0.2,
            prompt_tokens_min: 50,
            prompts_max: 1000,
            conversations_max: 1000,
            prepared: 0,
            documents: Documents::default(),
        }
    }
}

impl Habits {
    /// Adds to a request what any request may have: a shared prompt, chunks of a document, an entry that is
    /// there already.
    pub(crate) fn dress(&self, mut request: Request, library: &Library, draw: &mut Draw) -> Request {
        let prompted = draw.random_bool(self.prompt_probability);
        let number = prompted.then(|| draw.random_range(0..PROMPTS.len()));
        let prompt = number.and_then(|number| self.shared_prompt(number));
        // A request that is shorter than the prompt does not begin with it.
        let prompt = prompt.filter(|prompt| prompt.tokens < request.context_tokens);
        let retrieves = !library.is_empty() && draw.random_bool(self.documents.request_probability);
        request.chunks = retrieves.then(|| library.retrieve(self.documents.top_k, draw));
        let shared = prompt.map_or(0, |prompt| prompt.tokens);
        request.context_tokens -= shared;
        request.prompt = prompt;
        if self.prepared > 0 {
            request.name = Name::Prepared(draw.random_range(0..self.prepared));
            request.phase = Phase::Decode;
            request.context_tokens = UNASKED_TOKENS;
        }
        request
    }

    /// Shared prompt `number`, if so many are kept.
    pub(crate) fn shared_prompt(&self, number: usize) -> Option<SharedPrompt> {
        let tokens = PROMPTS[number].words.max(self.prompt_tokens_min);
        let kept = (number as u32) < self.prompts_max;
        kept.then_some(SharedPrompt { number: number as u8, tokens })
    }

    /// What a prompt of this many tokens does on this machine.
    pub(crate) fn phase(context_tokens: u32) -> Phase {
        if context_tokens < PREFILL_ONLY_TOKENS { Phase::PrefillDecode } else { Phase::Prefill }
    }
}

/// One user.
#[derive(Clone, Debug)]
pub struct User {
    number: u32,
    /// Its kind.
    pub persona: Persona,
    /// How urgent its requests are.
    pub class: Class,
    context_tokens: u32,
    generate_tokens: u32,
    think_seconds: f64,
    clock: Nanos,
    requests: u32,
    conversations: u32,
    /// The last turn of the conversation it is in; zero outside of one.
    turn: u32,
    draw: Draw,
}

impl User {
    /// User `number` of the run with `seed`, who begins at `start`.
    pub fn new(number: u32, habits: &Habits, seed: u64, start: Nanos) -> Self {
        let mut draw = seeded(seed, &format!("user {number}"));
        let persona = habits.mix.draw(&mut draw);
        let class = habits.classes.draw(&mut draw);
        let Template { context_range, generation_range, think_time_range } =
            habits.templates[persona as usize];
        let [low, high] = think_time_range;
        Self {
            number,
            persona,
            class,
            context_tokens: draw.random_range(context_range[0]..=context_range[1]),
            generate_tokens: draw.random_range(generation_range[0]..=generation_range[1]),
            think_seconds: draw.random_range(low..=high),
            clock: start,
            requests: 0,
            conversations: 0,
            turn: 0,
            draw,
        }
    }

    /// Its next request.
    pub(crate) fn next_request(&mut self, habits: &Habits, library: &Library) -> Request {
        let pause = self.think_seconds * self.draw.random_range(0.8..=1.2);
        self.clock += Nanos::from_seconds(pause.max(SHORTEST_PAUSE_S));
        self.requests += 1;
        let name = self.next_name(habits);
        let context_tokens = self.vary(self.context_tokens);
        let generate_tokens = self.vary(self.generate_tokens);
        let request = Request {
            user: self.number,
            number: self.requests,
            at: self.clock,
            class: self.class,
            phase: Habits::phase(context_tokens),
            name,
            context_tokens,
            generate_tokens,
            prompt: None,
            chunks: None,
            place: None,
        };
        habits.dress(request, library, &mut self.draw)
    }

    /// It asks no earlier than after `at`, as one does who waits for an answer, or comes back.
    pub fn wait_for(&mut self, at: Nanos) {
        self.clock = self.clock.max(at);
    }

    /// Ends its conversation: the next request begins another.
    pub fn hang_up(&mut self) {
        self.turn = 0;
    }

    fn next_name(&mut self, habits: &Habits) -> Name {
        if !habits.multi_turn {
            return Name::Single { user: self.number, number: self.requests };
        }
        let ends = self.turn > 0 && self.draw.random_bool(habits.end_probability);
        if self.turn == 0 || ends || self.turn >= habits.turns_max {
            self.conversations += 1;
            self.turn = 0;
        }
        self.turn += 1;
        Name::Turn { user: self.number, conversation: self.conversations, turn: self.turn }
    }

    /// A quarter of the user's length to all of it.
    fn vary(&mut self, most: u32) -> u32 {
        let most = most.max(1);
        self.draw.random_range((most / 4).max(1)..=most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn first(number: u32, seed: u64, habits: &Habits, count: usize) -> Vec<Request> {
        let library = Library::new(&habits.documents, 24_576, seed);
        let mut user = User::new(number, habits, seed, Nanos::ZERO);
        (0..count).map(|_| user.next_request(habits, &library)).collect()
    }

    #[test]
    fn a_user_reads_like_this() {
        let requests = first(7, 42, &Habits::default(), 6);
        let line = |request: &Request| {
            let Request { at, context_tokens, generate_tokens, prompt, .. } = request;
            let history = request.history().count();
            let prompt = prompt.map_or("-".to_owned(), |prompt| format!("prompt {}", prompt.number));
            format!("{at} {} {context_tokens} {generate_tokens} {prompt} after {history}", request.name)
        };
        insta::assert_snapshot!(requests.iter().map(line).collect::<Vec<_>>().join("\n"));
    }

    proptest! {
        /// Broken by: one generator for all users, or a draw that depends on what others did.
        #[test]
        fn requests_follow_the_rules(seed: u64, number in 0u32..1000, documents in 0u32..5) {
            let library = Documents { count: documents, ..Documents::default() };
            let habits = Habits { documents: library, ..Habits::default() };
            let requests = first(number, seed, &habits, 120);
            prop_assert_eq!(&requests, &first(number, seed, &habits, 120));
            let template = habits.templates[User::new(number, &habits, seed, Nanos::ZERO).persona as usize];
            for pair in requests.windows(2) {
                prop_assert!(pair[0].at < pair[1].at);
                let follows = pair[1].history().last() == Some(pair[0].name);
                let begins = matches!(pair[1].name, Name::Turn { turn: 1, .. });
                prop_assert!(follows != begins, "a turn follows the one before, or begins a conversation");
            }
            for request in &requests {
                let (context, generated) = (request.context_tokens, request.generate_tokens);
                prop_assert!(context >= 1 && context <= template.context_range[1]);
                prop_assert!(generated >= 1 && generated <= template.generation_range[1]);
                prop_assert!(documents > 0 || request.chunks.is_none());
                prop_assert!(request.history().count() < habits.turns_max as usize);
            }
        }
    }

    #[test]
    fn conversations_end_as_often_as_they_should() {
        let requests = first(1, 3, &Habits::default(), 20_000);
        let begun =
            requests.iter().filter(|request| matches!(request.name, Name::Turn { turn: 1, .. })).count();
        assert!((begun as f64 / 20_000.0 - 0.2).abs() < 0.01, "{begun}");
        let prompts = requests.iter().filter(|request| request.prompt.is_some()).count();
        assert!((prompts as f64 / 20_000.0 - 0.2).abs() < 0.01, "{prompts}");
    }
}
