//! How long a thread sleeps: time that goes by less what it spends on a processor.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A thread that may fall asleep from now on.
pub(crate) struct Drowsy {
    begun: Instant,
    worked: Duration,
}

impl Drowsy {
    pub(crate) fn now() -> Self {
        Self { begun: Instant::now(), worked: worked() }
    }

    /// How long it slept.
    pub(crate) fn slept(&self) -> Duration {
        self.begun.elapsed().saturating_sub(worked() - self.worked)
    }
}

/// Processor time of this thread so far.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: work that counts as sleep, or sleep that does not.
    #[test]
    fn work_is_no_sleep() {
        const NAP: Duration = Duration::from_millis(30);
        let drowsy = Drowsy::now();
        std::thread::sleep(NAP);
        let slept = drowsy.slept();
        let before = worked();
        while worked() - before < NAP {}
        assert!(slept > NAP / 2, "{slept:?}");
        assert!(drowsy.begun.elapsed() - drowsy.slept() >= NAP, "what it worked is no sleep");
    }
}
