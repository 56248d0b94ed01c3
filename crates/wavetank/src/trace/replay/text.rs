//! A replay of calls as text, on one screen.

use std::fmt::{self, Formatter};

use wavetank_calls::{AdapterPlan, AdapterTimes, EvictionPlan, Mode, Moved, Spread};
use wavetank_model::Nanos;

use super::against::{Table, hit_rate};
use super::args::{BackgroundWork, CallPace};
use super::{CallReplay, ConfigDifference};

/// Fields that are named where the configuration is not as recorded; the report has all.
const MOST_FIELDS: usize = 6;
/// As much of a value.
const LONGEST_VALUE: usize = 60;

impl fmt::Display for CallReplay {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.opening(f)?;
        self.storage(f)?;
        self.operations(f)?;
        self.tiers(f)?;
        self.bytes(f)?;
        if self.tally.interrupted {
            writeln!(f, "It was ended before the recording was.")?;
            let dropped = self.measured.as_ref().map_or(0, |report| report.dropped);
            if dropped > 0 {
                writeln!(f, "Calls whose bytes did not move any more: {dropped}; they are in no time above")?;
            }
        }
        self.keys(f)?;
        match self.plan.mode {
            Mode::Closed => self.decided(f)?,
            Mode::Open | Mode::Pinned => self.divergence(f)?,
        }
        for line in &self.left_out {
            writeln!(f, "Left out: {line}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "Warning: {warning}")?;
        }
        if self.against.is_empty() {
            return Ok(());
        }
        write!(f, "{}", Table { first: (&self.tally, self.measured.as_ref()), others: &self.against })
    }
}

impl CallReplay {
    fn opening(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mode = match self.plan.mode {
            Mode::Open => "open",
            Mode::Pinned => "pinned",
            Mode::Closed => "closed",
        };
        let pace = match self.pace {
            CallPace::Virtual => "virtual time".to_owned(),
            CallPace::Max => "with bytes, as fast as they move".to_owned(),
            CallPace::Recorded(1.0) => "with bytes, at the recorded pace".to_owned(),
            CallPace::Recorded(speed) => format!("with bytes, {speed} times as fast as recorded"),
        };
        writeln!(f, "wavetank trace replay: {}, {mode}, {pace}", self.recording)?;
        let Self { replayed, skipped, failed, duration_s, .. } = self;
        writeln!(f, "Calls: {replayed} replayed, {skipped} skipped, {failed} failed; {duration_s:.3} s")
    }

