//! Prompts that hold all that was said before in their session, answers as they were given included.

use std::collections::BTreeMap;

use wavetank_model::{Prompt, SessionId};

/// Where answers are missing from what was said, by session; few sessions are here.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps(BTreeMap<SessionId, Vec<Gap>>);

/// An answer that was not given.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// How much had been said by then.
    at: u32,
    /// The tokens of the answer.
    tokens: u32,
}

impl Gaps {
    /// What follows a prompt of `prompt_tokens`, were all answers given, is not the answer of `tokens`.
    pub(super) fn note(&mut self, session: SessionId, prompt_tokens: u32, tokens: u32) {
        let at = prompt_tokens - self.missing(session);
        self.0.entry(session).or_default().push(Gap { at, tokens });
    }

    /// How many tokens fewer were said than if all answers had been given.
    fn missing(&self, session: SessionId) -> u32 {
        self.0.get(&session).map_or(0, |gaps| gaps.iter().map(|gap| gap.tokens).sum())
    }

    /// The prompt of a session that began with `first` and would have `tokens`, were all answers given.
    pub(super) fn prompt(&self, session: SessionId, first: Prompt, tokens: u32) -> Prompt {
        let gaps = self.0.get(&session).map_or(&[][..], |gaps| gaps);
        // What is said where an answer is missing differs from the answer, of which a part may be cached.
        let said = (1..)
            .zip(gaps)
            .fold(first, |prompt, (number, gap)| prompt.lengthened(gap.at).continued(seed(session, number)));
        said.lengthened(tokens - self.missing(session))
    }
}

/// What only a session has after its first prompt, another one after every answer that is missing.
pub(super) fn seed(session: SessionId, missing_answers: u64) -> u64 {
    missing_answers << 32 | u64::from(session.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a gap counted from where the prompt would be if earlier answers had been given.
    #[test]
    fn answers_that_were_not_given_are_not_there() {
        let (session, other) = (SessionId(3), SessionId(4));
        let first = || Prompt::from_ids([1, 2], 20, 16).continued(seed(session, 0));
        let mut gaps = Gaps::default();
        assert_eq!(gaps.prompt(session, first(), 50).tokens(), 50);
        // Turns of 20, 5 and 7 tokens with answers of 10, 15 and 3: the first two are not given.
        gaps.note(session, 20, 10);
        let second = gaps.prompt(session, first(), 35);
        assert_eq!(second.tokens(), 25);
        gaps.note(session, 35, 15);
        let third = gaps.prompt(session, first(), 57);
        assert_eq!(third.tokens(), 32);
        assert!(third.extends(&second) && second.extends(&first()));
        assert_eq!(gaps.prompt(other, first(), 57).tokens(), 57);
    }
}
