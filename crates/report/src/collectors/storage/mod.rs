//! Collects a storage benchmark. What counts is what ends between `Opened` and `Closed`; only the bytes of
//! each tier are also counted over the whole run, to be compared with what the kernel counted.

mod flow;
mod requests;
mod tier;
mod timeline;
mod touches;

use wavetank_model::{BenchEvent, BenchFact, Nanos, Served, Sink, StoreEvent, StoreFact, TierRole};

use self::flow::flows;
use self::requests::Requests;
use self::tier::Tier;
use self::timeline::Timeline;
use self::touches::Touches;
use crate::Spread;
use crate::storage::{AtEnd, Setting, StorageSummary, Window};

/// Where in the run we are.
#[derive(Clone, Copy, Debug)]
enum Phase {
    WarmUp,
    Open { since: Nanos },
    Closed(Window),
}

/// A collector of one storage benchmark.
#[derive(Debug)]
pub struct Storage {
    setting: Setting,
    phase: Phase,
    /// Requests by class that came before the end of the window, also before its beginning, and were neither
    /// served nor turned away in that time.
    outstanding: [u64; 3],
    requests: Requests,
    touches: Touches,
    tiers: Vec<Tier>,
    timeline: Timeline,
}

impl Storage {
    /// Panics if two tiers have the same role.
    pub fn new(setting: &Setting) -> Self {
        for role in TierRole::ALL {
            let same = setting.tiers.iter().filter(|&&tier| tier == role).count();
            assert!(same <= 1, "{same} tiers are `{}`", role.name());
        }
        let tiers = setting.tiers.len();
        Self {
            setting: setting.clone(),
            phase: Phase::WarmUp,
            outstanding: [0; 3],
            requests: Requests::new(&setting.targets),
            touches: Touches::new(tiers),
            tiers: (0..tiers).map(|_| Tier::default()).collect(),
            timeline: Timeline::default(),
        }
    }

    /// Ends the window of a run that was interrupted before it said so itself. What had come and was not
    /// served counts as in flight.
    pub fn close(&mut self, at: Nanos) {
        self.close_with(at, self.outstanding.iter().sum(), 0);
    }

    fn close_with(&mut self, at: Nanos, in_flight: u64, queued_at_end: u64) {
        if let Phase::Open { since } = self.phase {
            self.phase = Phase::Closed(Window {
                began: Nanos::ZERO,
                elapsed: at.since(since),
                in_flight,
                queued_at_end,
            });
        }
    }

    /// The numbers of the run so far.
    pub fn summary(&self, at_end: AtEnd) -> StorageSummary {
        assert_eq!(at_end.tiers.len(), self.tiers.len(), "every tier has its use at the end");
        let window = if let Phase::Closed(window) = self.phase { window } else { Window::default() };
        let tiers = self.tiers.iter().enumerate().map(|(number, tier)| {
            tier.summary(self.setting.tiers[number], self.touches.hits_of(number), at_end.tiers[number])
        });
        let (timeline, timeline_step) = self.timeline.rows(window.elapsed);
        StorageSummary {
            setting: self.setting.clone(),
            window,
            requests: self.requests.summary(&self.outstanding),
            touches: self.touches.summary(&self.setting, self.memory_service()),
            tiers: tiers.collect(),
            host_memory: self.host_memory(),
            timeline,
            timeline_step,
            parts: Vec::new(),
        }
    }

    /// What the tiers in memory took themselves, over all reads and writes for callers.
    fn memory_service(&self) -> Nanos {
        let tiers = self.tiers.iter().zip(&self.setting.tiers);
        let memory = tiers.filter(|(_, role)| **role != TierRole::Storage);
        memory.fold(Nanos::ZERO, |sum, (tier, _)| sum + tier.service())
    }

    /// Reads and writes of host memory together, as one criterion wants them.
    fn host_memory(&self) -> Spread {
        self.setting.tier(TierRole::Cpu).map(|number| self.tiers[number].both_ways()).unwrap_or_default()
    }

    fn stored(&mut self, at: Nanos, event: &StoreEvent) {
        let since = if let Phase::Open { since } = self.phase { Some(since) } else { None };
        for (tier, operation) in flows(event.fact).into_iter().flatten() {
            self.tiers[tier].whole_run.add(operation, event.bytes);
            if let Some(since) = since {
                self.tiers[tier].traffic.add(operation, event.bytes);
                self.tiers[tier].busy.add(operation, event.times.device);
                if self.setting.tiers[tier] == TierRole::Storage {
                    self.timeline.moved(at.since(since), operation, event.bytes);
                }
            }
        }
        if since.is_some() {
            self.happened(event);
        }
    }

    fn happened(&mut self, event: &StoreEvent) {
        let StoreEvent { bytes, times, .. } = *event;
        match event.fact {
            StoreFact::Hit { tier: from } => self.tier(from).reads.record(bytes, times),
            StoreFact::Stored { tier: to } => self.tier(to).writes.record(bytes, times),
            StoreFact::Demoted { from, to } => {
                self.tier(from).demoted_out.record(bytes, times);
                self.tier(to).demoted_in.record(bytes, times);
            }
            StoreFact::Promoted { from, to } => {
                self.tier(from).promoted_out.record(bytes, times);
                self.tier(to).promoted_in.record(bytes, times);
            }
            StoreFact::Evicted { tier: from } => self.tier(from).evictions += 1,
            StoreFact::Dropped { tier: from } => self.tier(from).drops += 1,
            StoreFact::Failed { tier: of } => self.tier(of).failures += 1,
            StoreFact::Existed | StoreFact::Missed | StoreFact::Removed | StoreFact::Refused => {}
        }
    }

    fn follow(&mut self, fact: BenchFact) {
        match fact {
            BenchFact::Arrived(class) => self.outstanding[class as usize] += 1,
            BenchFact::Served(Served { class, .. }) | BenchFact::TurnedAway(class) => {
                let outstanding = &mut self.outstanding[class as usize];
                *outstanding = outstanding.saturating_sub(1);
            }
            _ => {}
        }
    }

    fn tier(&mut self, number: u8) -> &mut Tier {
        &mut self.tiers[usize::from(number)]
    }
}

impl Sink<BenchEvent> for Storage {
    fn record(&mut self, event: &BenchEvent) {
        let at = event.at;
        if !matches!(self.phase, Phase::Closed(_)) {
            self.follow(event.fact);
        }
        let since = match (self.phase, event.fact) {
            (_, BenchFact::Stored(ref stored)) => return self.stored(at, stored),
            (Phase::WarmUp, BenchFact::Opened) => return self.phase = Phase::Open { since: at },
            (Phase::Open { since }, _) => since,
            _ => return,
        };
        match event.fact {
            BenchFact::Opened | BenchFact::Stored(_) => {}
            BenchFact::Closed { in_flight, queued } => self.close_with(at, in_flight, queued),
            BenchFact::Arrived(class) => self.requests.arrived(class),
            BenchFact::TurnedAway(class) => self.requests.turned_away(class),
            BenchFact::Touched(touch) => self.touches.record(&touch),
            BenchFact::Served(served) => {
                self.requests.served(&served);
                self.timeline.served(at.since(since), &served);
            }
        }
    }
}
