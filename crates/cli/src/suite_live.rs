//! How a suite goes: a bar over all of it and what the scenario does; without a terminal, a line for each.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use wavetank::suite::{Begun, SuiteWatch};
use wavetank::{BenchWatch, News, Pulse, TrialsPlan};
use wavetank_report::render::suite::short;
use wavetank_report::suite::{Row, Status};

use crate::{live, output};

/// The bar counts in milliseconds, so that it moves in short suites too.
const TICKS: f64 = 1000.0;

/// Shows how a suite goes.
pub(crate) struct SuiteLive {
    bar: Option<ProgressBar>,
    quiet: bool,
    total: usize,
    /// Seconds of scenarios that ended, as planned.
    done: f64,
    now: Now,
}

/// The scenario that runs.
#[derive(Default)]
struct Now {
    heading: String,
    /// Seconds of one trial, and of all.
    trial_seconds: f64,
    seconds: f64,
    trials: Option<TrialsPlan>,
    trial: Arc<AtomicU32>,
}

impl SuiteLive {
    /// Starts showing, unless it has to be `quiet`: so many scenarios in all, so long for what is to run.
    pub(crate) fn start(quiet: bool, total: usize, seconds: f64) -> Self {
        let shows = !quiet && std::io::stderr().is_terminal();
        let bar = shows.then(|| {
            let style = ProgressStyle::with_template("{bar:20} {percent:>3} %, {eta} left  {wide_msg}");
            let style = style.expect("the template is well formed");
            ProgressBar::new((seconds * TICKS) as u64).with_style(style)
        });
        Self { bar, quiet, total, done: 0.0, now: Now::default() }
    }

    /// Says something that stays.
    pub(crate) fn announce(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None if !self.quiet => output::complain(line),
            None => {}
        }
    }

    fn show(&self, line: &str, seconds: f64) {
        if let Some(bar) = &self.bar {
            bar.set_position(((self.done + seconds) * TICKS) as u64);
            bar.set_message(format!("{}  {line}", self.now.heading));
        }
    }

    /// Seconds of trials of this scenario that have ended.
    fn earlier(&self) -> f64 {
        let trial = self.now.trial.load(Ordering::Relaxed).saturating_sub(1);
        f64::from(trial) * self.now.trial_seconds
    }
}

impl BenchWatch for SuiteLive {
    fn filling(&mut self, what: &str, bytes: u64) {
        self.show(&live::filling_line(what, bytes), self.earlier());
    }

    fn pulse(&mut self, pulse: &Pulse) {
        let trial =
            self.now.trials.map(|trials| live::trial_line(trials, self.now.trial.load(Ordering::Relaxed)));
        let trial = trial.unwrap_or_default();
        self.show(&format!("{trial}{}", live::pulse_line(pulse)), self.earlier() + pulse.at.as_seconds());
    }
}

impl SuiteWatch for SuiteLive {
    fn begun(&mut self, scenario: Begun<'_>) {
        let Begun { name, number, ready, rested } = scenario;
        self.done += rested;
        let trials = ready.plan.trials;
        self.now = Now {
            heading: format!("[{number}/{}] {name}", self.total),
            trial_seconds: ready.seconds / f64::from(trials.most),
            seconds: ready.seconds,
            trials: Some(trials),
            trial: Arc::default(),
        };
        self.show("", 0.0);
    }

    fn news(&self) -> Box<dyn FnMut(News)> {
        let (trial, bar, heading) = (Arc::clone(&self.now.trial), self.bar.clone(), self.now.heading.clone());
        Box::new(move |news| match (news, &bar) {
            (News::Trial(number), _) => trial.store(number, Ordering::Relaxed),
            (News::CoolDown(pause), Some(bar)) => {
                bar.set_message(format!("{heading}  {}", live::resting(pause)))
            }
            (News::CoolDown(_), None) => {}
        })
    }

    fn ended(&mut self, row: &Row) {
        self.done += self.now.seconds;
        self.show("", 0.0);
        self.announce(&format!("{}: {}", self.now.heading, outcome(&row.status)));
    }
}

/// What came of a scenario, in a line.
fn outcome(status: &Status) -> String {
    let Status::Done(row) = status else {
        let why = status.why().map(|why| format!(": {why}")).unwrap_or_default();
        return format!("{}{why}", status.word());
    };
    let p95 = row.end_to_end_ms.map(|spread| format!("P95 {} s, ", short(spread.p95 / 1000.0)));
    format!(
        "{} tok/s, {}storage reads {} and writes {} GiB/s",
        short(row.tokens_per_second),
        p95.unwrap_or_default(),
        short(row.storage_read_gbps),
        short(row.storage_write_gbps)
    )
}

impl Drop for SuiteLive {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
