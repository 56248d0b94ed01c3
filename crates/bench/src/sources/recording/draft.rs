//! From the requests of a workload to the turns of a recording.

use std::collections::BTreeMap;

use wavetank_model::{Dependencies, Nanos, Opening, Prompt, Request, Result, SessionId, Workload};

use super::{Session, Turn};

/// What was said before a turn: a prompt and the answer to it.
struct Said {
    prompt: Prompt,
    tokens: u32,
}

/// A recording that is being made.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) sessions: Vec<Session>,
    pub(super) turns: Vec<Turn>,
}

impl Draft {
    /// Adds sessions that wait for nobody: each is a conversation.
    pub(super) fn add_sessions(&mut self, workload: &mut dyn Workload) -> Result<()> {
        while let Some(Opening { at, request }) = workload.open()? {
            let first = self.turns.len() as u32;
            self.add_session(workload, request, Nanos::ZERO, None)?;
            self.end(at, first);
        }
        Ok(())
    }

    /// Adds all turns of a session, which goes on from what was said before; tells what was said at its end.
    fn add_session(
        &mut self,
        workload: &mut dyn Workload,
        first: Request,
        mut think: Nanos,
        mut before: Option<Said>,
    ) -> Result<Said> {
        let mut request = first;
        loop {
            let Request { session, turn, output_tokens, think: pause, prompt, .. } = request;
            let whole = prompt.tokens();
            let known = before.as_ref().filter(|before| prompt.extends(&before.prompt));
            let added = known.and_then(|known| whole.checked_sub(known.tokens)).filter(|added| *added > 0);
            let context_tokens = added.unwrap_or(whole);
            self.turns.push(Turn { context_tokens, generate_tokens: output_tokens, think });
            let said = Said { prompt, tokens: whole.saturating_add(output_tokens) };
            let Some(pause) = pause else { return Ok(said) };
            (think, before) = (pause, Some(said));
            request = workload.follow_up(session, turn + 1)?;
        }
    }

    /// The turns from `first` on are a conversation that starts at `at`.
    fn end(&mut self, at: Nanos, first: u32) {
        self.sessions.push(Session { at, first, turns: self.turns.len() as u32 - first });
    }

    /// Adds sessions that wait for others: those that have to do with each other are a conversation.
    pub(super) fn add_graph(&mut self, workload: &mut dyn Workload, graph: &Dependencies) -> Result<()> {
        let mut roots = BTreeMap::new();
        while let Some(opening) = workload.open()? {
            roots.insert(opening.request.session, opening);
        }
        let start = |group: &[SessionId]| {
            let starts = group.iter().filter_map(|session| Some(roots.get(session)?.at));
            starts.min().unwrap_or_default()
        };
        let mut groups: Vec<_> = graph.groups().into_iter().map(|group| (start(&group), group)).collect();
        groups.sort_by_key(|(at, _)| *at);
        for (at, group) in groups {
            let (first, mut ends) = (self.turns.len() as u32, BTreeMap::<SessionId, Vec<Said>>::new());
            for session in group {
                let request = match roots.remove(&session) {
                    Some(root) => root.request,
                    None => workload.follow_up(session, 0)?,
                };
                // Of what it waited for, the longest that it holds.
                let held = ends.remove(&session).unwrap_or_default().into_iter();
                let held = held.filter(|said| request.prompt.extends(&said.prompt));
                let before = held.max_by_key(|said| said.tokens);
                let pause = if graph.is_root(session) { Nanos::ZERO } else { graph.pause(session) };
                let said = self.add_session(workload, request, pause, before)?;
                for waiting in graph.waiting_for(session) {
                    let Said { prompt, tokens } = &said;
                    ends.entry(*waiting).or_default().push(Said { prompt: prompt.clone(), tokens: *tokens });
                }
            }
            self.end(at, first);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wavetank_model::{Priority, Wait};

    use super::*;

    /// A plan, two that go on from it, one that goes on from the second of those; and one alone before them.
    struct Agents(usize);

    const PROMPTS: [(&[u64], u32); 5] =
        [(&[1, 2], 32), (&[1, 2, 3], 48), (&[1, 2, 4, 5], 64), (&[1, 2, 4, 5, 6], 80), (&[9], 16)];

    fn request(session: usize) -> Request {
        let (ids, tokens) = PROMPTS[session];
        Request {
            session: SessionId(session as u32),
            turn: 0,
            prompt: Prompt::from_ids(ids.iter().copied(), tokens, 16),
            output_tokens: 10,
            priority: Priority::default(),
            think: None,
            labels: None,
        }
    }

    impl Workload for Agents {
        fn open(&mut self) -> Result<Option<Opening>> {
            let next = [(4, 3), (0, 7)].get(self.0);
            self.0 += 1;
            Ok(next.map(|&(session, at)| Opening { at: Nanos(at), request: request(session) }))
        }
        fn follow_up(&mut self, session: SessionId, _turn: u32) -> Result<Request> {
            Ok(request(session.index()))
        }
        fn has_follow_ups(&self) -> bool {
            true
        }
        fn requests(&self) -> u64 {
            5
        }
        fn dependencies(&self) -> Option<Arc<Dependencies>> {
            let pairs = [(1, 0), (2, 0), (3, 1), (3, 2)].map(|pair| (SessionId(pair.0), SessionId(pair.1)));
            let waits = pairs.map(|(session, after)| Wait { session, after });
            Some(Arc::new(Dependencies::of((0..5).map(Nanos).collect(), &waits).unwrap()))
        }
    }

    /// Broken by: requests that are left out, an order in which one comes before what it waits for, or a turn
    /// that adds what one it waited for has said.
    #[test]
    fn a_graph_is_a_conversation() {
        let mut draft = Draft::default();
        let mut agents = Agents(0);
        let graph = agents.dependencies().unwrap();
        draft.add_graph(&mut agents, &graph).unwrap();
        let told: Vec<_> = draft.sessions.iter().map(|session| (session.at.0, session.turns)).collect();
        assert_eq!(told, [(3, 1), (7, 4)]);
        let turns: Vec<_> = draft.turns.iter().map(|turn| (turn.context_tokens, turn.think.0)).collect();
        // 48 - 42, 64 - 42 and 80 - 74 tokens are new.
        assert_eq!(turns, [(16, 0), (32, 0), (6, 1), (22, 2), (6, 3)]);
    }
}
