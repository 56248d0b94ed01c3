//! `--fio-job`: what went to the storage tier's device, distilled into a job for fio.
//!
//! [`Distilled::of`] takes the numbers from our own counters, [`Distilled::job`] is a pure function from them
//! to text. Nothing is fitted: sizes, mix, depth and pauses are those that were counted, and how fast fio is
//! with them is up to fio and the drive.

mod split;

use std::time::Duration;

use serde_json::{Value, json};
use wavetank_bench::{Flow, Outcome, Time};
use wavetank_model::{Error, Result, TierRole};
use wavetank_store::backend::Location;
use wavetank_store::backends;

use super::plan::BenchPlan;
use crate::host::{Host, HugePages};
use split::Split;

const GIB: f64 = (1u64 << 30) as f64;
const MIB: u64 = 1 << 20;
const HUGE_PAGE: u64 = 2 * MIB;
/// The kernel's page size, which fio's files are a multiple of.
const BLOCK: u64 = 4096;
/// Pauses that make up less of the time than this are left out: waking up takes as long.
const LEAST_PAUSED: f64 = 0.005;

/// A depth that is off by more than this part after rounding is worth a word.
const NOTABLE_ROUNDING: f64 = 0.1;

/// Everything a job is made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Distilled {
    version: String,
    backend: String,
    directory: String,
    jobs: u64,
    /// Bytes that the tier held at the end.
    held_bytes: u64,
    /// The section's name: of two ranks in one directory each has its own.
    section: String,
    /// What all threads sent while the window was open.
    flow: Flow,
    pages: Pages,
    /// Huge pages that are set aside and free.
    free_huge_pages: u64,
    engine: Engine,
    buffers: Buffers,
    /// Whether the page cache is passed by.
    cached: Cached,
    /// Whether an entry is synchronised before it counts as written.
    synced: Synced,
}

/// The memory that pieces are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    Huge,
    Small,
}

