//! Gauges: what live workers are doing, made from events alone and read from any thread while they run.

mod counts;
mod histogram;
mod prometheus;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wavetank_model::{RequestId, ServeEvent, Sink};
use wavetank_sim::{EngineConfig, Plan};
pub use wavetank_telemetry::prometheus::CONTENT_TYPE;

pub use self::counts::{Finished, Snapshot, Tally, WorkerCounts};
use self::prometheus::Settings;
use self::state::State;
use crate::mock::{Ask, Follow};

/// Counts of live workers. A clone shows the same: one is told what happens, others read.
#[derive(Clone, Debug)]
pub struct Gauges {
    state: Arc<Mutex<State>>,
    /// What of the workers never changes.
    settings: Arc<[Settings]>,
}

impl Gauges {
    /// Of the workers of `plan`, before anything happens.
    pub fn of(plan: &Plan) -> Self {
        let settings = engines(plan).map(Settings::of).collect();
        Self { state: Arc::new(Mutex::new(State::of(plan))), settings }
    }

    /// What is counted now.
    pub fn snapshot(&self) -> Snapshot {
        self.state().snapshot()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink<ServeEvent<'_>> for Gauges {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.state().record(event);
    }
}

impl Follow for Gauges {
    fn asked(&mut self, _request: RequestId, ask: &Ask) {
        self.state().next_finish = Some(ask.finish);
    }
}

/// What each worker of `plan` runs, in the order of their numbers.
fn engines(plan: &Plan) -> impl Iterator<Item = &EngineConfig> {
    let decode = plan.decode.iter().map(|pool| (pool.num_workers, &pool.engine));
    let pools = [(plan.num_workers, &plan.engine)].into_iter().chain(decode);
    pools.flat_map(|(count, engine)| (0..count).map(move |_| engine))
}
