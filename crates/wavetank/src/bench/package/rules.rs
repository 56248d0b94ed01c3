//! What has to hold for a benchmark to be submitted: one row per rule.

use serde_json::Value;
use wavetank_bench::Time;
use wavetank_model::TierRole;

use crate::bench::merge::ENOUGH;
use crate::bench::plan::BenchPlan;
use crate::bench::submission::{DRIVES, SUBMISSION_SECONDS, SUBMISSION_SEED, SUBMISSIONS, Submission};
use crate::bench::suite::Hardware;
use crate::bench::trials::FEWEST;

/// A window may be shorter than planned by this part: it ends with an operation, not on the instant.
const SHORTER: f64 = 0.01;

/// A benchmark in a package, as it was read.
pub(super) struct Run {
    pub(super) plan: BenchPlan,
    /// The machines it ran on.
    pub(super) systems: Vec<Hardware>,
    /// The report of all trials.
    pub(super) report: Value,
    /// The report of each trial.
    pub(super) trials: Vec<Value>,
}

/// A rule.
pub(super) struct Rule {
    /// What has to hold.
    pub(super) name: &'static str,
    /// What was found, or what is wrong.
    pub(super) check: fn(&Run) -> Result<String, String>,
}

/// Every rule, in the order they are shown.
pub(super) const RULES: &[Rule] = &[
    Rule { name: "one of the submissions", check: is_submission },
    Rule { name: "seed", check: seed },
    Rule { name: "duration", check: duration },
    Rule { name: "trials", check: trials },
    Rule {
        name: "no RAG",
        check: |run| none(run.plan.run.habits.documents.count == 0, "documents are read"),
    },
    Rule { name: "no autoscaling", check: |run| none(run.plan.run.scaling.is_none(), "users change") },
    Rule { name: "real storage", check: storage },
    Rule { name: "trials are of the plan", check: same_plan },
    Rule { name: "the report is of the trials", check: same_trials },
    Rule { name: "ranks at the same time", check: same_time },
    Rule { name: "system description", check: systems },
    Rule { name: "nothing lost", check: nothing_lost },
    Rule { name: "storage was used", check: storage_was_used },
];

fn none(holds: bool, otherwise: &str) -> Result<String, String> {
    if holds { Ok("none".to_owned()) } else { Err(otherwise.to_owned()) }
}

fn is_submission(run: &Run) -> Result<String, String> {
    if let Some(one) = Submission::of(&run.plan) {
        return Ok(one.title.to_owned());
    }
    let nearest = SUBMISSIONS.iter().map(|one| (one, one.differences(&run.plan)));
    let (one, differences) =
        nearest.min_by_key(|(_, differences)| differences.len()).expect("there are submissions");
    Err(format!("nearest is {}, but {}", one.name, differences.join("; ")))
}

fn seed(run: &Run) -> Result<String, String> {
    match run.plan.run.seed {
        SUBMISSION_SEED => Ok(SUBMISSION_SEED.to_string()),
        other => Err(format!("{other}, not {SUBMISSION_SEED}")),
    }
}

fn duration(run: &Run) -> Result<String, String> {
    let planned = run.plan.run.duration.as_seconds();
    if planned < SUBMISSION_SECONDS.into() {
        return Err(format!("{planned} s, not {SUBMISSION_SECONDS}"));
    }
    for (number, report) in (1..).zip(&run.trials) {
        let elapsed = report.pointer("/summary/elapsed_time").and_then(Value::as_f64).unwrap_or(0.0);
        let least = planned * (1.0 - SHORTER);
        if elapsed < least {
            return Err(format!("trial {number} measured {elapsed:.1} s of {planned}"));
        }
        // All ranks together measure from the first beginning to the last end.
        for rank in ranks(report) {
            let elapsed = rank["elapsed_time"].as_f64().unwrap_or(0.0);
            if elapsed < least {
                let rank = &rank["rank"];
                return Err(format!("trial {number} of rank {rank} measured {elapsed:.1} s of {planned}"));
            }
        }
    }
    Ok(format!("{planned} s"))
}

fn trials(run: &Run) -> Result<String, String> {
    let whole = run.trials.iter().filter(|report| report["partial"] == false).count();
    if whole < FEWEST as usize {
        return Err(format!("{whole} went to their end, {FEWEST} are needed"));
    }
    Ok(whole.to_string())
}

