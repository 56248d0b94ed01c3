//! A storage benchmark from its plan to its report: trials are run until there are enough.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wavetank_bench::{Ended, Feed, Given, Harness, Observer, Outcome, Time, Watch};
use wavetank_model::{Error, Result, TierRole};
use wavetank_report::storage::{AtEnd, ClassTarget, Clock, Setting, TierUse};
use wavetank_report::{Storage, StorageSummary};

use super::block_layer::{Traced, Tracing};
use super::dataset::{self, Dataset};
use super::finished::{Benched, Finished};
use super::iolog::IoLog;
use super::plan::BenchPlan;
use super::rank::OwnFolder;
use super::stamp::Stamped;
use super::tape::{CallRecording, RecordedCalls, Tape};
use super::trials::{self, Agreement, Heat, Heating};
use super::validation::Validation;

/// What a caller may watch and influence while a benchmark runs.
pub struct BenchObserver<'a> {
    /// Shows how it goes.
    pub watch: &'a mut (dyn Watch + Send),
    /// Raised to end the run with what it has.
    pub stop: &'a AtomicBool,
    /// Told what happens between trials.
    pub news: &'a mut dyn FnMut(News),
}

/// What happens between trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A trial begins, from 1.
    Trial(u32),
    /// The drive rests until the next one.
    CoolDown(Duration),
}

/// What is written while a benchmark runs.
#[derive(Clone, Copy, Default)]
pub struct BenchFiles<'a> {
    /// Every operation, in the reference's format.
    pub log: Option<&'a Path>,
    /// Every call on the store.
    pub calls: Option<&'a CallRecording>,
}

/// One run of the plan.
pub(super) struct Trial {
    pub(super) summary: StorageSummary,
    pub(super) outcome: Outcome,
    /// What the block layer saw, if someone looked.
    pub(super) traced: Option<Traced>,
    pub(super) heating: Heating,
    /// Whether the page cache was emptied before it, or why not; absent where that was not asked for.
    pub(super) page_cache: Option<Result<(), String>>,
    /// Its calls, if they were recorded.
    pub(super) recording: Option<RecordedCalls>,
}

impl Trial {
    /// Whether it went to its end.
    fn is_whole(&self) -> bool {
        matches!(self.outcome.ended, Ended::Duration | Ended::Drained | Ended::PeakFound)
    }
}

/// What trials came to.
#[derive(Default)]
pub(super) struct Trials {
    /// At least one.
    pub(super) all: Vec<Trial>,
    /// What went wrong besides: why there are no more of them, what could not be removed.
    pub(super) trouble: Vec<String>,
    /// Whether someone ended them.
    pub(super) interrupted: bool,
}

impl Trials {
    /// These, and what went wrong after them.
    fn after(mut self, what: &str, error: &Error) -> Self {
        let sentence = format!("{what}: {error}").replace('\n', " — ");
        if !self.trouble.contains(&sentence) {
            self.trouble.push(sentence);
        }
        self
    }

    /// Those that went to their end; all of them if none did.
    pub(super) fn whole(&self) -> Vec<&Trial> {
        self.chosen().into_iter().map(|at| &self.all[at]).collect()
    }

    fn chosen(&self) -> Vec<usize> {
        let whole: Vec<usize> = (0..self.all.len()).filter(|&at| self.all[at].is_whole()).collect();
        if whole.is_empty() { (0..self.all.len()).collect() } else { whole }
    }

    /// What those that went to their end say about one number.
    pub(super) fn agreement(&self, value: impl Fn(&StorageSummary) -> f64) -> Agreement {
        Agreement::of(&self.whole().iter().map(|trial| value(&trial.summary)).collect::<Vec<_>>())
    }

    /// The same about the metric that runs are compared by.
    pub(super) fn primary(&self) -> Agreement {
        self.agreement(|summary| summary.primary_metric().value)
    }

    /// The one that is reported: the median of those that went to their end.
    pub(super) fn reported(&self) -> usize {
        self.chosen()[self.primary().median_trial()]
    }

