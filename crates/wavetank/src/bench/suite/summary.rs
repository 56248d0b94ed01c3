//! What a suite came to so far, from the reports in its folder.

use serde_json::{Value, json};
use wavetank_model::{Error, Result};
use wavetank_report::render::suite as render;
use wavetank_report::render::workbook::Field;
use wavetank_report::suite::{Figures, Row, Status, SuiteSummary};

use super::outline;
use super::plan::{SuitePlan, Task};
use super::record::{Folder, Progress};
use super::run::Suite;
use crate::bench::sheet::run_parameters;

/// The version of the summary's layout.
const SCHEMA_VERSION: u32 = 1;
const JSON: &str = "summary.json";
const XLSX: &str = "summary.xlsx";

impl Suite {
    /// Every scenario, and what came of it.
    pub fn summary(&self) -> Result<SuiteSummary> {
        let rows = (0..self.record.steps.len()).map(|at| self.row(at)).collect::<Result<_>>()?;
        Ok(SuiteSummary { quick: self.record.plan.parameters.quick, rows })
    }

    /// What a reader should know before using the numbers.
    pub fn warnings(&self) -> Vec<String> {
        self.record.plan.warnings.iter().chain(&self.record.notes).cloned().collect()
    }

    /// Writes `summary.json` and `summary.xlsx`, whatever has been done so far.
    pub fn write_summary(&self) -> Result<SuiteSummary> {
        let summary = self.summary()?;
        let (plan, folder) = (&self.record.plan, &self.folder);
        folder.write_json(JSON, &self.json(&summary))?;
        let sheets = self.sheets()?;
        folder.write(XLSX, |out| render::xlsx(&summary, fields(plan), &sheets, out))?;
        Ok(summary)
    }

    pub(super) fn row(&self, at: usize) -> Result<Row> {
        let step = &self.record.plan.steps[at];
        let status = match (&step.task, &self.record.steps[at]) {
            (Task::Skip { reason }, _) => Status::Skipped { why: reason.clone() },
            (_, Progress::Done { report, .. }) => Status::Done(Box::new(figures(&self.folder, report)?)),
            (_, Progress::Failed { why, .. }) => Status::Failed { why: why.clone() },
            (_, Progress::Interrupted { .. }) => Status::Interrupted,
            (_, Progress::NotRun | Progress::Skipped) => Status::NotRun,
        };
        Ok(Row { name: step.name.clone(), title: step.title.clone(), status })
    }

    fn json(&self, summary: &SuiteSummary) -> Value {
        let plan = &self.record.plan;
        let mut json = json!({
            "schema_version": SCHEMA_VERSION,
            "wavetank_version": plan.wavetank_version,
            "hardware": plan.hardware,
            "parameters": plan.parameters,
            "warnings": self.warnings(),
        });
        if let Value::Object(keys) = &mut json {
            keys.extend(render::json(summary));
        }
        let trials = self.record.steps.iter().map(|progress| match progress {
            Progress::Done { trials, .. } => json!(trials),
            _ => json!([]),
        });
        let files = self.record.steps.iter().map(|progress| match progress {
            Progress::Done { report, .. } => json!(report),
            Progress::Failed { partial, .. } | Progress::Interrupted { partial } => json!(partial),
            Progress::NotRun | Progress::Skipped => Value::Null,
        });
        if let Some(rows) = json["scenarios"].as_array_mut() {
            for ((row, file), trials) in rows.iter_mut().zip(files).zip(trials) {
                row["report"] = file;
                row["trial_reports"] = trials;
            }
        }
        json
    }

    /// The full results of the scenarios that went to their end.
    fn sheets(&self) -> Result<Vec<render::SuiteSheet>> {
        let steps = self.record.plan.steps.iter().zip(&self.record.steps);
        let done = steps.filter_map(|(step, progress)| match (&step.task, progress) {
            (Task::Run(ready), Progress::Done { report, .. }) => Some((step, ready, report)),
            _ => None,
        });
        done.map(|(step, ready, report)| {
            Ok(render::SuiteSheet {
                name: step.name.clone(),
                report: self.folder.read_json(report)?,
                parameters: run_parameters(&ready.plan),
            })
        })
        .collect()
    }
}

fn figures(folder: &Folder, report: &str) -> Result<Figures> {
    let place = || folder.0.join(report).display().to_string();
    Figures::of(&folder.read_json(report)?).map_err(|error: Error| error.at(place()))
}

/// The machine and what was chosen for it, as lines of a sheet.
fn fields(plan: &SuitePlan) -> Vec<Field> {
    let machine = outline::machine_fields(&plan.hardware);
    let chosen = outline::chosen_fields(&plan.parameters);
    let warnings = plan.warnings.iter().map(|warning| ("Warning".to_owned(), warning.clone()));
    let lines = machine.into_iter().chain(chosen).chain(warnings);
    lines.map(|(name, text)| (name, Value::from(text))).collect()
}
