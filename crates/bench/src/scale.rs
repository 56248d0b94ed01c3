//! The autoscaler: how many users a machine carries, found by adding and removing them.
//!
//! `qos` keeps latency: saturation is the higher of the windowed P95 of reads and writes, waiting included,
//! against their limits and of a growing queue against its own, and all of it where the queue is full; users
//! grow below the target and shrink above it. `capacity` seeks the most tokens per second: it doubles, then
//! grows by half, and stops when the windowed throughput no longer rises.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use wavetank_model::Nanos;

/// How the number of users changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// What is sought.
    pub mode: ScaleMode,
    /// Between two decisions. What happens in its first half after a change is not looked at.
    pub interval: Nanos,
    /// The saturation that is kept, from 0 to 1.
    pub target_saturation: f64,
    /// Never fewer users.
    pub users_min: u32,
    /// Never more users.
    pub users_max: u32,
    /// What a step up multiplies users by.
    pub up_factor: f64,
    /// What a step down multiplies users by.
    pub down_factor: f64,
    /// How many samples in a row have to be above the target before users go.
    pub consecutive: u32,
    /// Reads from storage are saturated at this P95.
    pub read_p95_ms: f64,
    /// Writes to storage are saturated at this P95.
    pub write_p95_ms: f64,
    /// A growing queue is saturated at this length.
    pub queue_depth: u64,
    /// How many samples tell whether the queue grows.
    pub history: u32,
}

/// What the autoscaler seeks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleMode {
    /// The most users that are served well.
    Qos,
    /// The most tokens per second.
    Capacity,
}

impl Scaling {
    /// Whether `saturation` is no more than the target, as far as that is kept.
    pub fn is_within(&self, saturation: f64) -> bool {
        saturation <= self.target_saturation * (1.0 + BAND)
    }

    /// The reference's settings.
    pub fn new(mode: ScaleMode) -> Self {
        Self {
            mode,
            interval: Nanos::from_seconds(10.0),
            target_saturation: 0.8,
            users_min: 1,
            users_max: 10_000,
            up_factor: 1.2,
            down_factor: 0.8,
            consecutive: 2,
            read_p95_ms: 100.0,
            write_p95_ms: 50.0,
            queue_depth: 100,
            history: 10,
        }
    }
}

/// What was measured in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    pub(crate) at: Nanos,
    pub(crate) tokens_per_second: f64,
    /// From being asked for to the end, of reads from storage; absent without any.
    pub(crate) read_p95_ms: Option<f64>,
    pub(crate) write_p95_ms: Option<f64>,
    pub(crate) queue: u64,
    /// Requests that ended.
    pub(crate) served: u64,
    /// Requests that found the queue full.
    pub(crate) turned_away: u64,
}

/// One decision, as the report has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScaleStep {
    /// Seconds since the start.
    pub timestamp: f64,
    /// What is sought.
    pub mode: ScaleMode,
    /// What was done.
    pub action: Action,
    /// Users in the interval that was looked at.
    pub measured_users: u32,
    /// Users from here on.
    pub users: u32,
    /// From 0 to 1; absent where throughput is sought.
    pub saturation_level: Option<f64>,
    /// Of the interval; absent without reads.
    pub read_latency_p95_ms: Option<f64>,
    /// Of the interval; absent without writes.
    pub write_latency_p95_ms: Option<f64>,
    /// Of the interval.
    pub throughput_tokens_per_sec: f64,
    /// At its end.
    pub queue_depth: u64,
    /// Why, in words.
    pub reason: String,
    /// The highest throughput so far; absent where latency is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_throughput: Option<f64>,
    /// The same under the reference's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_throughput_tokens_per_sec: Option<f64>,
    /// The users it was reached with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_users: Option<u32>,
}

/// What a decision does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Users come.
    ScaleUp,
    /// Users go.
    ScaleDown,
    /// Nothing changes.
    Hold,
    /// What was sought is found.
    Stop,
}

/// Samples in, decisions out.
pub(crate) struct Scaler {
    pub(crate) scaling: Scaling,
    pub(crate) steps: Vec<ScaleStep>,
    users: u32,
    history: VecDeque<Sample>,
    above: u32,
    cooldown: u32,
    peak: Option<Peak>,
    growth: f64,
    misses: u32,
}

#[derive(Clone, Copy)]
struct Peak {
    tokens_per_second: f64,
    users: u32,
}

/// Decisions after a step down during which nothing changes.
const COOLDOWN: u32 = 3;
/// Saturation within this share of the target is kept.
const BAND: f64 = 0.1;
/// Fewer requests in a stage say nothing about its throughput.
pub(crate) const FEWEST_SERVED: u64 = 3;
/// A stage has to be better by this much to be a new peak.
const GAIN: f64 = 1.01;
/// As long as doubling users gives this much more, they are doubled again.
const DOUBLING: f64 = 1.5;
/// Stages in a row without a new peak that end the search.
const MISSES: u32 = 2;

