//! A simulated storage benchmark held against real runs of the same plan: how far it is from their median,
//! beside how far they are from each other.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use wavetank_model::{Error, Result, TierRole};
use wavetank_report::median;
use wavetank_report::render::table::framed;
use wavetank_report::storage::differences;

/// What a number counts or measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Bytes or operations.
    Count,
    /// A mean of latencies, in milliseconds.
    Mean,
    /// The latency that 95 of 100 do not exceed, in milliseconds.
    P95,
}

impl Kind {
    /// How far from the median of the real runs is near enough, as a share of it.
    fn bound(self) -> f64 {
        match self {
            Self::Count => 0.01,
            Self::Mean => 0.15,
            Self::P95 => 0.25,
        }
    }
}

/// All tiers together.
pub const ALL: &str = "all";

/// One number of a tier, or of all of them: which tier has an entry may be a matter of time, and what is
/// found in any is less so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Residual {
    /// Of which tier; [`ALL`] for what they have together.
    pub tier: &'static str,
    /// What it is.
    pub name: &'static str,
    /// What it counts or measures.
    pub kind: Kind,
    /// In the simulation.
    pub simulated: f64,
    /// In each real run.
    pub measured: Vec<f64>,
    /// The median of the real runs.
    pub median: f64,
    /// From the least to the most of the real runs, as a share of the median.
    pub spread: f64,
    /// How far the simulation is from the median, as a share of it.
    pub error: f64,
    /// Whether that is near enough; absent where too few operations say nothing.
    pub passed: Option<bool>,
}

/// Every number of every tier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Residuals {
    /// Real runs.
    pub runs: usize,
    /// Tier by tier.
    pub rows: Vec<Residual>,
}

/// Latencies of fewer operations are shown and not judged.
const FEWEST_OPERATIONS: f64 = 20.0;

/// What is looked at: a name, what it is, where it is in a tier's row of a report, and where the number of
/// operations is that it is of.
type Place = (&'static str, Kind, &'static str, &'static str);

const PLACES: &[Place] = &[
    ("hits", Kind::Count, "/hits", ""),
    ("bytes read", Kind::Count, "/reads/bytes", ""),
    ("bytes written", Kind::Count, "/writes/bytes", ""),
    // Up to here also of all tiers together.
    ("bytes moved in", Kind::Count, "/demotions_in/bytes", ""),
    ("bytes moved up", Kind::Count, "/promotions_in/bytes", ""),
    ("read wait, mean", Kind::Mean, "/reads/total_ms/mean", "/reads/operations"),
    ("read wait, P95", Kind::P95, "/reads/total_ms/p95", "/reads/operations"),
    ("write wait, mean", Kind::Mean, "/writes/total_ms/mean", "/writes/operations"),
    ("write wait, P95", Kind::P95, "/writes/total_ms/p95", "/writes/operations"),
];

/// How many of them count for all tiers together what they count in each.
const TOGETHER: usize = 3;

/// What differs between the plan of a simulation and the same for real, or says nothing about what is done.
const FREE: &[&str] = &[
    "media",
    "run.time",
    "run.keep_cache",
    "run.verify",
    "trials",
    "strict",
    "warnings",
    "wavetank_version",
];

impl Residuals {
    /// A simulated report against reports of real runs, each with its file.
    pub fn of(simulated: (&Path, &Value), real: &[(&Path, Value)]) -> Result<Self> {
        let (path, report) = simulated;
        if clock(report) != "simulated" {
            return Err(misplaced(path, "is no report of a simulated benchmark")
                .hint("the first is of `bench --simulate`, the others of the same without it"));
        }
        check_whole(path, report)?;
        for (path, other) in real {
            if clock(other) != "wall" {
                return Err(misplaced(path, "is no report of a real benchmark"));
            }
            check_whole(path, other)?;
            check_plan((path, other), report)?;
        }
        let tiers = tiers(path, report)?;
        let others = real.iter().map(|(path, report)| self::tiers(path, report));
        let others = others.collect::<Result<Vec<&[Value]>>>()?;
        let mut rows = Vec::new();
        for (at, tier) in tiers.iter().enumerate() {
            let role = TierRole::ALL.into_iter().find(|role| tier["role"] == role.name());
            let role = role.ok_or_else(|| misplaced(path, "has a tier without a role"))?.name();
            let others: Vec<&[Value]> =
                others.iter().map(|tiers| tiers.get(at..=at).unwrap_or_default()).collect();
            let row = |place| Residual::of((role, place), &tiers[at..=at], &others);
            rows.extend(PLACES.iter().filter_map(row));
        }
        if tiers.len() > 1 {
            let row = |place| Residual::of((ALL, place), tiers, &others);
            rows.extend(PLACES[..TOGETHER].iter().filter_map(row));
        }
        Ok(Self { runs: real.len(), rows })
    }

    /// Whether there is something to judge, and all of it is near enough.
    pub fn passed(&self) -> bool {
        let mut judged = self.rows.iter().filter_map(|row| row.passed).peekable();
        judged.peek().is_some() && judged.all(|passed| passed)
    }

    /// A row for each number.
    pub fn table(&self) -> String {
        let mut table =
            framed(&["Tier", "", "simulated", "measured (median)", "error", "spread of runs", "bound", ""]);
        for row in &self.rows {
            let mark = row.passed.map_or("too few", |passed| if passed { "✓" } else { "✗" });
            table.add_row(vec![
                row.tier.to_owned(),
                row.name.to_owned(),
                shown(row.kind, row.simulated),
                shown(row.kind, row.median),
                format!("{:+.2} %", row.error * 100.0),
                format!("{:.2} %", row.spread * 100.0),
                format!("{:.0} %", row.kind.bound() * 100.0),
                mark.to_owned(),
            ]);
        }
        table.to_string()
    }
}

impl Residual {
    /// One number, of one tier or the sum over several; nothing where it is nothing everywhere.
    fn of((tier, place): (&'static str, &Place), simulated: &[Value], real: &[&[Value]]) -> Option<Self> {
        let &(name, kind, at, operations) = place;
        let number = |tiers: &[Value], at: &str| -> f64 {
            tiers.iter().filter_map(|tier| tier.pointer(at).and_then(Value::as_f64)).sum()
        };
        let measured: Vec<f64> = real.iter().map(|tiers| number(tiers, at)).collect();
        let simulated_value = number(simulated, at);
        if simulated_value == 0.0 && measured.iter().all(|value| *value == 0.0) {
            return None;
        }
        let median = median(&measured).unwrap_or_default();
        let share = |difference: f64| if difference == 0.0 { 0.0 } else { difference / median };
        let (least, most) = measured
            .iter()
            .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(*value), most.max(*value)));
        let error = share(simulated_value - median);
        let is_judged = kind == Kind::Count || number(simulated, operations) >= FEWEST_OPERATIONS;
        Some(Self {
            tier,
            name,
            kind,
            simulated: simulated_value,
            median,
            spread: share(most - least),
            error,
            passed: is_judged.then_some(error.abs() <= kind.bound()),
            measured,
        })
    }
}

