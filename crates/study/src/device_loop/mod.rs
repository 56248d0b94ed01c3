//! What was simulated of a device against what it did: the I/O of a simulation, played on the device whose
//! profile it was simulated with.

mod statistics;

use serde_json::{Value, json};
use wavetank::{IoOperation, PlayedIo, Replayed};
use wavetank_model::{Nanos, Operation, TierProfile};
use wavetank_report::render::table::{framed, precise};

use statistics::{STATISTICS, Spread};

/// A loop that was gone round.
pub struct Closed<'a> {
    /// What the device was measured to do.
    pub profile: &'a TierProfile,
    /// What must be known of that.
    pub caveats: &'a [String],
    /// The simulation with it.
    pub simulated: &'a Replayed,
    /// What it asked of the device, as far as it was played.
    pub operations: &'a [IoOperation],
    /// How many more there were.
    pub left_out: u64,
    /// What the device did.
    pub played: &'a PlayedIo,
}

/// How far a simulation is from the device.
pub struct Residual {
    reads: Compared,
    writes: Compared,
}

/// One kind of operation on both sides.
struct Compared {
    name: &'static str,
    simulated: Spread,
    measured: Spread,
}

/// Operations that began later than this did not have the load that was simulated.
const LATE: Nanos = Nanos(10_000_000);
/// Above this share of reads that found nothing, what was played is not what was simulated.
const MOST_MISSES: f64 = 0.01;

impl Residual {
    /// Compares both sides.
    pub fn of(closed: &Closed<'_>) -> Self {
        let of = |name, operation: Operation, measured| {
            let alike = closed.operations.iter().filter(|it| it.operation == operation);
            Compared { name, simulated: Spread::of(alike.map(|it| it.took).collect()), measured }
        };
        Self {
            reads: of("read", Operation::Read, Spread::seen(&closed.played.read_ns)),
            writes: of("write", Operation::Write, Spread::seen(&closed.played.write_ns)),
        }
    }

    fn sides(&self) -> [&Compared; 2] {
        [&self.reads, &self.writes]
    }

    /// The whole report.
    pub fn report(&self, closed: &Closed<'_>) -> Value {
        let Closed { profile, simulated, operations, left_out, played, .. } = closed;
        let bytes = |operation| {
            let alike = operations.iter().filter(|it| it.operation == operation);
            alike.map(|it| it.bytes).sum::<u64>()
        };
        let residuals = self.sides().map(|side| (side.name.to_owned(), side.json()));
        json!({
            "plan": simulated.report["plan"],
            "profile": { "origin": profile.origin, "settings": profile.settings },
            "simulation": {
                "completed_requests": simulated.report["completed_requests"],
                "mean_ttft_ms": simulated.report["mean_ttft_ms"],
                "p99_ttft_ms": simulated.report["p99_ttft_ms"],
                "tiers": simulated.report["tiers"],
            },
            "operations": {
                "played": operations.len(),
                "left_out": left_out,
                "read_bytes": bytes(Operation::Read),
                "written_bytes": bytes(Operation::Write),
                "seconds": played.seconds,
            },
            "played": {
                "counts": played.counts,
                "latest_start_ms": played.latest.as_ms(),
                "notes": played.notes,
            },
            "residuals": residuals.into_iter().collect::<serde_json::Map<_, _>>(),
            "warnings": self.warnings(closed),
            "partial": played.interrupted || profile.partial,
        })
    }

    /// What must be known before the numbers are believed.
    pub fn warnings(&self, closed: &Closed<'_>) -> Vec<String> {
        let (counts, mut warnings) = (closed.played.counts, closed.simulated.warnings.clone());
        if closed.played.latest > LATE {
            warnings.push(format!(
                "an operation began {:.1} ms late: the device, or this machine, could not keep up",
                closed.played.latest.as_ms()
            ));
        }
        let reads = counts.hits + counts.misses;
        if counts.misses as f64 > MOST_MISSES * reads as f64 {
            warnings.push(format!("{} of {reads} reads found nothing to read", counts.misses));
        }
        for (count, what) in [(counts.refused, "were refused for lack of room"), (counts.failed, "failed")] {
            if count > 0 {
                warnings.push(format!("{count} operations {what}"));
            }
        }
        warnings.extend(closed.played.notes.iter().chain(closed.caveats).cloned());
        warnings
    }

