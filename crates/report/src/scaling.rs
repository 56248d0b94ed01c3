//! Workers that came and went during a run: who, when, why, and how long they were there.

use serde_json::{Value, json};
use wavetank_model::{Nanos, ServeEvent, WorkerId, WorkerRole, WorkerStage};

/// The fleet of a run that could change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scaling {
    /// How often the policy looked.
    pub ticks: u64,
    /// Other numbers of workers, in order of time.
    pub changes: Vec<Change>,
    /// All workers that were ever there.
    pub workers: Vec<Presence>,
}

/// A pool got another number of workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Nanos,
    /// Which.
    pub pool: WorkerRole,
    /// Workers active or starting before.
    pub from: u32,
    /// The same from then on.
    pub to: u32,
    /// Why, in words.
    pub reason: String,
}

/// When a worker was what. What did not happen has no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Which.
    pub worker: WorkerId,
    /// Its pool.
    pub pool: WorkerRole,
    /// When it was asked for.
    pub joined: Nanos,
    /// From when on it took requests.
    pub ready: Option<Nanos>,
    /// From when on it took no more.
    pub draining: Option<Nanos>,
    /// When it was gone.
    pub left: Option<Nanos>,
}

impl Presence {
    /// How long it was there up to `end`, in whatever stage.
    pub fn until(&self, end: Nanos) -> Nanos {
        self.left.unwrap_or(end).min(end).since(self.joined)
    }

    fn json(&self, end: Nanos) -> Value {
        let ms = |at: Option<Nanos>| at.map(Nanos::as_ms);
        json!({
            "worker": self.worker.0,
            "pool": self.pool.name(),
            "joined_ms": self.joined.as_ms(),
            "ready_ms": ms(self.ready),
            "draining_ms": ms(self.draining),
            "left_ms": ms(self.left),
            "worker_seconds": self.until(end).as_seconds(),
        })
    }
}

impl Scaling {
    /// Whether there is anything to say.
    pub(crate) fn is_told(&self) -> bool {
        !self.workers.is_empty()
    }

    pub(crate) fn record(&mut self, event: &ServeEvent<'_>) {
        match *event {
            ServeEvent::WorkerChanged { worker, pool, at, stage } => self.turned(worker, pool, at, stage),
            ServeEvent::PoolScaled { pool, at, from, to, reason } => {
                self.changes.push(Change { at, pool, from, to, reason: reason.to_owned() });
            }
            _ => {}
        }
    }

    fn turned(&mut self, worker: WorkerId, pool: WorkerRole, at: Nanos, stage: WorkerStage) {
        if worker.index() == self.workers.len() {
            let (joined, ready, draining, left) = (at, None, None, None);
            self.workers.push(Presence { worker, pool, joined, ready, draining, left });
        }
        let presence = &mut self.workers[worker.index()];
        match stage {
            WorkerStage::Starting => {}
            WorkerStage::Active => presence.ready = Some(at),
            WorkerStage::Draining => presence.draining = Some(at),
            WorkerStage::Gone => presence.left = Some(at),
        }
    }

    /// Worker-seconds of a pool up to `end`, starting and draining workers included.
    pub fn worker_seconds(&self, pool: WorkerRole, end: Nanos) -> f64 {
        self.of(pool).map(|worker| worker.until(end)).sum::<Nanos>().as_seconds()
    }

    /// Most workers of a pool at a time, starting and draining ones included.
    pub fn most(&self, pool: WorkerRole) -> u32 {
        let came = self.of(pool).map(|worker| (worker.joined, 1));
        let left = self.of(pool).filter_map(|worker| Some((worker.left?, -1)));
        let mut changes: Vec<(Nanos, i32)> = came.chain(left).collect();
        // Who leaves makes room for who comes at the same time.
        changes.sort_unstable();
        let levels = changes.iter().scan(0, |level, (_, by)| {
            *level += by;
            Some(*level)
        });
        levels.max().unwrap_or(0).unsigned_abs()
    }

    fn of(&self, pool: WorkerRole) -> impl Iterator<Item = &Presence> {
        self.workers.iter().filter(move |worker| worker.pool == pool)
    }

    /// The pools there are.
    pub fn pools(&self) -> impl Iterator<Item = WorkerRole> {
        let all = [WorkerRole::Aggregated, WorkerRole::Prefill, WorkerRole::Decode];
        all.into_iter().filter(|&pool| self.of(pool).next().is_some())
    }

    /// As it stands in a report of a run whose last request completed at `end`; `gpus` are those of a worker.
    pub fn json(&self, end: Nanos, gpus: impl Fn(WorkerRole) -> u32) -> Value {
        let change = |change: &Change| {
            json!({
                "at_ms": change.at.as_ms(), "pool": change.pool.name(),
                "from": change.from, "to": change.to, "reason": change.reason,
            })
        };
        let pool = |pool: WorkerRole| {
            let seconds = self.worker_seconds(pool, end);
            json!({
                "pool": pool.name(),
                "worker_seconds": seconds,
                "gpu_hours": seconds * f64::from(gpus(pool)) / 3600.0,
                "mean_workers": seconds / end.as_seconds().max(1e-9),
                "most_workers": self.most(pool),
            })
        };
        json!({
            "ticks": self.ticks,
            "events": self.changes.iter().map(change).collect::<Vec<_>>(),
            "pools": self.pools().map(pool).collect::<Vec<_>>(),
            "workers": self.workers.iter().map(|worker| worker.json(end)).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a worker that is counted after it left, or not at all while it starts.
    #[test]
    fn presence_is_from_being_asked_for_to_being_gone() {
        let mut scaling = Scaling::default();
        let pool = WorkerRole::Aggregated;
        let mut turn = |worker, at, stage| {
            let (worker, at) = (WorkerId(worker), Nanos(at));
            scaling.record(&ServeEvent::WorkerChanged { worker, pool, at, stage });
        };
        turn(0, 0, WorkerStage::Active);
        turn(1, 100, WorkerStage::Starting);
        turn(1, 300, WorkerStage::Active);
        turn(2, 150, WorkerStage::Starting);
        turn(2, 160, WorkerStage::Gone);
        turn(1, 300, WorkerStage::Draining);
        turn(1, 400, WorkerStage::Gone);
        turn(3, 400, WorkerStage::Active);
        let seconds = |end| scaling.worker_seconds(pool, Nanos(end)) * 1e9;
        assert_eq!((seconds(1000) as u64, seconds(200) as u64), (1000 + 300 + 10 + 600, 200 + 100 + 10));
        assert_eq!((scaling.most(pool), scaling.most(WorkerRole::Decode)), (3, 0));
        assert_eq!(scaling.pools().collect::<Vec<_>>(), [pool]);
    }
}
