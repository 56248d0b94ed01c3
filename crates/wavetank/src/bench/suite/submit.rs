//! What of a suite can be submitted, as a package.

use serde_json::Value;
use wavetank_model::{Error, Result};

use super::plan::Task;
use super::record::Progress;
use super::run::Suite;
use crate::bench::package::{Package, Results};

impl Suite {
    /// The report of one trial.
    pub(super) fn trial(&self, file: &str) -> Result<Value> {
        let report = self.folder.read_json(file)?;
        if report["summary"].is_object() && report["trial"].is_object() {
            return Ok(report);
        }
        Err(Error::input("is not the report of a trial").at(self.folder.0.join(file).display().to_string()))
    }

    /// Adds every option of a submission that is done to a package; how many there were.
    pub fn package(&self, package: &mut Package) -> Result<usize> {
        let mut count = 0;
        for (step, progress) in self.record.plan.steps.iter().zip(&self.record.steps) {
            let (Task::Run(ready), Progress::Done { report, trials }) = (&step.task, progress) else {
                continue;
            };
            if !step.is_submission() {
                continue;
            }
            let report = self.folder.read_json(report)?;
            let trials: Vec<Value> = trials.iter().map(|file| self.trial(file)).collect::<Result<_>>()?;
            let systems = std::slice::from_ref(&self.record.plan.hardware);
            let results = Results { plan: &ready.plan, report: &report, trials: &trials, systems };
            package.add(&step.name, results)?;
            count += 1;
        }
        package.seal()?;
        Ok(count)
    }
}
