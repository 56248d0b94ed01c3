//! The view of a replay: from its first request to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wavetank::gauges::Gauges;
use wavetank::{Plan, Watch};
use wavetank_model::{ServeEvent, Sink};

use super::{LiveView, Show};
use crate::interrupt::Interrupt;

/// Shows a replay while it runs.
pub(crate) struct ReplayView {
    gauges: Gauges,
    title: String,
    loaded: Arc<AtomicBool>,
    /// Taken when the view starts.
    end: Option<Box<dyn FnOnce() + Send>>,
    view: Option<LiveView>,
}

impl ReplayView {
    /// Of `plan`, on the wall clock; who has seen enough ends it as Ctrl-C would.
    pub(crate) fn of(plan: &Plan, stop: &Interrupt) -> Self {
        let simulation = &plan.simulation;
        let workers = match simulation.num_workers {
            1 => "1 live worker".to_owned(),
            workers => format!("{workers} live workers, {}", simulation.router_mode),
        };
        let bell = stop.bell();
        Self {
            gauges: Gauges::of(simulation),
            title: format!("wavetank replay: {workers}"),
            loaded: Arc::clone(&stop.loaded),
            end: Some(Box::new(move || bell.ring())),
            view: None,
        }
    }
}

impl Watch for ReplayView {
    fn expect(&mut self, requests: u64) {
        self.loaded.store(true, Ordering::Relaxed);
        let show = Show { title: self.title.clone(), gauges: self.gauges.clone(), expected: Some(requests) };
        self.view = self.end.take().and_then(|end| LiveView::start(show, end));
    }
}

impl Sink<ServeEvent<'_>> for ReplayView {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.gauges.record(event);
    }
}