    /// What the device did nothing of, or the first of mean and P95 that is off by more than so many percent,
    /// in words.
    pub fn failure(&self, percent: f64) -> Option<String> {
        let idle = self.sides().into_iter().find(|side| side.simulated.count > 0 && side.measured.count == 0);
        if let Some(side) = idle {
            return Some(format!("no {}s ended on the device", side.name));
        }
        let judged = |index: &usize| matches!(STATISTICS[*index].0, "mean" | "p95");
        let indices = || (0..STATISTICS.len()).filter(judged);
        let all = self.sides().into_iter().flat_map(|side| indices().map(move |index| (side, index)));
        let mut off = all.filter_map(|(side, index)| {
            let off = error(side.simulated.ms[index], side.measured.ms[index])? * 100.0;
            (off.abs() > percent).then(|| {
                format!("{} of {}s is {off:+.1} % off, more than {percent} %", STATISTICS[index].0, side.name)
            })
        });
        off.next()
    }

    /// For a terminal.
    pub fn table(&self) -> String {
        let mut table = framed(&["Operation", "", "simulated (ms)", "measured (ms)", "error"]);
        for side in self.sides().into_iter().filter(|side| side.simulated.count > 0) {
            let count = |spread: &Spread| spread.count.to_string();
            table.add_row(vec![
                side.name.to_owned(),
                "count".to_owned(),
                count(&side.simulated),
                count(&side.measured),
                String::new(),
            ]);
            for (index, (statistic, _)) in STATISTICS.iter().enumerate() {
                let (simulated, measured) = (side.simulated.ms[index], side.measured.ms[index]);
                table.add_row(vec![
                    side.name.to_owned(),
                    (*statistic).to_owned(),
                    precise(simulated),
                    precise(measured),
                    error(simulated, measured).map_or("N/A".to_owned(), |it| format!("{:+.1} %", it * 100.0)),
                ]);
            }
        }
        table.to_string()
    }
}

impl Compared {
    fn json(&self) -> Value {
        let statistics = STATISTICS.iter().enumerate().map(|(index, (name, _))| {
            let (simulated, measured) = (self.simulated.ms[index], self.measured.ms[index]);
            let sides = json!({
                "simulated_ms": simulated,
                "measured_ms": measured,
                "error": error(simulated, measured),
            });
            ((*name).to_owned(), sides)
        });
        let mut all: serde_json::Map<_, _> = statistics.collect();
        all.insert("simulated_count".to_owned(), json!(self.simulated.count));
        all.insert("measured_count".to_owned(), json!(self.measured.count));
        Value::Object(all)
    }
}

/// How far the simulation is from the measurement, as a share of it.
fn error(simulated: f64, measured: f64) -> Option<f64> {
    (measured > 0.0).then(|| simulated / measured - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(ms: &[u64]) -> Spread {
        Spread::of(ms.iter().map(|ms| Nanos(ms * 1_000_000)).collect())
    }

    fn residual(reads: (&[u64], &[u64]), writes: (&[u64], &[u64])) -> Residual {
        let of = |name, (simulated, measured)| Compared {
            name,
            simulated: spread(simulated),
            measured: spread(measured),
        };
        Residual { reads: of("read", reads), writes: of("write", writes) }
    }

    /// Broken by: a side that is left out because the device did nothing of it, whatever the other side says.
    #[test]
    fn a_device_that_does_nothing_passes_no_tolerance() {
        let failure = |reads, writes| residual(reads, writes).failure(10.0);
        assert_eq!(failure((&[10], &[10]), (&[], &[])), None);
        assert_eq!(failure((&[10], &[]), (&[], &[])).unwrap(), "no reads ended on the device");
        assert_eq!(failure((&[10], &[20]), (&[5], &[])).unwrap(), "no writes ended on the device");
        let off = failure((&[10], &[10]), (&[10], &[20])).unwrap();
        assert_eq!(off, "mean of writes is -50.0 % off, more than 10 %");
    }
}
