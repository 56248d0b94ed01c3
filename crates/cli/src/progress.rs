//! A progress bar on standard error, for runs longer than a second on a terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use wavetank::Watch;
use wavetank_model::{ServeEvent, Sink};

const PATIENCE: Duration = Duration::from_secs(1);
/// Ended requests between two looks at the clock.
const STRIDE: u64 = 256;

/// Counts requests that ended.
pub(crate) struct Progress {
    loaded: Arc<AtomicBool>,
    expected: u64,
    ended: u64,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts counting; `loaded` is raised when the workload is there.
    pub(crate) fn start(loaded: Arc<AtomicBool>) -> Self {
        Self { loaded, expected: 0, ended: 0, started: Instant::now(), bar: None }
    }

    fn advance(&mut self) {
        self.ended += 1;
        if !self.ended.is_multiple_of(STRIDE) {
            return;
        }
        if self.bar.is_none() && self.started.elapsed() > PATIENCE {
            self.bar = Some(bar(self.expected));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.ended);
        }
    }
}

fn bar(expected: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} requests, {eta} left")
        .expect("the template is well formed");
    ProgressBar::new(expected).with_style(style)
}

impl Sink<ServeEvent<'_>> for Progress {
    fn record(&mut self, event: &ServeEvent<'_>) {
        if matches!(event, ServeEvent::RequestCompleted { .. } | ServeEvent::RequestRejected { .. }) {
            self.advance();
        }
    }
}

impl Watch for Progress {
    fn expect(&mut self, requests: u64) {
        self.loaded.store(true, Ordering::Relaxed);
        self.expected = requests;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
