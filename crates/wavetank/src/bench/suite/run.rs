//! A suite from its plan to its results, one scenario after the other. What is done is kept at once; what
//! fails is kept with the reason, and the next one begins.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use wavetank_bench::Watch;
use wavetank_model::{Error, Nanos, Result};
use wavetank_report::suite::Row;

use super::hardware::Place;
use super::parameters::{Parameters, QUICK_WARNING};
use super::plan::{Ready, Step, SuitePlan, Task, folder_of};
use super::record::{Folder, Progress, Record};
use crate::bench::finished::Benched;
use crate::bench::run::{BenchFiles, BenchObserver, News, bench};
use crate::bench::trials;

/// A suite with its folder.
pub struct Suite {
    pub(super) folder: Folder,
    pub(super) record: Record,
}

/// What a caller may watch and influence while a suite runs.
pub struct SuiteObserver<'a> {
    /// Shows how it goes.
    pub watch: &'a mut dyn SuiteWatch,
    /// Raised to end the suite with what it has.
    pub stop: &'a AtomicBool,
}

/// Who is told about a suite: what each benchmark does, and when scenarios begin and end.
pub trait SuiteWatch: Watch + Send {
    /// A scenario begins.
    fn begun(&mut self, scenario: Begun<'_>);
    /// Takes what happens between trials of the one that runs.
    fn news(&self) -> Box<dyn FnMut(News)>;
    /// It has ended, and this is what came of it.
    fn ended(&mut self, row: &Row);
}

/// A scenario that begins.
pub struct Begun<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its number among all scenarios, from 1.
    pub number: usize,
    /// What is run.
    pub ready: &'a Ready,
    /// Seconds of rest before it.
    pub rested: f64,
}

/// How a scenario ended, and what is to be kept of it.
struct Ended {
    progress: Progress,
    /// Files by their names.
    reports: Vec<(String, Value)>,
}

impl Suite {
    /// A suite that has not begun; its results go to `folder`, which is its own.
    pub fn begin(plan: SuitePlan, folder: &Path) -> Result<Self> {
        let folder = Folder::create(folder)?;
        let record = Record::of(plan);
        folder.keep(&record)?;
        Ok(Self { folder, record })
    }

    /// The suite whose results are in `folder`. What failed or was interrupted is run again, and so is what
    /// has no report any more.
    pub fn resume(folder: &Path) -> Result<Self> {
        let folder = Folder(folder.to_owned());
        let record = folder.record()?;
        let mut suite = Self { folder, record };
        let mut lost_reports = Vec::new();
        for at in 0..suite.record.steps.len() {
            if let Some(error) = suite.lost(at) {
                lost_reports.push(format!("run again: {}", one_line(&error)));
                suite.record.steps[at] = Progress::NotRun;
            }
        }
        if suite.left().next().is_some() {
            // What went wrong earlier is seen again, or is gone.
            suite.record.notes = lost_reports;
            suite.record.plan.check_here().map_err(|error| error.within(suite.place()))?;
        }
        Ok(suite)
    }

    /// Why the reports of a step that is done are of no use any more, if they are not.
    fn lost(&self, at: usize) -> Option<Error> {
        let Progress::Done { trials, .. } = &self.record.steps[at] else { return None };
        let trials = trials.iter().map(|file| self.trial(file)).collect::<Result<Vec<_>>>();
        self.row(at).err().or(trials.err())
    }

    /// What it does in all.
    pub fn plan(&self) -> &SuitePlan {
        &self.record.plan
    }

    /// Where its results are.
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    fn place(&self) -> String {
        self.folder.0.display().to_string()
    }

    /// The numbers (from 0) of the steps that are still to run, and what they are.
    fn left(&self) -> impl Iterator<Item = (usize, &Ready)> {
        let steps = self.record.plan.steps.iter().zip(&self.record.steps).enumerate();
        steps.filter_map(|(at, (step, progress))| match (&step.task, progress) {
            (Task::Skip { .. }, _) | (_, Progress::Done { .. }) => None,
            (Task::Run(ready), _) => Some((at, ready.as_ref())),
        })
    }

    /// How many scenarios are still to run, and for how long at most, about.
    pub fn to_run(&self) -> (usize, f64) {
        self.record.plan.lasting(self.left().map(|(_, ready)| ready))
    }

