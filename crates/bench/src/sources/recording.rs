//! A recording played to the cache: conversations with their lengths, in the order and at the pace asked for.

mod draft;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rand::seq::SliceRandom;
use wavetank_model::{Nanos, Result, Workload, seeded};

use super::Source;
use crate::document::Library;
use crate::plan::{Arrivals, Feed, Plan, Time};
use crate::request::{Name, Place, Request};
use crate::user::Habits;
use draft::Draft;

/// What a recording is to a cache: lengths of turns, and when conversations start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    sessions: Arc<[Session]>,
    turns: Arc<[Turn]>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Session {
    at: Nanos,
    first: u32,
    turns: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Turn {
    context_tokens: u32,
    generate_tokens: u32,
    /// Between the answer before and this turn.
    think: Nanos,
}

impl Recording {
    /// Reads a workload to its end. The entry of a turn holds what the turn adds to the conversation: the
    /// prompt without the prompt and the answer before it, where it contains them. Sessions that wait for
    /// each other are one conversation, in which all that a turn waits for comes before it.
    pub fn of(workload: &mut dyn Workload) -> Result<Self> {
        let mut draft = Draft::default();
        match workload.dependencies() {
            Some(graph) => draft.add_graph(workload, &graph)?,
            None => draft.add_sessions(workload)?,
        }
        let Draft { sessions, turns } = draft;
        Ok(Self { sessions: sessions.into(), turns: turns.into() })
    }

    /// Conversations that start at once, by the prompt and answer tokens of their turns.
    #[cfg(test)]
    pub(crate) fn from_lengths(conversations: &[&[(u32, u32)]]) -> Self {
        let (mut sessions, mut turns) = (Vec::new(), Vec::new());
        for conversation in conversations {
            let (first, count) = (turns.len() as u32, conversation.len() as u32);
            sessions.push(Session { at: Nanos::ZERO, first, turns: count });
            turns.extend(conversation.iter().map(|&(context_tokens, generate_tokens)| Turn {
                context_tokens,
                generate_tokens,
                think: Nanos::ZERO,
            }));
        }
        Self { sessions: sessions.into(), turns: turns.into() }
    }

    /// How many conversations there are.
    pub fn sessions(&self) -> u64 {
        self.sessions.len() as u64
    }

    /// How many requests there are.
    pub fn requests(&self) -> u64 {
        self.turns.len() as u64
    }

    fn turn(&self, session: u32, turn: u32) -> Turn {
        self.turns[(self.sessions[session as usize].first + turn) as usize]
    }
}

/// A recording that is being played.
pub(super) struct Player {
    recording: Recording,
    habits: Habits,
    library: Library,
    seed: u64,
    arrivals: Arrivals,
    cycles: Option<u64>,
    shuffle: bool,
    users: u32,
    due: BinaryHeap<Reverse<Due>>,
    pass: Pass,
    /// Whether the next conversation is among what is due.
    is_opening: bool,
    /// How many turns were scheduled.
    scheduled: u64,
    /// Users who play now, where a user plays one conversation at a time.
    playing: u32,
    taken: u32,
    /// Between an answer and what follows it, at least.
    pause: Nanos,
}

/// On a virtual clock nothing else may take time, and time has to go on.
const VIRTUAL_PAUSE: Nanos = Nanos(100_000_000);

/// A request to come; ties go by the order they were scheduled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Nanos,
    sequence: u64,
    place: Place,
}

/// One pass over the recording.
#[derive(Default)]
struct Pass {
    cycle: u64,
    order: Vec<u32>,
    next: usize,
    offset: Nanos,
}

impl Player {
    pub(super) fn new(plan: &Plan, library: Library, recording: Recording) -> Self {
        let Feed::Recording { arrivals, cycles, shuffle } = plan.feed else {
            panic!("the plan has a recording");
        };
        let mut player = Self {
            recording,
            habits: plan.habits.clone(),
            library,
            seed: plan.seed,
            arrivals,
            cycles,
            shuffle,
            users: plan.users,
            due: BinaryHeap::new(),
            pass: Pass::default(),
            is_opening: false,
            scheduled: 0,
            playing: 0,
            taken: 0,
            pause: if plan.time == Time::Virtual { VIRTUAL_PAUSE } else { Nanos::ZERO },
        };
        player.pass.order = player.order(0);
        player.begin(Nanos::ZERO);
        player
    }