/// What took requests to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Ring,
    Threads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Buffers {
    Registered,
    Plain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cached {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Synced {
    Yes,
    No,
}

/// Whether runs of `plan` can be distilled into a job for fio.
pub fn check_fio_job(plan: &BenchPlan) -> Result<()> {
    check_counts(plan)?;
    if plan.temporary_cache {
        let what = "the temporary directory is gone when fio could use it";
        return Err(nothing(what, "name a directory that stays: --cache-dir DIR"));
    }
    Ok(())
}

/// Whether what goes to storage says anything about a drive.
fn check_counts(plan: &BenchPlan) -> Result<()> {
    let storage = plan.run.storage();
    let is_directory =
        |name: &str| backends::backend(name).is_ok_and(|entry| entry.caps.location == Location::Directory);
    if storage.filter(|tier| is_directory(&tier.backend)).is_none() {
        let name = storage.map_or("none", |tier| tier.backend.as_str());
        let what = format!("the storage tier keeps no files: its backend is {name}");
        return Err(nothing(&what, "use direct or buffered"));
    }
    if plan.is_simulated() {
        return Err(nothing("nothing goes to a drive that is simulated", "leave out --simulate"));
    }
    if plan.run.time == Time::Virtual {
        let hint = "leave out --generation-mode deterministic";
        return Err(nothing("nothing takes time on a virtual clock", hint));
    }
    Ok(())
}

fn nothing(what: &str, hint: &str) -> Error {
    Error::usage(format!("there is nothing to distil: {what}")).at("--fio-job").hint(hint)
}

impl Distilled {
    /// What `outcome` says of the storage tier; nothing if nothing went there.
    pub(super) fn of(plan: &BenchPlan, outcome: &Outcome) -> Option<Self> {
        check_counts(plan).ok()?;
        let at = plan.run.tiers.iter().position(|tier| tier.role == TierRole::Storage)?;
        let tier = &plan.run.tiers[at];
        let mut flow = Flow::default();
        outcome.flows.iter().for_each(|tiers| flow.add(&tiers[at]));
        let option = |name: &str| tier.options.get(name).map(String::as_str);
        let is_direct = tier.backend == "direct";
        let is_noted = |what: &str| outcome.notes.iter().any(|note| note.contains(what));
        let is_threads = !is_direct || option("engine") == Some("threads") || is_noted("io_uring is refused");
        let is_plain = is_threads || option("buffers") == Some("plain") || is_noted("are not registered");
        let host = Host::here();
        let is_synced = option("durable").map_or(!is_direct, |durable| durable == "true");
        (flow.pieces > 0).then(|| Self {
            version: plan.wavetank_version.clone(),
            backend: tier.backend.clone(),
            directory: tier.location.clone(),
            jobs: outcome.flows.len() as u64,
            held_bytes: outcome.usage[at].bytes,
            section: plan.rank.map_or_else(|| "kv".to_owned(), |rank| format!("kv_rank{}", rank.number)),
            flow,
            pages: pages(&host),
            free_huge_pages: host.free_huge_pages(),
            engine: if is_threads { Engine::Threads } else { Engine::Ring },
            buffers: if is_plain { Buffers::Plain } else { Buffers::Registered },
            cached: if is_direct { Cached::No } else { Cached::Yes },
            synced: if is_synced { Synced::Yes } else { Synced::No },
        })
    }

    /// The job.
    pub(super) fn job(&self) -> String {
        let mut text = self.comments();
        text += "\n[global]\n";
        for (key, value) in self.options() {
            text += &format!("{key}={value}\n");
        }
        text + &format!("\n[{}]\n", self.section)
    }

    /// For the report: what was counted.
    pub(super) fn json(&self) -> Value {
        let flow = &self.flow;
        let sizes =
            |sizes: &mut dyn Iterator<Item = (u64, u64)>| sizes.map(|row| json!(row)).collect::<Value>();
        let [read_bytes, written_bytes] = self.bytes();
        json!({
            "threads": self.jobs,
            "window_seconds": self.window().as_secs_f64(),
            "read_bytes": read_bytes,
            "written_bytes": written_bytes,
            "reads_by_size": sizes(&mut flow.reads()),
            "writes_by_size": sizes(&mut flow.writes()),
            "pieces": flow.pieces,
            "busy_seconds": flow.busy.as_secs_f64(),
            "idle_seconds": flow.idle.as_secs_f64(),
            "idle_gaps": flow.starts,
            "depth_while_busy": flow.depth(),
        })
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let on = |key: &'static str| (key, "1".to_owned());
        let mut options = vec![
            ("ioengine", self.engine.name().to_owned()),
            ("direct", u8::from(self.cached == Cached::No).to_string()),
            ("directory", escaped(&self.directory)),
            ("rw", self.way().to_owned()),
        ];
        if self.way() == "randrw" {
            options.push(("rwmixread", self.reads_percent().to_string()));
        }
        options.push(("bssplit", self.bssplit()));
        // Else fio rounds sizes down to multiples of the smallest of them.
        options.extend([on("bs_unaligned"), ("blockalign", "4k".to_owned())]);
        options.push(("iodepth", self.depth().to_string()));
        options.push(("numjobs", self.jobs.to_string()));
        options.push(("size", self.size().to_string()));
        if let Some((blocks, pause)) = self.pauses() {
            options.push(("thinktime", format!("{pause}us")));
            options.push(("thinktime_blocks", blocks.to_string()));
            options.push(("thinktime_blocks_type", "issue".to_owned()));
        }
        if self.synced == Synced::Yes && self.flow.sealed > 0 {
            let writes: u64 = self.flow.writes().map(|(_, count)| count).sum();
            options.push(("fdatasync", (writes / self.flow.sealed).max(1).to_string()));
        }
        if self.buffers == Buffers::Registered {
            options.push(on("fixedbufs"));
        }
        if self.pages == Pages::Huge && self.free_huge_pages >= self.huge_pages() {
            options.push(("mem", "shmhuge".to_owned()));
        }
        if self.cached == Cached::Yes {
            options.push(("invalidate", "0".to_owned()));
        }
        options.extend([on("refill_buffers"), on("norandommap"), ("randrepeat", "0".to_owned())]);
        options.extend([on("time_based"), ("runtime", time(self.window()))]);
        options.extend([on("group_reporting"), on("unlink")]);
        options
    }

    fn comments(&self) -> String {
        let [read, written] = self.bytes();
        let seconds = self.window().as_secs_f64();
        let rate = |bytes: u64| bytes as f64 / GIB / seconds;
        let flow = &self.flow;
        let (busy, idle) = (flow.busy.as_secs_f64(), flow.idle.as_secs_f64());
        let mut lines = vec![
            format!("Distilled by wavetank {} from what a benchmark sent to its storage tier", self.version),
            format!("({}) in {seconds:.1} s, warm-up excluded:", self.backend),
            format!(
                "  {:.3} GiB/s, of which {:.3} read and {:.3} written, in {} requests by {}",
                rate(read + written),
                rate(read),
                rate(written),
                self.requests(),
                counted(self.jobs, "thread"),
            ),
            format!(
                "  {:.1} % of requests read; {:.1} pieces under way per thread while any was",
                100.0 * self.reads_share(),
                flow.depth(),
            ),
            format!(
                "  none was under way for {:.1} % of the time, in {}",
                100.0 * idle / (busy + idle).max(f64::MIN_POSITIVE),
                counted(flow.starts, "pause"),
            ),
            "fio does the same to one file per job, at random places, as it finds them: nothing in here was"
                .to_owned(),
            "scaled to fit. It waits until nothing is under way before each pause, as the run did."
                .to_owned(),
        ];
        let (depth, whole) = (flow.depth(), self.depth() as f64);
        if (whole / depth.max(1.0) - 1.0).abs() > NOTABLE_ROUNDING {
            lines.push(format!(
                "A depth is a whole number: {depth:.1} became {whole}, and what fio moves with it."
            ));
        }
        lines.extend(self.about_memory());
        lines.iter().map(|line| format!("; {line}\n")).collect()
    }

    /// What fio's buffers need.
    fn about_memory(&self) -> Vec<String> {
        let needed = self.huge_pages();
        let begin = "The run's buffers were on huge pages, which keep a piece in few segments for the drive";
        match self.pages {
            Pages::Small => Vec::new(),
            Pages::Huge if self.free_huge_pages >= needed => {
                vec![
                    format!("{begin}, and"),
                    format!("so are fio's: {needed} of them have to be free (vm.nr_hugepages)."),
                ]
            }
            Pages::Huge => vec![
                format!("{begin}."),
                format!(
                    "To give fio the same, run `sysctl vm.nr_hugepages={needed}` and add this line, or large"
                ),
                "pieces are slower than they were (and set it back to what it was afterwards):".to_owned(),
                "mem=shmhuge".to_owned(),
            ],
        }
    }

    /// Huge pages that fio's buffers take.
    fn huge_pages(&self) -> u64 {
        ((self.depth() * self.largest()).div_ceil(HUGE_PAGE) + 1) * self.jobs
    }

    fn way(&self) -> &'static str {
        match [self.flow.reads().count(), self.flow.writes().count()] {
            [_, 0] => "randread",
            [0, _] => "randwrite",
            _ => "randrw",
        }
    }

    fn bssplit(&self) -> String {
        let [reads, writes] = [Split::of(self.flow.reads()), Split::of(self.flow.writes())];
        // fio takes one list for both ways.
        match self.way() {
            "randread" => reads.to_string(),
            "randwrite" => writes.to_string(),
            _ => format!("{reads},{writes}"),
        }
    }

    fn bytes(&self) -> [u64; 2] {
        let sum = |sizes: &mut dyn Iterator<Item = (u64, u64)>| sizes.map(|(size, count)| size * count).sum();
        [sum(&mut self.flow.reads()), sum(&mut self.flow.writes())]
    }

    fn requests(&self) -> u64 {
        self.flow.reads().chain(self.flow.writes()).map(|(_, count)| count).sum()
    }

    fn reads_share(&self) -> f64 {
        let reads: u64 = self.flow.reads().map(|(_, count)| count).sum();
        reads as f64 / self.requests() as f64
    }

    /// Neither way is left out of a mix.
    fn reads_percent(&self) -> u64 {
        ((100.0 * self.reads_share()).round() as u64).clamp(1, 99)
    }

    fn depth(&self) -> u64 {
        (self.flow.depth().round() as u64).max(1)
    }

    /// Bytes of the largest request.
    fn largest(&self) -> u64 {
        self.flow.reads().chain(self.flow.writes()).map(|(size, _)| size).max().unwrap_or(BLOCK)
    }

    /// Bytes of a job's file.
    fn size(&self) -> u64 {
        let least = self.largest() * self.depth() * 2;
        (self.held_bytes / self.jobs).max(least).next_multiple_of(MIB)
    }

    /// Requests between two pauses, and the pause in microseconds: those of the mean pause, with the time
    /// per request kept where requests do not divide evenly.
    fn pauses(&self) -> Option<(u64, u64)> {
        let (busy, idle) = (self.flow.busy.as_secs_f64(), self.flow.idle.as_secs_f64());
        if self.flow.starts == 0 || idle < LEAST_PAUSED * (busy + idle) {
            return None;
        }
        let requests = self.requests() as f64;
        let blocks = (requests / self.flow.starts as f64).round().max(1.0);
        let pause = blocks * idle * 1e6 / requests;
        (pause >= 1.0).then_some((blocks as u64, pause.round() as u64))
    }

    /// How long a thread's window was.
    fn window(&self) -> Duration {
        (self.flow.busy + self.flow.idle) / self.jobs.max(1) as u32
    }
}

fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

impl Engine {
    /// The engine of fio that does the same.
    fn name(self) -> &'static str {
        match self {
            Self::Ring => "io_uring",
            Self::Threads => "posixaio",
        }
    }
}

/// Whether madvise gets huge pages here.
fn pages(host: &Host) -> Pages {
    match host.huge_pages() {
        HugePages::Always | HugePages::Asked => Pages::Huge,
        HugePages::Never | HugePages::Unknown => Pages::Small,
    }
}

/// A directory as fio reads it: a colon separates several.
fn escaped(directory: &str) -> String {
    directory.replace(':', "\\:")
}

fn time(span: Duration) -> String {
    let ms = (span.as_secs_f64() * 1e3).round() as u64;
    if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

#[cfg(test)]
mod tests;
