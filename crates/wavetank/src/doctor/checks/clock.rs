//! The clock that latencies are read from: what it is, how fine, what a reading costs, and whether it ever
//! goes backwards between processors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::finding::Finding;
use super::super::subject::Subject;
use super::Check;

pub(super) const ENTRY: Check =
    Check { name: "clock", about: "what times are read from, how fine, and whether it only goes on", look };

const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0";
/// Sources that are read without asking the kernel.
const FAST: [&str; 5] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "xen"];
/// A reading that takes longer is a part of what is measured.
const SLOW_READING: Duration = Duration::from_nanos(500);
/// How long threads compare their readings.
const COMPARED: Duration = Duration::from_millis(20);
const THREADS_MOST: u32 = 16;

/// What readings of several threads showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Readings {
    /// The smallest step that was seen.
    step: Duration,
    /// What one reading takes.
    cost: Duration,
    /// How many threads read.
    threads: u32,
    /// How often a reading was before one that another thread had made.
    backwards: u64,
}

fn look(subject: &Subject) -> Finding {
    let source = |name: &str| subject.host.read(format!("{SOURCES}/{name}_clocksource"));
    let threads = subject.processors.clamp(1, THREADS_MOST);
    judged(source("current").as_deref(), &source("available").unwrap_or_default(), readings(threads))
}

fn judged(source: Option<&str>, available: &str, seen: Readings) -> Finding {
    let Readings { step, cost, threads, backwards } = seen;
    let name = source.unwrap_or("a clock of unknown source");
    let told = format!("{name}, steps of {} ns, {} ns a reading", step.as_nanos(), cost.as_nanos());
    let faster = available.split_whitespace().find(|other| FAST.contains(other));
    let finding = if backwards > 0 {
        Finding::problem(
            format!("{told}; went backwards {backwards} times between {threads} threads"),
            "times are wrong on this machine: take another clock source (clocksource=hpet at boot), or \
             another machine",
        )
    } else if cost <= SLOW_READING {
        Finding::ok(format!("{told}; forward only, over {threads} threads"))
    } else {
        let remedy = match faster.filter(|faster| Some(*faster) != source) {
            Some(faster) => format!("echo {faster} | sudo tee {SOURCES}/current_clocksource"),
            None => {
                "the machine, or what it runs in, offers no faster clock: short times are less exact here"
                    .to_owned()
            }
        };
        Finding::note(format!("{told}: slow"), remedy)
    };
    finding
        .with("source", source)
        .with("step_ns", step.as_nanos() as u64)
        .with("reading_ns", cost.as_nanos() as u64)
        .with("threads", threads)
        .with("went_backwards", backwards)
}

/// Reads the clock on `threads` threads at a time and compares.
fn readings(threads: u32) -> Readings {
    let start = Instant::now();
    let latest = AtomicU64::new(0);
    let backwards: u64 = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| compared(start, &latest))).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    let (step, cost) = steps();
    Readings { step, cost, threads, backwards }
}

/// How often a reading was before the latest that had been made when it began.
fn compared(start: Instant, latest: &AtomicU64) -> u64 {
    let mut backwards = 0;
    loop {
        let before = latest.load(Ordering::Acquire);
        let now = start.elapsed().as_nanos() as u64;
        backwards += u64::from(now < before);
        latest.fetch_max(now, Ordering::AcqRel);
        if now >= COMPARED.as_nanos() as u64 {
            return backwards;
        }
    }
}

/// The smallest step between readings, and what a reading takes.
fn steps() -> (Duration, Duration) {
    const READINGS: u32 = 20_000;
    let start = Instant::now();
    let mut last = start;
    let mut least = Duration::MAX;
    for _ in 0..READINGS {
        let now = Instant::now();
        let step = now.saturating_duration_since(last);
        if !step.is_zero() {
            least = least.min(step);
        }
        last = now;
    }
    (least, last.saturating_duration_since(start) / READINGS)
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    const GOOD: Readings =
        Readings { step: Duration::from_nanos(10), cost: Duration::from_nanos(25), threads: 2, backwards: 0 };

    #[test]
    fn a_clock_is_judged_by_what_it_did() {
        let good = judged(Some("tsc"), "tsc kvm-clock", GOOD);
        assert_eq!(good.verdict, Verdict::Ok);
        assert_eq!(good.found, "tsc, steps of 10 ns, 25 ns a reading; forward only, over 2 threads");
        let slow = Readings { cost: Duration::from_micros(1), ..GOOD };
        let slow_remedy = |source, available| judged(Some(source), available, slow).remedy.unwrap();
        assert!(slow_remedy("hpet", "hpet tsc").starts_with("echo tsc | sudo tee /sys/"));
        assert!(slow_remedy("hpet", "hpet acpi_pm").contains("no faster clock"));
        assert!(slow_remedy("tsc", "tsc hpet").contains("no faster clock"));
        let wild = judged(None, "", Readings { backwards: 3, ..GOOD });
        assert_eq!((wild.verdict, wild.facts["went_backwards"].as_u64()), (Verdict::Problem, Some(3)));
    }

    /// Broken by: readings of one thread that are compared with its own later ones.
    #[test]
    fn this_clock_is_read() {
        let seen = readings(2);
        assert!(seen.step > Duration::ZERO && seen.step < Duration::from_secs(1), "{seen:?}");
        assert_eq!(seen.threads, 2);
    }

    #[test]
    fn a_reading_before_another_is_seen() {
        let late = AtomicU64::new(COMPARED.as_nanos() as u64 * 1000);
        assert!(compared(Instant::now(), &late) > 0);
    }
}