    fn order(&self, cycle: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.recording.sessions.len() as u32).collect();
        if self.shuffle {
            order.shuffle(&mut seeded(self.seed, &format!("pass {cycle}")));
        }
        order
    }

    /// The next conversation, its pass and when that pass began.
    fn next_session(&mut self) -> Option<(u32, u64, Nanos)> {
        if self.pass.next == self.pass.order.len() {
            let cycle = self.pass.cycle + 1;
            if self.cycles.is_some_and(|cycles| cycle >= cycles) || self.pass.order.is_empty() {
                return None;
            }
            let last = self.recording.sessions.last().map_or(Nanos::ZERO, |session| session.at);
            let offset = self.pass.offset + last;
            self.pass = Pass { cycle, order: self.order(cycle), next: 0, offset };
        }
        let session = self.pass.order[self.pass.next];
        self.pass.next += 1;
        Some((session, self.pass.cycle, self.pass.offset))
    }

    fn push(&mut self, at: Nanos, place: Place) {
        self.due.push(Reverse(Due { at, sequence: self.scheduled, place }));
        self.scheduled += 1;
    }

    /// Makes sure that what comes next is known.
    fn begin(&mut self, now: Nanos) {
        match self.arrivals {
            Arrivals::OnAnswer => {
                while self.playing < self.users {
                    let Some((session, cycle, _)) = self.next_session() else { return };
                    self.playing += 1;
                    self.push(now, Place { session, turn: 0, cycle });
                }
            }
            Arrivals::Every(gap) => {
                while self.due.is_empty() {
                    let Some((session, cycle, _)) = self.next_session() else { return };
                    for turn in 0..self.recording.sessions[session as usize].turns {
                        let at = Nanos(gap.0.saturating_mul(self.scheduled));
                        self.push(at, Place { session, turn, cycle });
                    }
                }
            }
            Arrivals::Recorded { speedup } => {
                if self.is_opening {
                    return;
                }
                let Some((session, cycle, offset)) = self.next_session() else { return };
                let at = (offset + self.recording.sessions[session as usize].at).as_seconds();
                self.is_opening = true;
                self.push(Nanos::from_seconds(at / speedup), Place { session, turn: 0, cycle });
            }
        }
    }
}