    /// Whether further ones are neither wanted nor of use.
    fn are_enough(&self, plan: &BenchPlan) -> bool {
        let is_tight = plan.trials.until_ci_percent.is_some_and(|percent| self.primary().is_tight(percent));
        self.all.len() as u32 >= plan.trials.most || is_tight || !self.all.last().is_some_and(Trial::is_whole)
    }
}

/// What is said when entries could not be removed.
pub(super) const LEFT_BEHIND: &str = "entries may be left in the cache directory, it could not be cleaned";

/// Runs `plan` and writes `files` meanwhile. Nothing of ours stays in the cache directory, also after an
/// error, unless the plan says so; where that fails, the report stands and says it.
pub fn bench(plan: &BenchPlan, observer: BenchObserver<'_>, files: BenchFiles<'_>) -> Result<Benched> {
    let tracing = Tracing::of(plan)?;
    let validation = plan.validation_trace.as_deref().map(Validation::read).transpose()?;
    let dataset = dataset::read(plan)?;
    // A simulation is the same wherever it is run.
    let harness = (!plan.is_simulated()).then(|| Harness::measure(&plan.run)).transpose()?;
    let folder = (plan.temporary_cache && !plan.is_simulated()).then(temporary).transpose()?;
    let mut run = plan.own_run();
    if let Some(folder) = &folder {
        let storage = run.tiers.iter_mut().find(|tier| tier.role == TierRole::Storage);
        let storage = storage.expect("a temporary directory is for the storage tier");
        storage.location = folder.path().to_string_lossy().into_owned();
    }
    let own_folder = OwnFolder::before(plan, &run);
    let runner = Runner { plan, run: &run, dataset: dataset.as_ref(), tracing, files };
    let trials = runner.run_trials(observer);
    let cleaned = wavetank_bench::clean(&run);
    own_folder.remove();
    let trials = match cleaned {
        // What was measured stands, whatever is left behind.
        Err(error) => trials?.after(LEFT_BEHIND, &error),
        Ok(()) => trials?,
    };
    Ok(Finished { plan, dataset, harness, validation, trials }.report())
}

/// Runs one plan again and again.
struct Runner<'a> {
    plan: &'a BenchPlan,
    /// What is run, with the directory it has.
    run: &'a wavetank_bench::Plan,
    dataset: Option<&'a Dataset>,
    tracing: Option<Tracing>,
    files: BenchFiles<'a>,
}

