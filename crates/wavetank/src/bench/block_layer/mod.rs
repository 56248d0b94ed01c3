//! `--enable-latency-tracing`: what the kernel's block layer saw of a run, through bpftrace.
//!
//! A child process runs a program of ours ([`script`]) while the benchmark runs; what it prints at its end is
//! read ([`parse`]) into the report. Whatever goes wrong with it is a warning: the run is what counts. What
//! can be known to be missing is an error before the run.

mod child;
mod device;
mod parse;
mod permit;
mod script;

use std::path::{Path, PathBuf};

use rustix::fs::{major, minor, stat};
use serde_json::{Map, Value, json};
use wavetank_bench::{Observer, Outcome, Time};
use wavetank_model::{BenchEvent, BenchFact, Error, Result, Sink};
use wavetank_store::backend::Location;
use wavetank_store::backends;

use super::place;
use super::plan::BenchPlan;
use child::Child;
use device::{Device, Disk};
use parse::Printed;

const FLAG: &str = "--enable-latency-tracing";
/// Where the kernel describes devices.
const SYSTEM: &str = "/sys";

/// Everything that is needed to look at runs.
pub(super) struct Tracing {
    bpftrace: PathBuf,
    script: String,
    disks: Vec<Disk>,
}

/// What was seen of one run.
pub(super) struct Traced {
    /// For the report.
    pub(super) json: Value,
    /// What a reader should know.
    pub(super) warnings: Vec<String>,
}

/// What keeps runs here from being looked at, and what to do about it.
pub(crate) fn missing() -> Option<(String, &'static str)> {
    permit::here().err()
}

impl Tracing {
    /// What `plan` needs, if it asks for it; an error says what is missing.
    pub(super) fn of(plan: &BenchPlan) -> Result<Option<Self>> {
        if !plan.latency_tracing {
            return Ok(None);
        }
        let wrong = |(what, hint): (String, &str)| Error::usage(what).at(FLAG).hint(hint);
        let folder = files(plan).map_err(wrong)?;
        let permit = permit::here().map_err(wrong)?;
        let disks = disks(&folder).map_err(wrong)?;
        let script = script::script(std::process::id(), &disks, &permit.events);
        Ok(Some(Self { bpftrace: permit.bpftrace, script, disks }))
    }

    /// Does `run` while bpftrace looks.
    pub(super) fn around(
        &self,
        observer: Observer<'_>,
        run: impl FnOnce(Observer<'_>) -> Result<Outcome>,
    ) -> (Result<Outcome>, Traced) {
        let child = Child::start(&self.bpftrace, &self.script);
        let Observer { sink, watch, stop, calls } = observer;
        let mut marked = Marked(sink);
        let outcome = run(Observer { sink: &mut marked, watch, stop, calls });
        (outcome, self.traced(child.and_then(Child::finish)))
    }

    fn traced(&self, text: std::result::Result<String, String>) -> Traced {
        let printed = text.map(|text| parse::printed(&text));
        let disks =
            self.disks.iter().map(|Disk { disk: Device { major, minor }, .. }| format!("{major}:{minor}"));
        let disks: Vec<String> = disks.collect();
        match printed {
            Ok(printed) => Traced { warnings: doubts(&printed), json: json(&printed, &disks) },
            Err(why) => Traced {
                json: json!({ "disks": disks, "failed": why }),
                warnings: vec![format!("{FLAG}: bpftrace saw nothing: {why}")],
            },
        }
    }
}

/// The directory of the storage tier, if it is one of files that take time.
fn files(plan: &BenchPlan) -> std::result::Result<PathBuf, (String, &'static str)> {
    let storage = plan.run.storage();
    let is_directory =
        |name: &str| backends::backend(name).is_ok_and(|entry| entry.caps.location == Location::Directory);
    let Some(tier) = storage.filter(|tier| is_directory(&tier.backend)) else {
        let name = storage.map_or("none", |tier| tier.backend.as_str());
        let what = format!("the storage tier is on no drive of this machine: its backend is {name}");
        return Err((what, "use direct or buffered"));
    };
    if plan.run.time == Time::Virtual {
        let what = "nothing takes time on a virtual clock".to_owned();
        return Err((what, "leave out --generation-mode deterministic and --io-trace-log"));
    }
    let made = plan.temporary_cache && tier.location.is_empty();
    Ok(if made { std::env::temp_dir() } else { PathBuf::from(&tier.location) })
}

fn disks(folder: &Path) -> std::result::Result<Vec<Disk>, (String, &'static str)> {
    let hint = "name a directory on a drive: --cache-dir DIR";
    let failed = |error: std::io::Error| (format!("{}: {error}", folder.display()), hint);
    let (existing, _) = place::resolve(folder).map_err(failed)?;
    let found = stat(&existing).map_err(|error| failed(error.into()))?;
    let device = Device { major: major(found.st_dev), minor: minor(found.st_dev) };
    let disks = device::disks(Path::new(SYSTEM), device).map_err(failed)?;
    if disks.is_empty() {
        let what = format!(
            "{} is on no block device that can be told (device {}:{}): memory, network and layered file \
             systems have none of their own",
            existing.display(),
            device.major,
            device.minor
        );
        return Err((what, hint));
    }
    Ok(disks)
}

/// Tells bpftrace when the window opens and closes.
struct Marked<'a>(&'a mut (dyn Sink<BenchEvent> + Send));

impl Sink<BenchEvent> for Marked<'_> {
    fn record(&mut self, event: &BenchEvent) {
        if matches!(event.fact, BenchFact::Opened | BenchFact::Closed { .. }) {
            // Does nothing but to be seen.
            let _ = rustix::process::test_kill_process(rustix::process::getpid());
        }
        self.0.record(event);
    }
}

/// What to know of what was printed.
fn doubts(printed: &Printed) -> Vec<String> {
    let mut doubts = Vec::new();
    let phase = printed.numbers.get(script::PHASE).copied().unwrap_or(0);
    if phase < 1 {
        doubts.push(format!("{FLAG}: the window was not seen to open: there are no histograms"));
    }
    let known = |line: &&String| line.as_str() == script::ATTACHED || line.starts_with("Attaching ");
    for line in printed.other.iter().filter(|line| !known(line)) {
        doubts.push(format!("{FLAG}: bpftrace said: {line}"));
    }
    doubts
}

fn json(printed: &Printed, disks: &[String]) -> Value {
    let mut report = Map::new();
    report.insert("disks".to_owned(), json!(disks));
    report.insert(
        "about".to_owned(),
        json!("histograms by powers of two; p50 to p999 are the lower bounds of their buckets"),
    );
    for (name, keys) in &printed.histograms {
        let value = match keys.get("") {
            Some(histogram) => histogram.json(),
            None => keys.iter().map(|(key, histogram)| (key.clone(), histogram.json())).collect(),
        };
        report.insert(name.clone(), value);
    }
    Value::Object(report)
}