impl Source for Player {
    fn next_at(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse(due)| due.at)
    }

    fn take(&mut self) -> Request {
        let Reverse(Due { at, place, .. }) = self.due.pop().expect("a request comes");
        let Place { session, turn, cycle } = place;
        match self.arrivals {
            Arrivals::Recorded { .. } if turn == 0 => {
                self.is_opening = false;
                self.begin(at);
            }
            Arrivals::Every(_) => self.begin(at),
            _ => {}
        }
        self.taken += 1;
        let Turn { context_tokens, generate_tokens, .. } = self.recording.turn(session, turn);
        // A stream of draws for every turn: what is asked does not depend on when it is.
        let mut draw = seeded(self.seed, &format!("turn {cycle} {session} {turn}"));
        let request = Request {
            user: session % self.users.max(1),
            number: self.taken,
            at,
            class: self.habits.classes.draw(&mut draw),
            phase: Habits::phase(context_tokens),
            name: if self.habits.multi_turn {
                // What has times is another request in every pass; a conversation is the same one again.
                let timed = matches!(self.arrivals, Arrivals::Recorded { .. });
                Name::Recorded { session, turn, cycle: if timed { cycle as u32 } else { 0 } }
            } else {
                Name::Single { user: session, number: turn + 1 }
            },
            context_tokens,
            generate_tokens,
            prompt: None,
            chunks: None,
            place: Some(place),
        };
        self.habits.dress(request, &self.library, &mut draw)
    }

    fn answered(&mut self, request: &Request, at: Nanos) {
        let Some(Place { session, turn, cycle }) = request.place else { return };
        if matches!(self.arrivals, Arrivals::Every(_)) {
            return;
        }
        let next = turn + 1;
        if next < self.recording.sessions[session as usize].turns {
            let think = self.recording.turn(session, next).think;
            let think = match self.arrivals {
                Arrivals::Recorded { speedup } => Nanos::from_seconds(think.as_seconds() / speedup),
                _ => think.max(self.pause),
            };
            self.push(at + think, Place { session, turn: next, cycle });
        } else if self.arrivals == Arrivals::OnAnswer {
            self.playing -= 1;
            self.begin(at + self.pause);
        }
    }

    fn resize(&mut self, users: u32, now: Nanos) {
        self.users = users;
        self.begin(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Documents;

    /// Three conversations of 2, 1 and 3 turns.
    fn recording() -> Recording {
        let turn = |context_tokens| Turn { context_tokens, generate_tokens: 10, think: Nanos::ZERO };
        let session = |at, first, turns| Session { at: Nanos(at), first, turns };
        Recording {
            sessions: [session(0, 0, 2), session(5_000, 2, 1), session(9_000, 3, 3)].into(),
            turns: (1..=6).map(|n| turn(n * 100)).collect(),
        }
    }

    fn player(arrivals: Arrivals, cycles: Option<u64>, users: u32) -> Player {
        let feed = Feed::Recording { arrivals, cycles, shuffle: false };
        let habits = Habits { prompt_probability: 0.0, ..Habits::default() };
        let plan = Plan { feed, habits, time: Time::Wall, ..crate::testing::plan(users) };
        Player::new(&plan, Library::new(&Documents::default(), 1, 1), recording())
    }

    fn drain(player: &mut Player) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(at) = player.next_at() {
            let request = player.take();
            all.push(format!("{} {} {}", at.0, request.name, request.context_tokens));
            player.answered(&request, at + Nanos(1));
        }
        all
    }

    #[test]
    fn recorded_times_are_followed_and_passes_follow_each_other() {
        let mut player = player(Arrivals::Recorded { speedup: 2.0 }, Some(2), 4);
        let all = drain(&mut player);
        assert_eq!(all.len(), 12);
        let expected =
            ["0 conv_000000_turn_1 100", "1 conv_000000_turn_2 200", "2500 conv_000001_turn_1 300"];
        assert_eq!(&all[..3], expected);
        assert!(all.iter().any(|line| line == "7000 conv_000001_pass_1_turn_1 300"), "{all:?}");
    }

    #[test]
    fn a_rate_spaces_turns_evenly() {
        let all = drain(&mut player(Arrivals::Every(Nanos(10)), Some(1), 4));
        let times: Vec<&str> = all.iter().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(times, ["0", "10", "20", "30", "40", "50"]);
    }

    #[test]
    fn users_play_a_conversation_each_and_drain() {
        let mut player = player(Arrivals::OnAnswer, Some(1), 2);
        let first = [player.take(), player.take()];
        assert_eq!(
            first.each_ref().map(|request| request.name.to_string()),
            ["conv_000000_turn_1", "conv_000001_turn_1"]
        );
        assert_eq!(player.next_at(), None, "both wait for their answers");
        player.answered(&first[1], Nanos(7));
        assert_eq!(player.take().name.to_string(), "conv_000002_turn_1");
        player.answered(&first[0], Nanos(8));
        assert_eq!(drain(&mut player), ["8 conv_000000_turn_2 200"]);
    }

    /// Broken by: draws from one stream in the order of answers.
    #[test]
    fn what_is_asked_does_not_depend_on_when() {
        let asked = |arrivals| {
            let mut player = player(arrivals, Some(1), 3);
            let mut all = Vec::new();
            while player.next_at().is_some() {
                let request = player.take();
                player.answered(&request, request.at);
                all.push((request.name, request.class, request.context_tokens));
            }
            all.sort_by_key(|(name, ..)| *name);
            all
        };
        assert_eq!(asked(Arrivals::OnAnswer), asked(Arrivals::Every(Nanos(1))));
    }
}
