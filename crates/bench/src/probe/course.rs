//! Writing that goes on: caches of drives fill up, and what was fast at first is not any more.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use wavetank_model::{Result, Sustained};

use super::crew::Crew;
use super::plan::Load;
use super::set::{Ended, ended};

/// Into how many steps the time falls.
const STEPS: usize = 20;
/// What is shown as the beginning: this many seconds, or a step if that is longer.
const BURST_SECONDS: f64 = 1.0;
/// It fell if less than this share of the beginning is left.
const FALLEN: f64 = 0.8;

/// Writes for some seconds; `None` when it was stopped.
pub(super) fn measure(crew: Crew<'_>, seconds: f64) -> Result<Option<Sustained>> {
    let (load, step_seconds) = (crew.load, seconds / STEPS as f64);
    let written: [AtomicU64; STEPS] = std::array::from_fn(|_| AtomicU64::new(0));
    let begun = OnceLock::new();
    let done = crew.work(|mut hand, halt| {
        // Opening lanes is not writing.
        let start = *begun.get_or_init(Instant::now);
        (0..hand.depth).for_each(|_| hand.part.ask(&mut hand.lane));
        while let Some(done) = hand.lane.wait() {
            if halt.is_called() {
                break;
            }
            let is_written = ended(done.outcome)? == Ended::Written;
            // What ends after the time still has to, and is not counted.
            if let Some(step) = written.get((start.elapsed().as_secs_f64() / step_seconds) as usize) {
                step.fetch_add(u64::from(is_written) * load.bytes, Ordering::Relaxed);
                hand.part.ask(&mut hand.lane);
            }
        }
        Ok(())
    })?;
    let course = written.into_iter().map(|bytes| bytes.into_inner() as f64 / step_seconds).collect();
    Ok(done.map(|_| told(load, step_seconds, course)))
}

/// Where a course begins, where it ends up, and when it went from one to the other.
fn told(load: Load, step_seconds: f64, course: Vec<f64>) -> Sustained {
    let first = ((BURST_SECONDS / step_seconds).round() as usize).clamp(1, course.len() / 2);
    let burst = course[..first].iter().sum::<f64>() / first as f64;
    let mut late = course[course.len() / 2..].to_vec();
    late.sort_unstable_by(f64::total_cmp);
    let steady = late[late.len() / 2];
    let between = (burst + steady) / 2.0;
    let fell = course.iter().position(|rate| *rate < between).filter(|_| steady < FALLEN * burst);
    Sustained {
        bytes: load.bytes,
        depth: load.depth,
        step_seconds,
        burst_bytes_per_second: burst,
        steady_bytes_per_second: steady,
        fell_at_seconds: fell.map(|step| step as f64 * step_seconds),
        course_bytes_per_second: course,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a fall that is looked for in a course that only scatters, or is told a step late.
    #[test]
    fn a_fall_is_told_when_it_happens() {
        let load = Load::writes(1, 1);
        let course =
            |at: usize, after: f64| (0..20).map(|step| if step < at { 100.0 } else { after }).collect();
        let fallen = told(load, 0.5, course(6, 30.0));
        assert_eq!((fallen.burst_bytes_per_second, fallen.steady_bytes_per_second), (100.0, 30.0));
        assert_eq!(fallen.fell_at_seconds, Some(3.0));
        assert_eq!(told(load, 0.5, course(6, 90.0)).fell_at_seconds, None);
    }
}
