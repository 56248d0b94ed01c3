//! A progress bar on standard error, for runs longer than a second on a terminal.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use wavetank::{Meter, Watch};
use wavetank_model::{ServeEvent, Sink};
use wavetank_study::sweep::Onlooker;

use crate::output;

const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(200);
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
            self.bar = Some(bar(self.expected, "requests"));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.ended);
        }
    }
}

fn bar(expected: u64, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {what}, {{eta}} left"))
        .expect("the template is well formed");
    ProgressBar::new(expected).with_style(style)
}

/// For what ends when it has found something: what was done, and for how long.
fn count(what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{spinner}} {{pos}} {what}, {{elapsed}}"))
        .expect("the template is well formed");
    ProgressBar::no_length().with_style(style)
}

impl Sink<ServeEvent<'_>> for Progress {
    fn record(&mut self, event: &ServeEvent<'_>) {
        if event.ends_request() {
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

/// Shows how far a trace was read, from a thread of its own: what reads it does not look at the clock.
pub(crate) struct ReadProgress {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl ReadProgress {
    /// Shows what `meter` counts until it is dropped; nothing where nobody looks.
    pub(crate) fn start(meter: Meter) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { thread: None };
        }
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || show(&meter, &ended));
        Self { thread: Some((end, thread)) }
    }
}

fn show(meter: &Meter, ended: &Receiver<()>) {
    let goes_on = |wait| matches!(ended.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
    if !goes_on(PATIENCE) {
        return;
    }
    let style = |template: &str| ProgressStyle::with_template(template).expect("the template is well formed");
    let bar = ProgressBar::no_length();
    while goes_on(REDRAW) {
        let (bytes, expected) = (meter.bytes(), meter.expected());
        if expected > 0 {
            bar.set_style(style("{bar:40} {bytes}/{total_bytes}, {bytes_per_sec}, {msg}, {eta} left"));
            bar.set_length(expected);
        } else {
            bar.set_style(style("{bytes} read, {msg}"));
        }
        bar.set_position(bytes);
        bar.set_message(format!("{} requests", meter.requests()));
    }
    bar.finish_and_clear();
}

impl Drop for ReadProgress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.thread.take() {
            drop(end);
            // A thread that failed has shown nothing; there is nothing else to lose.
            let _ = thread.join();
        }
    }
}

/// Counts steps that take their time.
pub(crate) struct StepProgress {
    of: u64,
    what: &'static str,
    done: u64,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl StepProgress {
    /// Starts counting up to `of`.
    pub(crate) fn start(of: u64, what: &'static str) -> Self {
        Self { of, what, done: 0, started: Instant::now(), bar: None }
    }

    /// One more begins.
    pub(crate) fn advance(&mut self) {
        self.done += 1;
        if self.bar.is_none() && self.started.elapsed() > PATIENCE {
            self.bar = Some(bar(self.of, self.what));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }
}

impl Drop for StepProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Counts points of a sweep, or replays; any thread may tell.
pub(crate) struct PointProgress {
    loaded: Arc<AtomicBool>,
    /// What is counted.
    what: &'static str,
    started: Instant,
    bar: OnceLock<ProgressBar>,
    expected: AtomicU64,
    done: AtomicU64,
}

impl PointProgress {
    /// Starts counting; `loaded` is raised when points begin.
    pub(crate) fn start(loaded: Arc<AtomicBool>, what: &'static str) -> Self {
        let (expected, done) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { loaded, what, started: Instant::now(), bar: OnceLock::new(), expected, done }
    }
}

impl Onlooker for PointProgress {
    fn expect(&self, points: usize, kept: usize) {
        self.loaded.store(true, Ordering::Relaxed);
        self.expected.store(points as u64, Ordering::Relaxed);
        if kept > 0 {
            output::complain(&format!("{kept} of {points} points are kept from an earlier run"));
        }
    }

    fn done(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let expected = self.expected.load(Ordering::Relaxed);
        if self.started.elapsed() < PATIENCE {
            return;
        }
        let shown = || match expected {
            0 => count("points run, searching"),
            _ => bar(expected, self.what),
        };
        self.bar.get_or_init(shown).set_position(done);
    }
}

impl Drop for PointProgress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
