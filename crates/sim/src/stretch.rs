//! Stretches of decode passes between which nothing can change, priced as a run: shared by the engines.

use wavetank_model::Nanos;

use crate::engines::Horizon;
use crate::pace::Pace;
use crate::timing::DecodeBatch;

/// Prices of the passes to come, valid while the running batch stays the same.
#[derive(Default)]
pub(crate) struct Stretch {
    steps: Vec<Nanos>,
    used: usize,
    /// The last pass priced, for guessing how many fit before a horizon.
    last: Nanos,
}

/// The passes that could be advanced together: the batch of the first, and how many.
#[derive(Clone, Copy)]
pub(crate) struct Course<'a> {
    pub(crate) pace: &'a Pace,
    pub(crate) batch: DecodeBatch,
    pub(crate) most: u32,
}

/// How far a stretch goes.
pub(crate) struct Advance {
    pub(crate) count: u32,
    pub(crate) end: Nanos,
    /// Whether the next pass would have ended beyond what may happen.
    pub(crate) halted: bool,
}

/// Passes priced ahead of need: a batch that changes before they are used has wasted at most these.
const AHEAD: usize = 256;

impl Stretch {
    /// The batch has changed.
    pub(crate) fn forget(&mut self) {
        self.steps.clear();
        self.used = 0;
    }

    /// The first pass of the course is in flight already and takes this long.
    pub(crate) fn prime(&mut self, in_flight: Option<Nanos>) {
        if let Some(first) = in_flight
            && self.ready() == 0
        {
            self.forget();
            self.steps.push(first);
            self.last = first;
        }
    }

    /// How long the pass after the next `count` takes.
    pub(crate) fn step_after(&mut self, course: Course<'_>, count: u32) -> Nanos {
        if self.ready() == count as usize {
            self.price(course, count, 1);
        }
        self.steps[self.used + count as usize]
    }

    /// How many passes of `course` start before the horizon when the first starts at `start`.
    pub(crate) fn advance(&mut self, course: Course<'_>, start: Nanos, horizon: Horizon) -> Advance {
        let (mut count, mut end) = (0, start);
        while count < course.most && end < horizon.starts_before {
            if self.ready() == count as usize {
                // As many as fit before the horizon if passes stay as long as the last one.
                let left = horizon.starts_before.since(end).0;
                let guess = left / self.last.0.max(1) + 1;
                self.price(course, count, guess.min(u64::from(course.most - count)) as usize);
            }
            let next = end + self.steps[self.used + count as usize];
            if next > horizon.ends_by {
                return Advance { count, end, halted: true };
            }
            (count, end) = (count + 1, next);
        }
        Advance { count, end, halted: false }
    }

    /// The end of the passes priced so far, at least `AHEAD` of them if there are as many.
    pub(crate) fn end_of_plan(&mut self, course: Course<'_>, start: Nanos) -> Nanos {
        let (ready, most) = (self.ready(), course.most as usize);
        let wanted = AHEAD.min(most);
        if ready < wanted {
            self.price(course, ready as u32, wanted - ready);
        }
        let planned = &self.steps[self.used..];
        start + planned[..planned.len().min(most)].iter().copied().sum()
    }

    /// The first start of a pass at or after `time`, or the end of the course.
    pub(crate) fn end_of_start(&mut self, course: Course<'_>, start: Nanos, time: Nanos) -> Nanos {
        self.advance(course, start, Horizon { starts_before: time, ends_by: Nanos::MAX }).end
    }

    /// Durations of the next `count` passes, which were priced.
    pub(crate) fn steps(&self, count: u32) -> &[Nanos] {
        &self.steps[self.used..][..count as usize]
    }

    /// Marks `count` passes as done.
    pub(crate) fn done(&mut self, count: u32) {
        self.used += count as usize;
    }

    fn ready(&self) -> usize {
        self.steps.len() - self.used
    }

    /// Prices more passes after `count`.
    fn price(&mut self, course: Course<'_>, count: u32, passes: usize) {
        course.pace.decode_run(course.batch.after(count), passes.min(AHEAD), &mut self.steps);
        self.last = self.steps[self.steps.len() - 1];
    }
}

/// The largest number from `sure` to `most` for which `fits` holds. It holds for `sure`, and for everything
/// below a number for which it does.
pub(crate) fn longest(sure: u32, most: u32, fits: impl Fn(u32) -> bool) -> u32 {
    if sure >= most || fits(most) {
        return most;
    }
    let (mut enough, mut short) = (sure, most);
    while short - enough > 1 {
        let middle = enough + (short - enough) / 2;
        match fits(middle) {
            true => enough = middle,
            false => short = middle,
        }
    }
    enough
}
