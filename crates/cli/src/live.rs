//! How a benchmark goes, in one line that is written over; without a terminal, a line now and then.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use wavetank::{BenchWatch, News, Pulse, TrialsPlan};

use crate::output;

/// Between two lines where there is no terminal.
const SELDOM: Duration = Duration::from_secs(30);

/// Shows how a benchmark goes.
pub(crate) struct Live {
    bar: Option<ProgressBar>,
    quiet: bool,
    next: Instant,
    trial: Arc<AtomicU32>,
    trials: TrialsPlan,
}

impl Live {
    /// Starts showing, unless it has to be `quiet`.
    pub(crate) fn start(quiet: bool, trials: TrialsPlan) -> Self {
        let shows = !quiet && std::io::stderr().is_terminal();
        let bar = shows.then(|| {
            let style = ProgressStyle::with_template("{msg}").expect("the template is well formed");
            ProgressBar::new_spinner().with_style(style)
        });
        Self { bar, quiet, next: Instant::now() + SELDOM, trial: Arc::default(), trials }
    }

    /// Takes what happens between trials.
    pub(crate) fn news(&self) -> impl FnMut(News) + use<> {
        let (trial, bar, quiet) = (Arc::clone(&self.trial), self.bar.clone(), self.quiet);
        move |news| match (news, &bar) {
            (News::Trial(number), _) => trial.store(number, Ordering::Relaxed),
            (News::CoolDown(pause), Some(bar)) => bar.set_message(resting(pause)),
            (News::CoolDown(pause), None) if !quiet => output::complain(&resting(pause)),
            (News::CoolDown(_), None) => {}
        }
    }

    fn show(&mut self, line: String) {
        match &self.bar {
            Some(bar) => bar.set_message(line),
            None if !self.quiet && Instant::now() >= self.next => {
                self.next = Instant::now() + SELDOM;
                output::complain(&line);
            }
            None => {}
        }
    }

    fn line(&self, pulse: &Pulse) -> String {
        format!("{}{}", trial_line(self.trials, self.trial.load(Ordering::Relaxed)), pulse_line(pulse))
    }
}

/// Which trial runs; nothing where there is only one.
pub(crate) fn trial_line(trials: TrialsPlan, number: u32) -> String {
    match trials {
        TrialsPlan { most: 1, .. } => String::new(),
        TrialsPlan { most, until_ci_percent: None, .. } => format!("trial {number}/{most}  "),
        TrialsPlan { most, .. } => format!("trial {number}, at most {most}  "),
    }
}

/// What a benchmark does now.
pub(crate) fn pulse_line(pulse: &Pulse) -> String {
    let warming = if pulse.warming { " (warming up)" } else { "" };
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let fill = pulse.fill.iter().map(|(role, bytes, capacity)| match capacity {
        Some(capacity) => format!("{} {:.1}/{:.1} GiB", role.name(), gib(*bytes), gib(*capacity)),
        None => format!("{} {:.1} GiB", role.name(), gib(*bytes)),
    });
    format!(
        "{:.0}/{:.0} s{warming}  {} users  {} requests  {:.0} tok/s  P95 {:.0} ms  {} waiting  {}",
        pulse.at.as_seconds(),
        pulse.of.as_seconds(),
        pulse.users,
        pulse.served,
        pulse.tokens_per_second,
        pulse.p95_ms,
        pulse.queued,
        fill.collect::<Vec<_>>().join("  ")
    )
}

/// What is written before a benchmark.
pub(crate) fn filling_line(what: &str, bytes: u64) -> String {
    format!("writing {what}: {:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

impl BenchWatch for Live {
    fn filling(&mut self, what: &str, bytes: u64) {
        self.show(filling_line(what, bytes));
    }

    fn pulse(&mut self, pulse: &Pulse) {
        self.show(self.line(pulse));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What is done between trials.
pub(crate) fn resting(pause: Duration) -> String {
    format!("cooling down for {:.0} s", pause.as_secs_f64())
}
