//! A simulated run as trace events (the JSON that chrome://tracing and ui.perfetto.dev open): a process per
//! worker, a slice per request with its phases in it, and how many requests run and wait.

use std::fmt;
use std::io::{self, Write};

use wavetank_model::{Nanos, ServeEvent, WorkerId, WorkerRole};

use super::life::{Fate, Life, Load, Phase};
use super::load::{Change, Loads};

/// Writes trace events, one per line.
pub(super) struct Slices<W> {
    out: W,
    loads: Loads,
    /// By worker: whether its process has a name.
    named: Vec<bool>,
    is_first: bool,
}

/// Microseconds, exactly.
struct Micros(Nanos);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0.0 / 1000, self.0.0 % 1000)
    }
}

/// The process of a worker: zero would be none.
fn pid(worker: WorkerId) -> u64 {
    u64::from(worker.0) + 1
}

impl<W: Write> Slices<W> {
    pub(super) fn new(out: W, prefill_workers: u32) -> Self {
        let (loads, named) = (Loads::new(prefill_workers), Vec::new());
        Self { out, loads, named, is_first: true }
    }

    /// Counts.
    pub(super) fn see(&mut self, event: &ServeEvent<'_>) -> io::Result<()> {
        let mut changes = Vec::new();
        self.loads.record(event, &mut |change| changes.push(change));
        changes.into_iter().try_for_each(|change| self.count(change))
    }

    /// Draws a request: on every worker it was on, its phases there.
    pub(super) fn take(&mut self, life: &Life) -> io::Result<()> {
        let places = life.phases.chunk_by(|one, other| one.worker == other.worker);
        for phases in places {
            // A request that no worker took is drawn nowhere.
            let (Some(worker), [first, .., last] | [first @ last]) = (phases[0].worker, phases) else {
                continue;
            };
            self.name(worker)?;
            let track = Track { worker, request: u64::from(life.id.0) };
            self.open(&track, "request", first.start, |out| arguments(out, life))?;
            // What took no time cannot be seen.
            for phase in phases.iter().filter(|phase| phase.end > phase.start) {
                self.open(&track, phase.kind.name(), phase.start, |out| tokens(out, phase))?;
                for load in life.loads.iter().filter(|load| load.is_within(phase)) {
                    self.open(&track, "load", load.asked, |out| loaded(out, load))?;
                    self.close(&track, "load", load.at.min(phase.end))?;
                }
                self.close(&track, phase.kind.name(), phase.end)?;
            }
            self.close(&track, "request", last.end)?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        let mut changes = Vec::new();
        self.loads.finish(&mut |change| changes.push(change));
        changes.into_iter().try_for_each(|change| self.count(change))?;
        let opening = if self.is_first { "{\"traceEvents\":[" } else { "" };
        write!(self.out, "{opening}\n],\"displayTimeUnit\":\"ms\"}}\n")?;
        Ok(self.out)
    }

    /// What stands before an event.
    fn begin(&mut self) -> io::Result<()> {
        let before: &[u8] = if self.is_first { b"{\"traceEvents\":[\n" } else { b",\n" };
        self.is_first = false;
        self.out.write_all(before)
    }

    fn name(&mut self, worker: WorkerId) -> io::Result<()> {
        if self.named.len() <= worker.index() {
            self.named.resize(worker.index() + 1, false);
        }
        if std::mem::replace(&mut self.named[worker.index()], true) {
            return Ok(());
        }
        let role = match self.loads.role(worker) {
            WorkerRole::Aggregated => "worker",
            WorkerRole::Prefill => "prefill worker",
            WorkerRole::Decode => "decode worker",
        };
        let (pid, number) = (pid(worker), worker.0);
        self.begin()?;
        write!(self.out, "{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_name\",")?;
        write!(self.out, "\"args\":{{\"name\":\"{role} {number}\"}}}}")?;
        self.begin()?;
        write!(self.out, "{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_sort_index\",")?;
        write!(self.out, "\"args\":{{\"sort_index\":{number}}}}}")
    }

    fn count(&mut self, change: Change) -> io::Result<()> {
        self.name(change.worker)?;
        self.begin()?;
        let (pid, at, load) = (pid(change.worker), Micros(change.at), change.load);
        write!(self.out, "{{\"ph\":\"C\",\"pid\":{pid},\"name\":\"requests\",\"ts\":{at},")?;
        write!(self.out, "\"args\":{{\"running\":{},\"waiting\":{}}}}}", load.running, load.waiting)
    }

    fn open(
        &mut self,
        track: &Track,
        name: &str,
        at: Nanos,
        arguments: impl FnOnce(&mut W) -> io::Result<()>,
    ) -> io::Result<()> {
        self.begin()?;
        write!(self.out, "{{\"ph\":\"b\",{track},\"name\":\"{name}\",\"ts\":{},\"args\":{{", Micros(at))?;
        arguments(&mut self.out)?;
        self.out.write_all(b"}}")
    }

    fn close(&mut self, track: &Track, name: &str, at: Nanos) -> io::Result<()> {
        self.begin()?;
        write!(self.out, "{{\"ph\":\"e\",{track},\"name\":\"{name}\",\"ts\":{}}}", Micros(at))
    }
}

/// Slices with the same one nest. The id is of the process only, so that a request has one on each worker.
struct Track {
    worker: WorkerId,
    request: u64,
}

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pid, request) = (pid(self.worker), self.request);
        write!(f, "\"cat\":\"request\",\"pid\":{pid},\"tid\":0,\"id2\":{{\"local\":\"{request:#x}\"}}")
    }
}

fn arguments(out: &mut dyn Write, life: &Life) -> io::Result<()> {
    write!(out, "\"request\":{},\"session\":", life.id.0)?;
    serde_json::to_writer(&mut *out, &life.session)?;
    let reused = life.admission.map_or(0, |admission| admission.reused_tokens);
    let (turn, prompt, output) = (life.turn, life.prompt_tokens, life.output_tokens);
    write!(out, ",\"turn\":{turn},\"prompt_tokens\":{prompt},\"reused_tokens\":{reused}")?;
    write!(out, ",\"output_tokens\":{output}")?;
    match life.fate {
        Fate::Completed => Ok(()),
        Fate::Rejected(reason) => write!(out, ",\"rejected\":\"{}\"", reason.name()),
        Fate::Cancelled => write!(out, ",\"cancelled\":true"),
        Fate::Unfinished => write!(out, ",\"unfinished\":true"),
    }
}

fn loaded(out: &mut dyn Write, load: &Load) -> io::Result<()> {
    write!(out, "\"tokens\":{},\"tiers\":\"{}\"", load.tokens, load.by_tier)
}

fn tokens(out: &mut dyn Write, phase: &Phase) -> io::Result<()> {
    match phase.tokens {
        0 => Ok(()),
        tokens => write!(out, "\"tokens\":{tokens}"),
    }
}
