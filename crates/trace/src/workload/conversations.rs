//! Conversations as lengths: 8 bytes per turn. Every turn sends all that was said before and a new text.

use wavetank_model::{Error, Labels, Nanos, Opening, Priority, Prompt, Request, Result, SessionId, Workload};

/// Tokens that one id of a prompt stands for.
///
/// An id names a stretch of its conversation, of which a prompt may hold only the beginning: every prompt
/// begins as the conversation does, so equal ids mean equal tokens as far as both prompts reach.
const TOKENS_PER_ID: u32 = 16;

/// What was asked and what was answered, in tokens; neither is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The new text of the turn.
    pub asked_tokens: u32,
    /// The answer to it.
    pub answered_tokens: u32,
}

/// A workload of conversations that all may start at once.
#[derive(Debug, Default)]
pub struct Conversations {
    exchanges: Vec<Exchange>,
    /// Where each conversation ends in `exchanges`.
    ends: Vec<u32>,
    /// Empty when names are not kept.
    names: Vec<Box<str>>,
    opened: u32,
}

impl Conversations {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The turns of each conversation, in the order of the trace.
    pub fn iter(&self) -> impl Iterator<Item = &[Exchange]> {
        (0..self.len()).map(|conversation| self.turns(conversation))
    }

    /// The name of a conversation, where names are kept.
    pub fn name(&self, conversation: usize) -> Option<&str> {
        self.names.get(conversation).map(AsRef::as_ref)
    }

    /// The same without names.
    pub(crate) fn without_names(mut self) -> Self {
        self.names = Vec::new();
        self
    }

    /// Adds a conversation of at least one turn.
    pub(crate) fn push(&mut self, exchanges: &[Exchange], name: Option<String>) -> Result<()> {
        let tokens: u64 =
            exchanges.iter().map(|e| u64::from(e.asked_tokens) + u64::from(e.answered_tokens)).sum();
        let end = u32::try_from(self.exchanges.len() + exchanges.len());
        let (Ok(end), Ok(_)) = (end, u32::try_from(tokens)) else {
            return Err(Error::input("more than 2^32 tokens in a conversation, or turns in all")
                .hint("keep fewer conversations, or cut their texts"));
        };
        self.exchanges.extend_from_slice(exchanges);
        self.ends.push(end);
        self.names.extend(name.map(String::into_boxed_str));
        Ok(())
    }

    fn turns(&self, conversation: usize) -> &[Exchange] {
        let start = conversation.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.exchanges[start as usize..self.ends[conversation] as usize]
    }

    fn request(&self, session: SessionId, turn: u32) -> Request {
        let turns = self.turns(session.index());
        let (before, Exchange { asked_tokens, answered_tokens }) =
            (&turns[..turn as usize], turns[turn as usize]);
        let history: u32 = before.iter().map(|e| e.asked_tokens + e.answered_tokens).sum();
        let ids = (0..).map(|block: u64| u64::from(session.0) << 32 | block);
        Request {
            session,
            turn,
            prompt: Prompt::from_ids(ids, history + asked_tokens, TOKENS_PER_ID),
            output_tokens: answered_tokens,
            priority: Priority::default(),
            think: (turn as usize + 1 < turns.len()).then_some(Nanos::ZERO),
            labels: self.name(session.index()).map(|name| {
                let session = name.to_owned();
                Box::new(Labels { session, request: None })
            }),
        }
    }
}

impl Workload for Conversations {
    fn open(&mut self) -> Result<Option<Opening>> {
        if self.opened as usize == self.len() {
            return Ok(None);
        }
        let session = SessionId(self.opened);
        self.opened += 1;
        Ok(Some(Opening { at: Nanos::ZERO, request: self.request(session, 0) }))
    }

    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        Ok(self.request(session, turn))
    }

    fn has_follow_ups(&self) -> bool {
        self.exchanges.len() > self.len()
    }

    fn requests(&self) -> u64 {
        self.exchanges.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(conversations: &[&[(u32, u32)]]) -> Conversations {
        let mut all = Conversations::default();
        for turns in conversations {
            let exchange = |&(asked_tokens, answered_tokens)| Exchange { asked_tokens, answered_tokens };
            all.push(&turns.iter().map(exchange).collect::<Vec<_>>(), None).unwrap();
        }
        all
    }

    /// Blocks of `size` tokens that two requests share.
    fn shared(a: &Request, b: &Request, size: u32) -> usize {
        a.prompt.keys_from(0, size).zip(b.prompt.keys_from(0, size)).take_while(|(x, y)| x == y).count()
    }

    #[test]
    fn a_turn_sends_all_that_was_said_before() {
        // Turn 1 sends 37 tokens and gets 30, so turn 2 sends 37 + 30 + 50 and turn 3 117 + 9 + 1.
        let all = of(&[&[(37, 30), (50, 9), (1, 1)], &[(200, 1)]]);
        let turns: Vec<Request> = (0..3).map(|turn| all.request(SessionId(0), turn)).collect();
        let lengths: Vec<_> = turns.iter().map(|r| (r.prompt.tokens(), r.output_tokens)).collect();
        assert_eq!(lengths, [(37, 30), (117, 9), (127, 1)]);
        let pauses: Vec<_> = turns.iter().map(|r| r.think).collect();
        assert_eq!(pauses, [Some(Nanos::ZERO), Some(Nanos::ZERO), None]);
        // Of the 67 tokens of turn 1's prompt and answer, 4 blocks of 16 are full; turn 2 begins with them,
        // and turn 3 with the 7 full blocks of turn 2's prompt.
        assert_eq!(shared(&turns[0], &turns[1], 16), 2, "turn 1's own prompt fills 2");
        assert_eq!(shared(&turns[1], &turns[2], 16), 7);
        let said: Vec<_> = turns[2].prompt.keys_from(0, 16).take(67 / 16).collect();
        assert!(turns[1].prompt.keys_from(0, 16).take(4).eq(said), "4 blocks hold what turn 1 left");
        // The part of a block that a prompt holds is the beginning of the block when it is full.
        assert_eq!(shared(&turns[0], &turns[1], 4), 9);
        assert_eq!(shared(&turns[0], &turns[1], 37), 1);
        assert_eq!(shared(&turns[1], &all.request(SessionId(1), 0), 1), 0, "another conversation");
    }

    #[test]
    fn sessions_open_in_order_at_zero() {
        let mut all = of(&[&[(1, 1)], &[(2, 1), (1, 1)]]);
        assert!(all.has_follow_ups());
        assert_eq!(all.requests(), 3);
        for (number, tokens) in [(0, 1), (1, 2)] {
            let opening = all.open().unwrap().unwrap();
            assert_eq!((opening.at, opening.request.session.0), (Nanos::ZERO, number));
            assert_eq!(opening.request.prompt.tokens(), tokens);
        }
        assert!(all.open().unwrap().is_none());
        assert!(!of(&[&[(1, 1)], &[(2, 1)]]).has_follow_ups());
        assert_eq!(all.iter().map(<[_]>::len).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_conversation_beyond_the_counters_is_refused() {
        let half = Exchange { asked_tokens: 1 << 31, answered_tokens: 1 };
        assert!(Conversations::default().push(&[half], None).is_ok());
        assert!(Conversations::default().push(&[half, half], None).is_err());
    }
}
