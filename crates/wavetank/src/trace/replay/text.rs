//! A replay of calls as text.

use std::fmt;

use wavetank_calls::Mode;

use super::CallReplay;

impl fmt::Display for CallReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        let mode = match self.plan.mode {
            Mode::Open => "open",
            Mode::Pinned => "pinned",
            Mode::Closed => "closed",
        };
        writeln!(
            f,
            "wavetank trace replay: {}, {} calls, {mode}, virtual time",
            self.recording, tally.calls
        )?;
        writeln!(
            f,
            "Prefetched keys: {} of {} found ({} in memory, {} behind), {} not, {} for want of memory",
            tally.hits_l1 + tally.hits_l2,
            tally.asked,
            tally.hits_l1,
            tally.hits_l2,
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
            "Stored keys: {}; refused {} that were there, {} in writing, {} for want of memory",
            tally.stored, tally.refused_resident, tally.refused_staged, tally.refused_no_memory,
        )?;
        let background = &tally.background;
        let behind = background.behind();
        writeln!(
            f,
            "Evicted: {} from memory in {} passes, {} behind in {}; copied behind {}, dropped there {}",
            background.l1.evicted,
            background.l1.passes,
            behind.evictions.evicted,
            behind.evictions.passes,
            behind.copied,
            behind.dropped,
        )?;
        if self.plan.mode != Mode::Closed {
            self.divergence(f)?;
        }
        for line in &self.left_out {
            writeln!(f, "Left out: {line}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "Warning: {warning}")?;
        }
        Ok(())
    }
}

impl CallReplay {
    /// How far outcomes are from those that the recording holds or implies.
    fn divergence(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        writeln!(
            f,
            "Other than recorded: {} of {} prefetches, {} reservations",
            tally.prefetches_that_differ, tally.prefetches, tally.writes_that_differ,
        )?;
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