impl Runner<'_> {
    /// Runs trials until there are enough. An error after the first leaves those before it.
    fn run_trials(&self, observer: BenchObserver<'_>) -> Result<Trials> {
        let BenchObserver { watch, stop, news } = observer;
        let mut trials = Trials::default();
        loop {
            let number = trials.all.len() as u32 + 1;
            news(News::Trial(number));
            match self.run_trial(number, &mut *watch, stop) {
                Ok(trial) => trials.all.push(trial),
                Err(error) if trials.all.is_empty() => return Err(error),
                Err(error) => {
                    let what = format!("trial {} could not be run", trials.all.len() + 1);
                    return Ok(trials.after(&what, &error));
                }
            }
            let is_cut = trials.all.last().is_some_and(|trial| trial.outcome.ended == Ended::Interrupted);
            if is_cut || trials.are_enough(self.plan) {
                return Ok(Trials { interrupted: is_cut, ..trials });
            }
            if let Err(error) = self.between(stop, news) {
                return Ok(trials.after(LEFT_BEHIND, &error));
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(Trials { interrupted: true, ..trials });
            }
        }
    }

    /// Every trial begins alike: without files of the one before, and not warmer.
    fn between(&self, stop: &AtomicBool, news: &mut dyn FnMut(News)) -> Result<()> {
        wavetank_bench::clean(&wavetank_bench::Plan { keep_cache: false, ..self.run.clone() })?;
        let cooldown = self.plan.trials.cooldown;
        if cooldown.0 > 0 {
            news(News::CoolDown(Duration::from_nanos(cooldown.0)));
            trials::rest(cooldown, stop);
        }
        Ok(())
    }

    fn run_trial(&self, number: u32, watch: &mut (dyn Watch + Send), stop: &AtomicBool) -> Result<Trial> {
        let tape = self.files.calls.map(|to| Tape::start(to, self.plan, number)).transpose()?;
        let page_cache = self.plan.trials.drop_page_cache.then(trials::drop_page_cache);
        let before = Heat::now(self.directory().as_deref());
        let mut sink = Stamped::new(Storage::new(&setting(self.plan)));
        let calls = tape.as_ref().map(Tape::calls);
        let (outcome, traced) = self.run_traced(Observer { sink: &mut sink, watch, stop, calls });
        let outcome = outcome?;
        let recording = tape.map(Tape::finish).transpose()?;
        let tiers = outcome.usage.iter().map(|usage| TierUse { bytes: usage.bytes, entries: usage.entries });
        let summary = sink.summary(AtEnd { tiers: tiers.collect() });
        let heating = Heating { before, after: Heat::now(self.directory().as_deref()) };
        Ok(Trial { summary, outcome, traced, heating, page_cache, recording })
    }

    fn run_traced(&self, observer: Observer<'_>) -> (Result<Outcome>, Option<Traced>) {
        let Some(tracing) = &self.tracing else { return (self.run_once(observer), None) };
        let (outcome, traced) = tracing.around(observer, |observer| self.run_once(observer));
        (outcome, Some(traced))
    }

    fn run_once(&self, observer: Observer<'_>) -> Result<Outcome> {
        let devices = self.plan.devices()?;
        let recording = self.dataset.map(|dataset| &dataset.recording);
        let given = Given { recording, devices: devices.as_ref() };
        let Some(path) = self.files.log else {
            return wavetank_bench::run(self.run, given, observer, None);
        };
        let mut log = IoLog::create(path)?;
        let mut write = |row: &wavetank_bench::Logged| log.write(row);
        let outcome = wavetank_bench::run(self.run, given, observer, Some(&mut write))?;
        log.finish()?;
        Ok(outcome)
    }

    /// Where the storage tier is, or the nearest folder above it that is there yet.
    fn directory(&self) -> Option<PathBuf> {
        let path = Path::new(&self.run.storage().filter(|_| !self.plan.is_simulated())?.location);
        path.ancestors().find(|folder| folder.is_dir()).map(Path::to_path_buf)
    }
}

/// A directory for one benchmark, gone when it is dropped.
pub(super) fn temporary() -> Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("wavetank_bench_").tempdir().map_err(|error| {
        Error::usage(format!("cannot make a temporary directory: {error}")).hint("give --cache-dir")
    })
}

fn setting(plan: &BenchPlan) -> Setting {
    let run = &plan.run;
    Setting {
        tiers: run.tiers.iter().map(|tier| tier.role).collect(),
        bytes_per_token: run.bytes_per_token,
        targets: run.targets.map(|target| ClassTarget {
            p95_ms: target.target_latency_p95_ms,
            p99_ms: target.target_latency_p99_ms,
            p999_ms: target.target_latency_p999_ms,
            p9999_ms: target.target_latency_p9999_ms,
        }),
        cpu_mem_bytes: (plan.cpu_mem_gb * wavetank_report::storage::GIB) as u64,
        generation_ns_per_token: run.pace.0.0,
        seed: plan.seed(),
        profile: plan.profile,
        criteria: plan.criteria,
        clock: match (run.time, plan.moves_bytes()) {
            (Time::Wall, _) => Clock::Wall,
            (Time::Virtual, true) => Clock::Virtual,
            (Time::Virtual, false) => Clock::VirtualLogged,
            (Time::Modelled, _) => Clock::Simulated,
        },
        counted: run.max_requests.is_some() || matches!(run.feed, Feed::Recording { cycles: Some(_), .. }),
        scaled: run.scaling.is_some(),
    }
}