fn storage(run: &Run) -> Result<String, String> {
    let plan = &run.plan.run;
    let backend = plan.storage().map_or("none", |tier| tier.backend.as_str());
    if !DRIVES.contains(&backend) {
        return Err(format!("{backend} is no drive"));
    }
    if plan.time != Time::Wall {
        return Err("time was virtual".to_owned());
    }
    Ok(backend.to_owned())
}

fn same_plan(run: &Run) -> Result<String, String> {
    for (number, report) in (1..).zip(&run.trials) {
        let plan: BenchPlan = serde_json::from_value(report["plan"].clone())
            .map_err(|error| format!("the plan of trial {number}: {error}"))?;
        if plan != run.plan {
            return Err(format!("trial {number} was run with another plan"));
        }
    }
    Ok("all".to_owned())
}

/// The rows of the ranks of a merged report; none of another.
fn ranks(report: &Value) -> impl Iterator<Item = &Value> {
    report.pointer("/merged/ranks").and_then(Value::as_array).into_iter().flatten()
}

fn same_trials(run: &Run) -> Result<String, String> {
    let number = |key: &str| run.report["trials"][key].as_u64().unwrap_or(0) as usize;
    let (listed, told, reported) = (run.trials.len(), number("run"), number("reported"));
    if told != listed {
        return Err(format!("it is of {told} trials, and {listed} are listed"));
    }
    let value = |report: &Value| report.pointer("/summary/primary_metric/value").and_then(Value::as_f64);
    let trial = reported.checked_sub(1).and_then(|at| run.trials.get(at));
    let (Some(theirs), Some(its)) = (trial.and_then(value), value(&run.report)) else {
        return Err(format!("trial {reported} or the report has no primary metric"));
    };
    if theirs != its {
        return Err(format!("its primary metric is {its}, and that of trial {reported} is {theirs}"));
    }
    Ok(format!("of {told}, trial {reported} is reported"))
}

/// Bandwidths that were added up are those of one time.
fn same_time(run: &Run) -> Result<String, String> {
    if run.trials.iter().all(|report| report.get("merged").is_none()) {
        return Ok("one process".to_owned());
    }
    let mut least = f64::INFINITY;
    for (number, report) in (1..).zip(&run.trials) {
        let (of, there) = (report["merged"]["of"].as_u64().unwrap_or(0), ranks(report).count() as u64);
        if of != there {
            return Err(format!("trial {number} is of {there} ranks, and there were {of}"));
        }
        let share = report.pointer("/merged/overlap/share").and_then(Value::as_f64).unwrap_or(0.0);
        if share < ENOUGH {
            let percent = share * 100.0;
            return Err(format!(
                "all ranks of trial {number} measured together for {percent:.0} % of its time"
            ));
        }
        least = least.min(share);
    }
    Ok(format!("for {:.0} % of the time, at least", least * 100.0))
}

fn systems(run: &Run) -> Result<String, String> {
    let (found, needed) = (run.systems.len(), ranks(&run.report).count().max(1));
    if found != needed {
        return Err(format!("of {found} machines, and {needed} ran it"));
    }
    let mut names: Vec<String> = run.systems.iter().map(system).collect();
    names.dedup();
    Ok(names.join("; "))
}

fn system(system: &Hardware) -> String {
    let cpu = system.cpu.as_deref().unwrap_or("a processor that is not known");
    format!("{cpu}, {} cores, {}", system.cores, system.place.drive_names())
}

fn nothing_lost(run: &Run) -> Result<String, String> {
    for (number, report) in (1..).zip(&run.trials) {
        let lost = report["lost_events"].as_u64().unwrap_or(u64::MAX);
        if lost > 0 {
            return Err(format!("{lost} events of trial {number}: its numbers are too small"));
        }
        let failed = ["failed_reads", "failed_writes"].map(|key| {
            report.pointer(&format!("/summary/cache_stats/{key}")).and_then(Value::as_u64).unwrap_or(1)
        });
        if failed.iter().sum::<u64>() > 0 {
            return Err(format!("operations of trial {number} failed"));
        }
    }
    Ok("nothing".to_owned())
}

fn storage_was_used(run: &Run) -> Result<String, String> {
    for (number, report) in (1..).zip(&run.trials) {
        let key = format!("/summary/cache_stats/tier_{}_kv_bytes_read_gb", TierRole::Storage.name());
        if report.pointer(&key).and_then(Value::as_f64).unwrap_or(0.0) <= 0.0 {
            return Err(format!("trial {number} read nothing from it"));
        }
    }
    Ok("in every trial".to_owned())
}
