//! Sessions of equal turns whose prompts share their group's prefix (spec/replay.md 3, shape B).
//!
//! As in the reference, turns of a session do not extend each other: every turn has a fresh suffix, only the
//! group's prefix repeats.

use rand::RngExt;
use wavetank_model::{Nanos, Opening, Priority, Prompt, Request, Result, SessionId, Workload, seeded};

use super::Synthetic;
use super::arrival::Times;

/// What the load does not say itself.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    pub(super) block_size: u32,
    pub(super) speedup: f64,
    pub(super) seed: u64,
}

/// The workload; it holds one group number per session.
pub(super) struct Sessions {
    load: Synthetic,
    setting: Setting,
    times: Times,
    groups: Vec<u32>,
    blocks: u32,
    shared: u32,
    opened: u32,
}

impl Sessions {
    pub(super) fn of(load: &Synthetic, setting: Setting) -> Self {
        let blocks = load.input_tokens.div_ceil(setting.block_size);
        let sharing = load.num_prefix_groups > 0 && load.shared_prefix_ratio > 0.0;
        let shared = if sharing { (f64::from(blocks) * load.shared_prefix_ratio).round() as u32 } else { 0 };
        let mut draw = seeded(setting.seed, "prefix groups");
        let mut group = || if sharing { draw.random_range(0..load.num_prefix_groups) } else { 0 };
        Self {
            setting,
            times: load.arrivals.times(load.arrival_seed),
            groups: (0..load.request_count).map(|_| group()).collect(),
            blocks,
            shared: shared.min(blocks),
            opened: 0,
            load: load.clone(),
        }
    }

    fn request(&self, session: u32, turn: u32) -> Request {
        let (load, shared) = (&self.load, u64::from(self.shared));
        let group = u64::from(self.groups[session as usize]);
        let fresh = u64::from(self.blocks) - shared;
        let position = u64::from(session) * u64::from(load.turns_per_session) + u64::from(turn);
        let common = (0..shared).map(move |block| GROUPS | (group << 32) | block);
        let own = (0..fresh).map(move |block| 1 + position * fresh + block);
        let pause = Nanos::from_ms(load.inter_turn_delay_ms / self.setting.speedup);
        Request {
            session: SessionId(session),
            turn,
            prompt: Prompt::from_ids(common.chain(own), load.input_tokens, self.setting.block_size),
            output_tokens: load.output_tokens,
            priority: Priority::default(),
            think: (turn + 1 < load.turns_per_session).then_some(pause),
            labels: None,
        }
    }
}

/// Marks the ids of group prefixes; others count up from 1.
const GROUPS: u64 = 1 << 63;

impl Workload for Sessions {
    fn open(&mut self) -> Result<Option<Opening>> {
        if self.opened == self.load.request_count {
            return Ok(None);
        }
        let session = self.opened;
        self.opened += 1;
        let ms = self.times.next().expect("arrival times do not end");
        let at = Nanos::from_ms(ms / self.setting.speedup);
        Ok(Some(Opening { at, request: self.request(session, 0) }))
    }

    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        Ok(self.request(session.0, turn))
    }

    fn has_follow_ups(&self) -> bool {
        self.load.turns_per_session > 1
    }

    fn requests(&self) -> u64 {
        u64::from(self.load.request_count) * u64::from(self.load.turns_per_session)
    }
}

#[cfg(test)]
mod tests {
    use super::super::arrival::Process;
    use super::*;

    fn load() -> Synthetic {
        Synthetic {
            input_tokens: 100,
            output_tokens: 5,
            request_count: 40,
            turns_per_session: 3,
            shared_prefix_ratio: 0.5,
            num_prefix_groups: 4,
            inter_turn_delay_ms: 250.0,
            arrivals: Process::Constant { interval_ms: 1.0 },
            arrival_seed: 42,
        }
    }

    fn built(load: &Synthetic) -> Sessions {
        Sessions::of(load, Setting { block_size: 10, speedup: 1.0, seed: 42 })
    }

    /// Blocks that two requests share.
    fn shared(a: &Request, b: &Request) -> usize {
        a.prompt.keys_from(0, 10).zip(b.prompt.keys_from(0, 10)).take_while(|(x, y)| x == y).count()
    }

    #[test]
    fn a_group_shares_its_prefix_and_nothing_else() {
        let sessions = built(&load());
        assert_eq!(sessions.requests(), 120);
        for other in 1..40 {
            let same = sessions.groups[0] == sessions.groups[other as usize];
            let expected = if same { 5 } else { 0 };
            assert_eq!(shared(&sessions.request(0, 0), &sessions.request(other, 2)), expected);
        }
        assert_eq!(shared(&sessions.request(0, 0), &sessions.request(0, 1)), 5);
        assert!((0..4).all(|group| sessions.groups.contains(&group)), "every group is drawn");
    }

    #[test]
    fn a_ratio_without_groups_shares_nothing() {
        let sessions = built(&Synthetic { num_prefix_groups: 0, ..load() });
        assert_eq!(shared(&sessions.request(0, 0), &sessions.request(0, 1)), 0);
    }

    #[test]
    fn other_arrivals_leave_the_requests_alone() {
        let poisson = Process::Poisson { per_second: 3.0 };
        let other = Synthetic { arrivals: poisson, arrival_seed: 7, ..load() };
        let (mut a, mut b) = (built(&load()), built(&other));
        for _ in 0..40 {
            let (x, y) = (a.open().unwrap().unwrap(), b.open().unwrap().unwrap());
            assert_eq!(x.request.prompt, y.request.prompt);
        }
        assert!(a.open().unwrap().is_none());
    }
}