/// Refuses a run that was ended before its time: it counts less than was planned.
fn check_whole(path: &Path, report: &Value) -> Result<()> {
    match report["partial"] == true {
        true => Err(misplaced(path, "is of a run that was interrupted").hint("run it again to its end")),
        false => Ok(()),
    }
}

/// Refuses a run of something else.
fn check_plan((path, real): (&Path, &Value), simulated: &Value) -> Result<()> {
    let is_free = |field: &str| {
        FREE.iter()
            .any(|free| field.strip_prefix(free).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    let other =
        differences(&simulated["plan"], &real["plan"]).into_iter().find(|(field, ..)| !is_free(field));
    match other {
        None => Ok(()),
        Some((field, simulated, real)) => {
            Err(misplaced(path, format!("is of another plan: `{field}` is {real}, not {simulated}"))
                .hint("run what was simulated again without --simulate"))
        }
    }
}

fn tiers<'r>(path: &Path, report: &'r Value) -> Result<&'r [Value]> {
    let tiers = report["summary"]["tiers"].as_array();
    tiers.map(Vec::as_slice).ok_or_else(|| misplaced(path, "has no tiers"))
}

fn clock(report: &Value) -> &str {
    report["summary"]["clock"].as_str().unwrap_or_default()
}

fn misplaced(path: &Path, what: impl Into<String>) -> Error {
    Error::input(what.into()).at(path.display().to_string())
}

