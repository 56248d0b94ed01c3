//! How late a thread that sleeps is woken: live workers, `mock` and paced replays sleep until it is time.

use std::thread;
use std::time::{Duration, Instant};

use super::super::finding::Finding;
use super::super::subject::Subject;
use super::Check;

pub(super) const ENTRY: Check = Check { name: "timers", about: "how late a sleeping thread is woken", look };

const SLEEP: Duration = Duration::from_millis(1);
const SLEEPS: usize = 21;
/// A pass of a live worker takes milliseconds.
const LATE: Duration = Duration::from_micros(500);

fn look(_: &Subject) -> Finding {
    let mut late: Vec<Duration> = (0..SLEEPS).map(|_| lateness()).collect();
    late.sort_unstable();
    judged(late[SLEEPS / 2], late[SLEEPS - 1])
}

fn lateness() -> Duration {
    let start = Instant::now();
    thread::sleep(SLEEP);
    start.elapsed().saturating_sub(SLEEP)
}

fn judged(usual: Duration, most: Duration) -> Finding {
    let told = format!(
        "a sleep of 1 ms ends {} µs late, at most {} µs in {SLEEPS} tries",
        usual.as_micros(),
        most.as_micros()
    );
    let finding = if usual > LATE {
        let remedy = "live workers (mock, --replay-mode online) are late here: leave processors idle, \
                      switch deep sleep off (sudo cpupower idle-set -D 50), or replay offline";
        Finding::note(told, remedy)
    } else {
        Finding::ok(told)
    };
    finding.with("late_us_median", usual.as_micros() as u64).with("late_us_max", most.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::*;

    #[test]
    fn the_usual_lateness_counts_and_not_the_worst() {
        let micros = Duration::from_micros;
        let fine = judged(micros(60), micros(9000));
        assert_eq!(fine.found, "a sleep of 1 ms ends 60 µs late, at most 9000 µs in 21 tries");
        assert_eq!(fine.verdict, Verdict::Ok);
        assert_eq!(judged(micros(4000), micros(9000)).verdict, Verdict::Note);
    }
}
