//! Simulated users, each with a schedule of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use wavetank_model::Nanos;

use super::Source;
use crate::document::Library;
use crate::plan::{Load, Plan};
use crate::request::{Name, Request};
use crate::user::{Habits, User};

/// The users there are.
pub(super) struct Crowd {
    habits: Habits,
    library: Library,
    seed: u64,
    load: Load,
    /// Everyone who was ever there: who comes back goes on where it was.
    members: Vec<Member>,
    active: u32,
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    talking: Talking,
}

struct Member {
    user: User,
    /// What it asks next; kept while it is away.
    next: Option<Request>,
    /// Whether it waits for an answer.
    waits: bool,
}

impl Crowd {
    pub(super) fn new(plan: &Plan, library: Library, load: Load) -> Self {
        let mut crowd = Self {
            habits: plan.habits.clone(),
            library,
            seed: plan.seed,
            load,
            members: Vec::new(),
            active: 0,
            due: BinaryHeap::new(),
            talking: Talking::default(),
        };
        crowd.resize(plan.users, Nanos::ZERO);
        crowd
    }

    /// The user thinks, then asks.
    fn schedule(&mut self, number: u32) {
        let member = &mut self.members[number as usize];
        if number >= self.active || member.next.is_some() {
            return;
        }
        let request = member.user.next_request(&self.habits, &self.library);
        self.due.push(Reverse((request.at, number)));
        if let Name::Turn { .. } = request.name
            && let Some(quiet) = self.talking.spoke(number, self.habits.conversations_max)
        {
            self.members[quiet as usize].user.hang_up();
        }
        self.members[number as usize].next = Some(request);
    }
}

impl Source for Crowd {
    fn next_at(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    fn take(&mut self) -> Request {
        let Reverse((_, number)) = self.due.pop().expect("a request comes");
        let member = &mut self.members[number as usize];
        let request = member.next.take().expect("it was scheduled");
        member.waits = self.load == Load::Closed;
        if self.load == Load::Open {
            self.schedule(number);
        }
        request
    }

    fn answered(&mut self, request: &Request, at: Nanos) {
        if self.load == Load::Closed {
            let member = &mut self.members[request.user as usize];
            member.waits = false;
            member.user.wait_for(at);
            self.schedule(request.user);
        }
    }

    fn resize(&mut self, users: u32, now: Nanos) {
        let before = std::mem::replace(&mut self.active, users);
        self.due.retain(|Reverse((_, number))| *number < users);
        for number in before..users {
            if number as usize == self.members.len() {
                let user = User::new(number, &self.habits, self.seed, now);
                self.members.push(Member { user, next: None, waits: false });
            }
            let member = &mut self.members[number as usize];
            member.user.wait_for(now);
            match &mut member.next {
                Some(next) => {
                    next.at = next.at.max(now);
                    self.due.push(Reverse((next.at, number)));
                }
                None if member.waits => {}
                None => self.schedule(number),
            }
        }
    }
}

/// Who is in a conversation, by when they spoke last.
#[derive(Default)]
struct Talking {
    spoke: u64,
    by_time: BTreeMap<u64, u32>,
    by_user: BTreeMap<u32, u64>,
}

impl Talking {
    /// `user` spoke. Gives who has been quiet for longest, if there are more than `most` now.
    fn spoke(&mut self, user: u32, most: u32) -> Option<u32> {
        self.spoke += 1;
        if let Some(before) = self.by_user.insert(user, self.spoke) {
            self.by_time.remove(&before);
        }
        self.by_time.insert(self.spoke, user);
        if self.by_user.len() <= most as usize {
            return None;
        }
        let (_, quiet) = self.by_time.pop_first()?;
        self.by_user.remove(&quiet);
        Some(quiet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Documents;

    fn crowd(users: u32, load: Load, habits: Habits) -> Crowd {
        let library = Library::new(&Documents::default(), 1, 1);
        let plan = crate::testing::plan(users);
        Crowd::new(&Plan { habits, ..plan }, library, load)
    }

    fn names(crowd: &mut Crowd, count: usize) -> Vec<String> {
        (0..count).map(|_| crowd.take().name.to_string()).collect()
    }

    #[test]
    fn an_open_crowd_asks_in_order_of_time_whatever_the_answers() {
        let mut crowd = crowd(5, Load::Open, Habits::default());
        let mut before = Nanos::ZERO;
        for _ in 0..500 {
            let at = crowd.next_at().unwrap();
            let request = crowd.take();
            assert!(request.at == at && at >= before);
            before = at;
        }
    }

    #[test]
    fn a_closed_crowd_asks_after_the_answer() {
        let mut crowd = crowd(1, Load::Closed, Habits::default());
        let request = crowd.take();
        assert_eq!(crowd.next_at(), None);
        let answered = request.at + Nanos(5_000_000_000);
        crowd.answered(&request, answered);
        assert!(crowd.next_at().unwrap() > answered);
    }

    #[test]
    fn users_leave_and_come_back_where_they_were() {
        let mut crowd = crowd(3, Load::Open, Habits::default());
        let first = names(&mut crowd, 60);
        let now = crowd.next_at().unwrap();
        crowd.resize(1, now);
        assert!(names(&mut crowd, 20).iter().all(|name| name.contains("user_0000")));
        let later = crowd.next_at().unwrap() + Nanos(1_000_000_000);
        crowd.resize(3, later);
        let back = names(&mut crowd, 60);
        assert!(back.iter().any(|name| name.contains("user_0002")));
        assert!(back.iter().all(|name| !first.contains(name)), "no name is used twice");
    }

    /// Broken by: a user who comes back while its old request is answered, and then asks twice at a time.
    #[test]
    fn a_user_who_comes_back_waits_for_its_old_answer() {
        let mut crowd = crowd(2, Load::Closed, Habits::default());
        let asked = [crowd.take(), crowd.take()];
        let now = asked[1].at + Nanos(1);
        crowd.resize(1, now);
        crowd.resize(2, now);
        assert_eq!(crowd.next_at(), None);
        asked.iter().for_each(|request| crowd.answered(request, now));
        assert_eq!((crowd.take().number, crowd.take().number, crowd.next_at()), (2, 2, None));
    }

    #[test]
    fn too_many_conversations_end_the_quiet_ones() {
        let habits = Habits { conversations_max: 1, end_probability: 0.0, ..Habits::default() };
        let mut few = crowd(3, Load::Open, habits);
        let turns = |names: &[String]| names.iter().filter(|name| !name.ends_with("_turn_1")).count();
        let limited = turns(&names(&mut few, 300));
        let habits = Habits { end_probability: 0.0, ..Habits::default() };
        let all = turns(&names(&mut crowd(3, Load::Open, habits), 300));
        assert!(limited < all / 2, "{limited} of {all}");
    }
}