impl Scaler {
    pub(crate) fn new(scaling: Scaling, users: u32) -> Self {
        Self {
            scaling,
            steps: Vec::new(),
            users,
            history: VecDeque::new(),
            above: 0,
            cooldown: 0,
            peak: None,
            growth: 2.0,
            misses: 0,
        }
    }

    /// Decides, and notes it.
    pub(crate) fn decide(&mut self, sample: Sample) -> &ScaleStep {
        self.history.push_back(sample);
        if self.history.len() > (self.scaling.history as usize).max(2) {
            self.history.pop_front();
        }
        let (action, users, saturation, reason) = match self.scaling.mode {
            ScaleMode::Qos => {
                let saturation = self.saturation(&sample);
                let (action, users, reason) = self.keep_latency(saturation);
                (action, users, Some(saturation), reason)
            }
            ScaleMode::Capacity => {
                let (action, users, reason) = self.seek_peak(&sample);
                (action, users, None, reason)
            }
        };
        let measured_users = std::mem::replace(&mut self.users, users);
        let peak = self.peak.map(|peak| peak.tokens_per_second);
        self.steps.push(ScaleStep {
            timestamp: sample.at.as_seconds(),
            mode: self.scaling.mode,
            action,
            measured_users,
            users,
            saturation_level: saturation,
            read_latency_p95_ms: sample.read_p95_ms,
            write_latency_p95_ms: sample.write_p95_ms,
            throughput_tokens_per_sec: sample.tokens_per_second,
            queue_depth: sample.queue,
            reason,
            peak_throughput: peak,
            peak_throughput_tokens_per_sec: peak,
            peak_users: self.peak.map(|peak| peak.users),
        });
        self.steps.last().expect("it was just pushed")
    }

    fn saturation(&self, sample: &Sample) -> f64 {
        let of = |p95: Option<f64>, limit: f64| p95.map_or(0.0, |p95| p95 / limit);
        let latency = of(sample.read_p95_ms, self.scaling.read_p95_ms)
            .max(of(sample.write_p95_ms, self.scaling.write_p95_ms));
        let before = self.history.iter().rev().skip(1).map(|sample| sample.queue as f64);
        let (count, sum) = before.fold((0.0, 0.0), |(count, sum), queue| (count + 1.0, sum + queue));
        let grows = count > 0.0 && sample.queue as f64 > sum / count;
        let full = sample.turned_away > 0 || sample.queue >= self.scaling.queue_depth;
        let queue = match (full, grows) {
            (true, _) => 1.0,
            (false, true) => sample.queue as f64 / self.scaling.queue_depth as f64,
            (false, false) => 0.0,
        };
        latency.max(queue).min(1.0)
    }

    fn keep_latency(&mut self, saturation: f64) -> (Action, u32, String) {
        let Scaling { target_saturation: target, users_min, users_max, .. } = self.scaling;
        let hold = |reason: &str| (Action::Hold, self.users, reason.to_owned());
        if self.cooldown > 0 {
            self.cooldown -= 1;
            self.above = 0;
            return hold("waiting after users went");
        }
        if !self.scaling.is_within(saturation) {
            self.above += 1;
            if self.above < self.scaling.consecutive {
                return hold("above the target once: waiting for another sample");
            }
            self.above = 0;
            let fewer = ((f64::from(self.users) * self.scaling.down_factor) as u32).max(users_min);
            if fewer >= self.users {
                return hold("above the target with the fewest users allowed");
            }
            self.cooldown = COOLDOWN;
            return (Action::ScaleDown, fewer, format!("saturation {saturation:.2} is above {target:.2}"));
        }
        self.above = 0;
        if saturation < target * (1.0 - BAND) {
            let more = ((f64::from(self.users) * self.scaling.up_factor) as u32).max(self.users + 1);
            let more = more.min(users_max);
            if more <= self.users {
                return hold("below the target with the most users allowed");
            }
            return (Action::ScaleUp, more, format!("saturation {saturation:.2} is below {target:.2}"));
        }
        hold("at the target")
    }