    /// Runs what is still to run, until someone ends it. Nothing of ours stays in the cache directory.
    pub fn run(&mut self, observer: SuiteObserver<'_>) -> Result<()> {
        let SuiteObserver { watch, stop } = observer;
        let _made = Made(self.record.plan.hardware.place.clone());
        let left: Vec<usize> = self.left().map(|(at, _)| at).collect();
        let pause = Nanos::from_seconds(self.record.plan.parameters.cooldown);
        for (turn, at) in left.into_iter().enumerate() {
            if turn > 0 {
                trials::rest(pause, stop);
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let rested = if turn > 0 { pause.as_seconds() } else { 0.0 };
            self.run_step((at, rested), watch, stop)?;
            watch.ended(&self.row(at)?);
        }
        Ok(())
    }

    /// Runs a step, by its number, after so many seconds of rest.
    fn run_step(
        &mut self,
        (at, rested): (usize, f64),
        watch: &mut dyn SuiteWatch,
        stop: &AtomicBool,
    ) -> Result<()> {
        let step = &self.record.plan.steps[at];
        let Task::Run(ready) = &step.task else { unreachable!("what is skipped is not left to run") };
        let (name, number) = (step.name.as_str(), at + 1);
        watch.begun(Begun { name, number, ready, rested });
        let mut news = watch.news();
        let observer = BenchObserver { watch, stop, news: &mut news };
        let benched = bench(&ready.plan, observer, BenchFiles::default());
        let leftover = remove_own(&folder_of(&self.record.plan.hardware.place.directory, name));
        let stem = format!("{number:02}-{name}");
        let Ended { progress, reports } = ended(&stem, step, benched);
        // What an earlier attempt had measured is not asked for any more.
        self.folder.remove(&partial_of(&stem));
        let kept = reports.into_iter().try_for_each(|(file, mut report)| {
            mark(&mut report, name, &self.record.plan.parameters);
            self.folder.write_json(&file, &report)
        });
        self.record.steps[at] = match kept {
            Ok(()) => progress,
            Err(error) => failed(&error),
        };
        self.record.notes.extend(leftover);
        self.folder.keep(&self.record)
    }
}

/// Where what a scenario measured before it was ended goes.
fn partial_of(stem: &str) -> String {
    format!("{stem}.partial.json")
}

/// What becomes of a benchmark whose files are called `stem`.
fn ended(stem: &str, step: &Step, benched: Result<Benched>) -> Ended {
    let benched = match benched {
        Ok(benched) => benched,
        Err(error) => return Ended { progress: failed(&error), reports: Vec::new() },
    };
    let Benched { report, trial_reports, failure, interrupted, .. } = benched;
    if interrupted || failure.is_some() {
        let partial = partial_of(stem);
        let reports = vec![(partial.clone(), report)];
        let progress = match failure {
            Some(why) => Progress::Failed { why, partial: Some(partial) },
            None => Progress::Interrupted { partial: Some(partial) },
        };
        return Ended { progress, reports };
    }
    let submitted = if step.is_submission() { trial_reports } else { Vec::new() };
    let numbered = |(number, trial): (usize, Value)| (format!("{stem}.trial{number}.json"), trial);
    let mut reports: Vec<(String, Value)> = (1..).zip(submitted).map(numbered).collect();
    let trials = reports.iter().map(|(file, _)| file.clone()).collect();
    let file = format!("{stem}.json");
    reports.push((file.clone(), report));
    Ended { progress: Progress::Done { report: file, trials }, reports }
}

/// Says in a scenario's report where it comes from.
fn mark(report: &mut Value, scenario: &str, parameters: &Parameters) {
    report["suite"] = json!({ "scenario": scenario, "quick": parameters.quick });
    if let Some(warnings) = report["warnings"].as_array_mut().filter(|_| parameters.quick) {
        warnings.push(json!(QUICK_WARNING));
    }
}

fn failed(error: &Error) -> Progress {
    Progress::Failed { why: one_line(error), partial: None }
}

/// An error for a table.
fn one_line(error: &Error) -> String {
    error.to_string().replace('\n', " — ")
}

/// Removes a directory of ours, which is empty after a benchmark; what is not is said.
fn remove_own(folder: &Path) -> Option<String> {
    match fs::remove_dir(folder) {
        Err(error) if folder.exists() => Some(format!("cannot remove {}: {error}", folder.display())),
        _ => None,
    }
}

/// Directories that were made for a suite, gone when it is dropped unless someone else uses them.
struct Made(Place);

impl Drop for Made {
    fn drop(&mut self) {
        for folder in &self.0.made {
            let _ = fs::remove_dir(folder);
        }
    }
}
