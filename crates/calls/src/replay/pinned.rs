//! The recording knows better: what a call found is made what it found then.

use wavetank_model::{KeyId, LayoutId, Prefetch, Recorded, StorageCall};

use super::Player;
use super::expect::{Expected, caller_of};

impl Player<'_> {
    /// Puts right what the call just made found.
    pub(super) fn put_right(&mut self, recorded: &Recorded, expected: &Expected) {
        let Some(expected) = expected else { return };
        match &recorded.call {
            StorageCall::SubmitPrefetch(asked) => self.put_hits_right(recorded, asked, expected),
            StorageCall::ReserveWrite { keys, layout, .. } => self.put_grants_right(keys, *layout, expected),
            _ => {}
        }
    }

    fn put_hits_right(&mut self, recorded: &Recorded, asked: &Prefetch, expected: &[KeyId]) {
        let thread = caller_of(recorded, self.by_thread);
        let mut got: Vec<KeyId> = self.found(&recorded.call).collect();
        got.sort_unstable();
        for &key in got.iter().filter(|key| expected.binary_search(key).is_err()) {
            self.callers.of(thread).take(key, u32::MAX);
            self.engine.force_out(key);
            self.tally.forced_out += 1;
        }
        for row in &asked.rows {
            let bytes = self.layout_bytes[row.layout.0 as usize];
            let wanted = row.keys.iter().filter(|key| expected.binary_search(key).is_ok());
            for &key in wanted.filter(|key| got.binary_search(key).is_err()) {
                self.engine.force_in(key, bytes, asked.readers.max(1));
                self.callers.of(thread).hold(key, asked.readers);
                self.tally.forced_in += 1;
            }
        }
    }

    /// What was granted then is granted; what was refused then was there, so it is there now.
    fn put_grants_right(&mut self, keys: &[KeyId], layout: LayoutId, expected: &[KeyId]) {
        let bytes = self.layout_bytes[layout.0 as usize];
        let granted = |fate: &wavetank_model::Fate| *fate == wavetank_model::Fate::Done;
        let fates = std::mem::take(&mut self.fates);
        for (&key, fate) in keys.iter().zip(&fates) {
            match (expected.binary_search(&key).is_ok(), granted(fate)) {
                (true, false) => {
                    self.engine.force_out(key);
                    self.engine.reserve_write(&[key], bytes, &mut Vec::new());
                    self.tally.forced_out += 1;
                }
                (false, true) => {
                    self.engine.finish_write(&[key], &mut Vec::new());
                    self.tally.forced_in += 1;
                }
                _ => {}
            }
        }
        self.fates = fates;
    }
}
