//! Which sessions wait for which others to end: a graph that a run counts down and never changes.

use crate::{Nanos, SessionId};

/// The graph. Sessions are numbered by their position; none waits for itself, by whatever way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependencies {
    /// How many sessions each one waits for.
    requirements: Box<[u32]>,
    /// Between the end of the last of them and the start of the session.
    pauses: Box<[Nanos]>,
    /// Where the sessions that wait for each one begin in `waiting`; one more than there are sessions.
    first: Box<[u32]>,
    waiting: Box<[SessionId]>,
}

/// That `session` starts after `after` has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who waits.
    pub session: SessionId,
    /// For whom.
    pub after: SessionId,
}

/// Sessions that wait for each other: each for the next, the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(pub Vec<SessionId>);

impl Dependencies {
    /// The graph of as many sessions as there are `pauses`, in which `waits` hold.
    ///
    /// # Panics
    /// When a wait names a session that there is not: whoever knows the names checks them.
    pub fn of(pauses: Vec<Nanos>, waits: &[Wait]) -> Result<Self, Cycle> {
        let sessions = pauses.len();
        let (mut requirements, mut first) = (vec![0_u32; sessions], vec![0_u32; sessions + 1]);
        for &Wait { session, after } in waits {
            requirements[session.index()] += 1;
            first[after.index() + 1] += 1;
        }
        for session in 0..sessions {
            first[session + 1] += first[session];
        }
        let mut next = first.clone();
        let mut waiting = vec![SessionId(0); waits.len()];
        for &Wait { session, after } in waits {
            let place = &mut next[after.index()];
            waiting[*place as usize] = session;
            *place += 1;
        }
        let (requirements, pauses) = (requirements.into(), pauses.into());
        let graph = Self { requirements, pauses, first: first.into(), waiting: waiting.into() };
        match graph.order().len() == sessions {
            true => Ok(graph),
            false => Err(graph.cycle(waits)),
        }
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.requirements.len()
    }

    /// How many sessions each one waits for, to be counted down.
    pub fn requirements(&self) -> &[u32] {
        &self.requirements
    }

    /// Whether `session` starts on its own.
    pub fn is_root(&self, session: SessionId) -> bool {
        self.requirements[session.index()] == 0
    }

    /// How long after the end of the last one it waits for `session` starts.
    pub fn pause(&self, session: SessionId) -> Nanos {
        self.pauses[session.index()]
    }

    /// Who waits for `session`; one that says so twice is there twice.
    pub fn waiting_for(&self, session: SessionId) -> &[SessionId] {
        let [start, end] = [0, 1].map(|next| self.first[session.index() + next] as usize);
        &self.waiting[start..end]
    }

    /// Sessions with all they wait for before them; shorter where sessions wait for each other.
    fn order(&self) -> Vec<SessionId> {
        let mut left = self.requirements.to_vec();
        let sessions = (0..self.sessions() as u32).map(SessionId);
        let mut order: Vec<SessionId> = sessions.filter(|&session| self.is_root(session)).collect();
        let mut at = 0;
        while let Some(&session) = order.get(at) {
            at += 1;
            for &waiting in self.waiting_for(session) {
                left[waiting.index()] -= 1;
                if left[waiting.index()] == 0 {
                    order.push(waiting);
                }
            }
        }
        order
    }

    /// Groups of sessions that have to do with each other, each in an order in which all that a session waits
    /// for comes before it; groups in the order of their first session.
    pub fn groups(&self) -> Vec<Vec<SessionId>> {
        let mut group: Vec<u32> = (0..self.sessions() as u32).collect();
        for session in (0..self.sessions() as u32).map(SessionId) {
            for &waiting in self.waiting_for(session) {
                let (one, other) =
                    (representative(&mut group, session.0), representative(&mut group, waiting.0));
                group[one.max(other) as usize] = one.min(other);
            }
        }
        let mut members = vec![Vec::new(); self.sessions()];
        for session in self.order() {
            members[representative(&mut group, session.0) as usize].push(session);
        }
        members.retain(|members| !members.is_empty());
        members
    }

    /// Sessions that wait for each other, where there are such.
    fn cycle(&self, waits: &[Wait]) -> Cycle {
        let mut is_stuck = vec![true; self.sessions()];
        for session in self.order() {
            is_stuck[session.index()] = false;
        }
        let mut after = vec![None; self.sessions()];
        for wait in waits.iter().filter(|wait| is_stuck[wait.after.index()]) {
            after[wait.session.index()].get_or_insert(wait.after);
        }
        let first = is_stuck.iter().position(|stuck| *stuck).expect("some session is never reached");
        let (mut path, mut place) = (Vec::new(), vec![None; self.sessions()]);
        let mut session = SessionId(first as u32);
        while place[session.index()].is_none() {
            place[session.index()] = Some(path.len());
            path.push(session);
            session = after[session.index()].expect("who is stuck waits for one that is");
        }
        Cycle(path.split_off(place[session.index()].expect("it was met before")))
    }
}

/// The lowest session known to be in the same group; the way there gets shorter each time.
fn representative(group: &mut [u32], session: u32) -> u32 {
    let mut at = session;
    while group[at as usize] != at {
        group[at as usize] = group[group[at as usize] as usize];
        at = group[at as usize];
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pairs: &[(u32, u32)]) -> Vec<Wait> {
        pairs.iter().map(|&(s, a)| Wait { session: SessionId(s), after: SessionId(a) }).collect()
    }

    fn graph(sessions: usize, pairs: &[(u32, u32)]) -> Result<Dependencies, Cycle> {
        Dependencies::of(vec![Nanos::ZERO; sessions], &waits(pairs))
    }

    #[test]
    fn who_waits_for_whom_is_known_from_both_sides() {
        let graph = graph(5, &[(1, 0), (2, 0), (3, 1), (3, 2), (3, 2)]).unwrap();
        assert_eq!(graph.requirements(), [0, 1, 1, 3, 0]);
        assert_eq!(graph.waiting_for(SessionId(0)), [SessionId(1), SessionId(2)]);
        assert_eq!(graph.waiting_for(SessionId(2)), [SessionId(3), SessionId(3)]);
        assert_eq!(graph.waiting_for(SessionId(3)), []);
    }

    /// Broken by: a search that stops at a session which only waits behind a cycle.
    #[test]
    fn a_cycle_is_named_by_its_members() {
        let cycle = |sessions, pairs: &[(u32, u32)]| graph(sessions, pairs).unwrap_err().0;
        assert_eq!(cycle(1, &[(0, 0)]), [SessionId(0)]);
        assert_eq!(cycle(4, &[(0, 3), (1, 2), (2, 3), (3, 1)]), [SessionId(3), SessionId(1), SessionId(2)]);
    }

    #[test]
    fn groups_are_in_an_order_that_can_be_played() {
        let graph = graph(6, &[(0, 4), (4, 2), (2, 5), (3, 1)]).unwrap();
        let groups: Vec<Vec<u32>> =
            graph.groups().iter().map(|group| group.iter().map(|session| session.0).collect()).collect();
        assert_eq!(groups, [vec![5, 2, 4, 0], vec![1, 3]]);
    }
}