    fn seek_peak(&mut self, sample: &Sample) -> (Action, u32, String) {
        let Sample { tokens_per_second, served, .. } = *sample;
        if served < FEWEST_SERVED {
            let reason = format!("{served} requests ended: the stage goes on until {FEWEST_SERVED} have");
            return (Action::Hold, self.users, reason);
        }
        let before = self.peak.map_or(0.0, |peak| peak.tokens_per_second);
        let users_max = self.scaling.users_max;
        if tokens_per_second > before * GAIN {
            self.misses = 0;
            if self.peak.is_some() && tokens_per_second < before * DOUBLING {
                self.growth = 1.5;
            }
            self.peak = Some(Peak { tokens_per_second, users: self.users });
        } else {
            self.misses += 1;
            self.growth = 1.5;
        }
        let most = self.users >= users_max;
        if self.misses >= MISSES || (most && self.misses > 0) {
            let peak = self.peak.unwrap_or(Peak { tokens_per_second: 0.0, users: self.users });
            let Peak { tokens_per_second, users } = peak;
            let reason = format!("Peak capacity found: {tokens_per_second:.1} tokens/s with {users} users");
            return (Action::Stop, self.users, reason);
        }
        let more = ((f64::from(self.users) * self.growth).ceil() as u32).min(users_max);
        let reason = match (most, self.misses) {
            (true, _) => "the most users allowed: once more".to_owned(),
            (false, 0) => format!("{tokens_per_second:.1} tokens/s is the most so far"),
            (false, _) => format!("{tokens_per_second:.1} tokens/s is no more than {before:.1}: once more"),
        };
        (if most { Action::Hold } else { Action::ScaleUp }, more, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(tokens_per_second: f64, read_p95_ms: f64, queue: u64) -> Sample {
        Sample { tokens_per_second, read_p95_ms: Some(read_p95_ms), queue, served: 9, ..Sample::default() }
    }

    /// A machine that serves `most` users with a latency in proportion.
    #[test]
    fn qos_settles_around_the_target() {
        let mut scaler = Scaler::new(Scaling::new(ScaleMode::Qos), 2);
        let mut users = 2;
        for _ in 0..60 {
            users = scaler.decide(sample(0.0, f64::from(users) * 2.0, 0)).users;
        }
        assert!((36..=44).contains(&users), "80 ms is 40 users: {users}");
        assert!(scaler.steps.iter().any(|step| step.action == Action::ScaleUp));
        assert!(scaler.steps.iter().rev().take(5).all(|step| step.action == Action::Hold));
    }

    #[test]
    fn qos_sheds_users_under_overload_and_waits_after_it() {
        let mut scaler = Scaler::new(Scaling::new(ScaleMode::Qos), 100);
        let actions: Vec<Action> = (0..6).map(|_| scaler.decide(sample(0.0, 500.0, 0)).action).collect();
        use Action::{Hold, ScaleDown};
        assert_eq!(actions, [Hold, ScaleDown, Hold, Hold, Hold, Hold]);
        assert_eq!(scaler.steps.last().unwrap().users, 80);
    }

    #[test]
    fn a_growing_queue_saturates_without_any_latency() {
        let mut scaler = Scaler::new(Scaling::new(ScaleMode::Qos), 100);
        let levels: Vec<f64> = [0, 50, 90, 20, 100]
            .map(|queue| scaler.decide(sample(0.0, 0.0, queue)).saturation_level.unwrap())
            .into();
        assert_eq!(levels, [0.0, 0.5, 0.9, 0.0, 1.0]);
        let full = Sample { turned_away: 1, ..sample(0.0, 0.0, 0) };
        assert_eq!(scaler.decide(full).saturation_level, Some(1.0));
    }

    /// Throughput that saturates at 40 users.
    #[test]
    fn capacity_doubles_then_grows_by_half_and_stops_past_the_peak() {
        let mut scaler = Scaler::new(Scaling::new(ScaleMode::Capacity), 5);
        let mut users: u32 = 5;
        let mut stages = vec![users];
        loop {
            let throughput = 100.0 * f64::from(users.min(40)) - f64::from(users.saturating_sub(40));
            let step = scaler.decide(sample(throughput, 0.0, 0));
            if step.action == Action::Stop {
                break;
            }
            users = step.users;
            stages.push(users);
        }
        assert_eq!(stages, [5, 10, 20, 40, 80, 120]);
        let last = scaler.steps.last().unwrap();
        assert!(last.reason.starts_with("Peak capacity found: 4000.0 tokens/s with 40 users"), "{last:?}");
        assert_eq!((last.peak_throughput, last.peak_users), (Some(4000.0), Some(40)));
    }

    #[test]
    fn a_stage_in_which_nothing_ended_is_no_peak() {
        let mut scaler = Scaler::new(Scaling::new(ScaleMode::Capacity), 5);
        for _ in 0..5 {
            let step = scaler.decide(Sample::default());
            assert_eq!((step.action, step.users), (Action::Hold, 5));
        }
        assert_eq!(scaler.decide(sample(1.0, 0.0, 0)).action, Action::ScaleUp);
    }

    #[test]
    fn four_users_grow_too() {
        let mut scaler = Scaler::new(Scaling::new(ScaleMode::Qos), 1);
        assert_eq!(scaler.decide(sample(0.0, 0.0, 0)).users, 2);
    }
}