    fn storage(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let background = match self.plan.background {
            BackgroundWork::Recorded => "as recorded",
            BackgroundWork::Simulated => "simulated",
        };
        writeln!(f, "Background work {background}: {}", self.plan.background_because)?;
        let config = &self.config;
        let digest: String = config.digest.chars().take(12).collect();
        if config.recorded_digest.is_none() {
            return writeln!(f, "Configuration: {digest}, none is recorded");
        }
        if config.of_bench {
            return writeln!(f, "Configuration: {digest}, of a benchmark: its tiers are taken as one");
        }
        if config.matches {
            return writeln!(f, "Configuration: {digest}, as recorded");
        }
        writeln!(f, "Configuration: {digest}, not as recorded:")?;
        for ConfigDifference { field, recorded, replayed } in config.differences.iter().take(MOST_FIELDS) {
            let text = |value: &Option<serde_json::Value>| {
                let text = value.as_ref().map_or("nothing".to_owned(), serde_json::Value::to_string);
                let is_long = text.chars().count() > LONGEST_VALUE;
                let start: String = text.chars().take(LONGEST_VALUE).collect();
                if is_long { start + "…" } else { text }
            };
            writeln!(f, "  {field}: {} then, {} now", text(recorded), text(replayed))?;
        }
        match config.differences.len().saturating_sub(MOST_FIELDS) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more (--output has them)"),
        }
    }

    fn operations(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let titles = ["calls", "failed", "mean ms", "p50 ms", "p90 ms", "p99 ms", "max ms"];
        let titles: String = titles.iter().map(|title| format!("{title:>11}")).collect();
        writeln!(f, "\n{:34}{titles}", "operation")?;
        for row in &self.operations {
            let name = row.qualname.rsplit("StorageManager.").next().unwrap_or_default();
            let times = [row.mean_ms, row.p50_ms, row.p90_ms, row.p99_ms, row.max_ms];
            let times: String = times.iter().map(|ms| format!("{ms:>11.3}")).collect();
            writeln!(f, "{name:34}{:>11}{:>11}{times}", row.count, row.errors)?;
        }
        Ok(())
    }

    fn tiers(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        let titles = ["found", "evicted", "passes", "copied", "dropped", "MiB at end"];
        let titles: String = titles.iter().map(|title| format!("{title:>11}")).collect();
        writeln!(f, "\n{:34}{titles}", "tier")?;
        let l1 = &self.plan.storage.l1;
        let memory = format!("memory, {}", tier(l1.capacity_bytes, Some(&l1.eviction)));
        let background = &tally.background;
        let (evicted, passes) = (background.l1.evicted, background.l1.passes);
        let used = mib(tally.used_l1);
        writeln!(
            f,
            "{memory:34}{:>11}{evicted:>11}{passes:>11}{:>11}{:>11}{used:>11}",
            tally.hits_l1, "-", "-"
        )?;
        let plans = self.plan.storage.adapters.iter().zip(&tally.used_l2);
        for (number, ((plan, used), did)) in (1..).zip(plans.zip(&background.adapters)) {
            let AdapterPlan { capacity_bytes, eviction, .. } = plan;
            let name = format!("behind {number}, {}", tier(*capacity_bytes, eviction.as_ref()));
            // Not copied, either way.
            let dropped = did.dropped + did.skipped;
            let counts = [did.loaded, did.evictions.evicted, did.evictions.passes, did.copied, dropped];
            let counts: String = counts.iter().map(|count| format!("{count:>11}")).collect();
            writeln!(f, "{name:34}{counts}{:>11}", mib(*used))?;
        }
        writeln!(f)
    }

    /// What moving bytes took.
    fn bytes(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(report) = &self.measured else { return Ok(()) };
        let seconds = Nanos(report.wall_ns).as_seconds();
        let read = report.calls.iter().find(|calls| calls.call.ends_with("enter"));
        let read = gib(read.map_or(0, |calls| calls.bytes));
        writeln!(f, "Bytes: {seconds:.3} s of work; {read:.2} GiB read from memory")?;
        if matches!(self.pace, CallPace::Recorded(_)) {
            let ms = |nanos: u64| Nanos(nanos).as_ms();
            let Spread { p50_ns, p99_ns, max_ns, .. } = report.late;
            writeln!(
                f,
                "Pace: calls were begun {:.3} ms late at P50, {:.3} at P99, {:.3} at most; that is part of \
                 their times above",
                ms(p50_ns),
                ms(p99_ns),
                ms(max_ns),
            )?;
        }
        for (number, tier) in (1..).zip(&report.adapters) {
            for (what, moved) in [("stored", &tier.stored), ("loaded", &tier.loaded)] {
                let ms = |nanos: u64| Nanos(nanos).as_ms();
                let (p50, p99) = (ms(moved.latency.p50_ns), ms(moved.latency.p99_ns));
                let busy = moved.latency.mean_ns * moved.latency.count as f64 / 1e9;
                let rate = if busy > 0.0 { gib(moved.bytes) / busy } else { 0.0 };
                writeln!(
                    f,
                    "  behind {number} {what}: {} objects in {} batches, {:.2} GiB, {rate:.2} GiB/s while at \
                     it, P50 {p50:.3} ms, P99 {p99:.3} ms, {} failed",
                    moved.objects,
                    moved.latency.count,
                    gib(moved.bytes),
                    moved.errors,
                )?;
            }
        }
        let failed = |moved: fn(&AdapterTimes) -> &Moved| {
            report.adapters.iter().map(|tier| moved(tier).errors).sum::<u64>()
        };
        let (unstored, unloaded) = (failed(|tier| &tier.stored), failed(|tier| &tier.loaded));
        if unstored + unloaded > 0 {
            writeln!(
                f,
                "Devices failed to store {unstored} objects and to load {unloaded}: the tiers above are as \
                 it was decided"
            )?;
        }
        if report.wrong > 0 {
            writeln!(f, "Objects with other bytes than were written: {}", report.wrong)?;
        }
        report.notes.iter().try_for_each(|note| writeln!(f, "Note: {note}"))
    }

    fn keys(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        let tiers = self.measured.iter().flat_map(|report| &report.adapters);
        let unloaded = match tiers.map(|tier| tier.loaded.errors).sum::<u64>() {
            0 => String::new(),
            failed => format!("; of these {failed} did not come from the device"),
        };
        let when = if self.plan.mode == Mode::Pinned { " before they were put right" } else { "" };
        writeln!(
            f,
            "Prefetched keys{when}: {} of {} found ({:.2} %), {} not, {} for want of memory{unloaded}",
            tally.hits_l1 + tally.hits_l2,
            tally.asked,
            100.0 * hit_rate(tally),
            tally.misses,
            tally.misses_no_memory,
        )?;
        writeln!(f, "Read keys: {}, {} could not be", tally.read, tally.read_failed)?;
        writeln!(
            f,
            "Released keys: {}, {} were not held, {} more than recorded",
            tally.released, tally.release_failed, tally.surplus,
        )?;
        writeln!(
            f,
            "Stored keys: {}, {} failed; refused {} that were there, {} in writing, {} for want of memory",
            tally.stored,
            tally.store_failed,
            tally.refused_resident,
            tally.refused_staged,
            tally.refused_no_memory,
        )?;
        writeln!(
            f,
            "Locks: {} not given back as recorded, {} held at the end, {} expired",
            tally.leaked, tally.held_at_end, tally.expired,
        )
    }

    /// What callers that decide themselves did not do.
    fn decided(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        writeln!(
            f,
            "Decided anew: {} recorded writes of keys were not made, as they were found, and {} reads, as \
             they were not looked for; {} misses were not stored, as nothing says how long they are",
            tally.writes_left, tally.reads_left, tally.unsized_misses,
        )
    }

    /// How far outcomes are from those that the recording holds or implies.
    fn divergence(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        writeln!(
            f,
            "Other than recorded: {} of {} prefetches compared, {} of {} reservations, {} of {} other calls; \
             {} keys by their tier; {} passes",
            tally.prefetches_that_differ,
            tally.prefetches_compared,
            tally.writes_that_differ,
            tally.writes_compared,
            tally.others_that_differ,
            tally.others_compared,
            tally.tiers_that_differ,
            tally.passes_that_differ,
        )?;
        let unknown = tally.prefetches - tally.prefetches_compared;
        if unknown > 0 {
            writeln!(f, "Not compared: {unknown} prefetches, as it is not known what they should find")?;
        }
        if self.plan.mode == Mode::Pinned {
            writeln!(f, "Put right: {} put in, {} taken out", tally.forced_in, tally.forced_out)?;
        }
        let Some(first) = &tally.first_divergence else { return Ok(()) };
        let key = self.first_divergence_key.as_deref().unwrap_or_default();
        writeln!(
            f,
            "First: call {} ({}) at {:.6} s: found or granted {} then, {} now; one of them: {key}",
            first.call,
            first.what,
            first.at.as_seconds(),
            first.expected,
            first.got,
        )
    }
}

fn tier(capacity: Option<u64>, eviction: Option<&EvictionPlan>) -> String {
    let size = capacity.map_or("no limit".to_owned(), |bytes| format!("{} MiB", mib(bytes)));
    let policy = eviction.filter(|_| capacity.is_some());
    policy.map_or(size.clone(), |eviction| format!("{size}, {}", eviction.policy))
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / (1u64 << 20) as f64)
}