fn shown(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Count => format!("{value:.0}"),
        Kind::Mean | Kind::P95 => format!("{value:.3} ms"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(clock: &str, hits: u64, mean: f64, users: u32) -> Value {
        json!({
            "plan": { "run": { "users": users, "time": clock }, "warnings": [clock] },
            "summary": { "clock": clock, "tiers": [{
                "role": "storage", "hits": hits,
                "reads": { "operations": 50, "bytes": hits * 10,
                    "total_ms": { "mean": mean, "p95": mean * 2.0 } },
                "writes": { "operations": 3, "bytes": 30, "total_ms": { "mean": 9.0, "p95": 9.0 } },
            }] },
        })
    }

    fn held(simulated: &Value, real: &[Value]) -> Result<Residuals> {
        let real: Vec<(&Path, Value)> =
            real.iter().map(|report| (Path::new("real.json"), report.clone())).collect();
        Residuals::of((Path::new("sim.json"), simulated), &real)
    }

    /// Broken by: a mean in place of the median, an error of the other side, or latencies of few operations
    /// that are judged.
    #[test]
    fn errors_are_from_the_median() {
        let real = [(100, 1.0), (104, 4.0), (102, 2.0)].map(|(hits, mean)| report("wall", hits, mean, 1));
        let residuals = held(&report("simulated", 102, 2.2, 1), &real).unwrap();
        let row = |name: &str| residuals.rows.iter().find(|row| row.name == name).unwrap();
        assert_eq!((row("hits").error, row("hits").passed), (0.0, Some(true)));
        let mean = row("read wait, mean");
        assert!((mean.error - 0.1).abs() < 1e-9 && (mean.spread - 1.5).abs() < 1e-9, "{mean:?}");
        assert_eq!((row("write wait, mean").passed, row("read wait, P95").passed), (None, Some(true)));
        assert!(residuals.rows.iter().all(|row| row.name != "bytes moved up"), "nothing moved up anywhere");
        assert!(residuals.passed());
        assert!(!held(&report("simulated", 90, 2.2, 1), &real).unwrap().passed());
    }

    /// Broken by: a tier that is left out of what they have together, or latencies that are added.
    #[test]
    fn tiers_are_counted_together() {
        let both = |clock: &str, hits: [u64; 2]| {
            let mut report = report(clock, hits[0], 1.0, 1);
            let mut memory = report["summary"]["tiers"][0].clone();
            (memory["role"], memory["hits"]) = (json!("cpu"), json!(hits[1]));
            report["summary"]["tiers"].as_array_mut().unwrap().push(memory);
            report
        };
        let residuals = held(&both("simulated", [30, 70]), &[both("wall", [40, 60])]).unwrap();
        let hits = residuals.rows.iter().filter(|row| row.name == "hits");
        let found: Vec<_> = hits.map(|row| (row.tier, row.simulated, row.median, row.passed)).collect();
        let expected =
            [("storage", 30.0, 40.0, false), ("cpu", 70.0, 60.0, false), (ALL, 100.0, 100.0, true)];
        assert_eq!(
            found,
            expected.map(|(tier, simulated, real, passed)| (tier, simulated, real, Some(passed)))
        );
        assert!(residuals.rows.iter().all(|row| row.tier != ALL || row.kind == Kind::Count));
    }

    #[test]
    fn other_plans_and_clocks_are_refused() {
        let (simulated, real) = (report("simulated", 1, 1.0, 1), report("wall", 1, 1.0, 1));
        let refusal = |simulated: &Value, real: Value| held(simulated, &[real]).unwrap_err().to_string();
        assert!(refusal(&real, real.clone()).contains("is no report of a simulated benchmark"));
        assert!(refusal(&simulated, simulated.clone()).contains("is no report of a real benchmark"));
        let other = refusal(&simulated, report("wall", 1, 1.0, 16));
        assert!(other.contains("real.json: is of another plan: `run.users` is 16, not 1"), "{other}");
    }

    /// Broken by: half a run on either side that is compared as a whole one.
    #[test]
    fn interrupted_runs_are_refused() {
        let interrupted = |mut report: Value| {
            report["partial"] = json!(true);
            report
        };
        let (simulated, real) = (report("simulated", 1, 1.0, 1), report("wall", 1, 1.0, 1));
        for (simulated, real, file) in [
            (interrupted(simulated.clone()), real.clone(), "sim.json"),
            (simulated.clone(), interrupted(real.clone()), "real.json"),
        ] {
            let refusal = held(&simulated, &[real]).unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("{file}: is of a run that was interrupted")), "{refusal}");
        }
        assert!(held(&simulated, &[real]).is_ok());
    }

    /// Broken by: nothing that was judged taken for nothing that was wrong.
    #[test]
    fn nothing_judged_is_nothing_passed() {
        let idle = |clock: &str| {
            let tiers = json!([{ "role": "storage",
                "reads": { "operations": 3, "bytes": 0, "total_ms": { "mean": 1.0, "p95": 2.0 } } }]);
            json!({ "plan": {}, "summary": { "clock": clock, "tiers": tiers } })
        };
        let residuals = held(&idle("simulated"), &[idle("wall")]).unwrap();
        assert!(residuals.rows.iter().all(|row| row.passed.is_none()) && residuals.rows.len() == 2);
        assert!(!residuals.passed());
    }
}
