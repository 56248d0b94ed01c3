//! Whether calls came out as they were recorded.

use wavetank_model::{Fate, KeyId, Recorded, StorageCall};

use super::expect::Expected;
use super::{Divergence, Player, Turn, is_found};

impl Player<'_> {
    /// Whether a call found, or was granted, what it was when it was recorded.
    pub(super) fn compare(&mut self, recorded: &Recorded, (what, expected): (&'static str, &Expected)) {
        let Some(expected) = expected.as_ref().filter(|_| self.turn.round == 0) else { return };
        let mut got = std::mem::take(&mut self.got);
        got.clear();
        got.extend(self.found(&recorded.call));
        got.sort_unstable();
        let differs = got[..] != expected[..];
        let tally = &mut self.tally;
        let (compared, different) = if what == "prefetch" {
            (&mut tally.prefetches_compared, &mut tally.prefetches_that_differ)
        } else {
            (&mut tally.writes_compared, &mut tally.writes_that_differ)
        };
        *compared += 1;
        *different += u64::from(differs);
        if !differs {
            let outcome = self.expect.outcome(recorded).unwrap_or_default().iter();
            let moved = outcome.zip(&self.fates).filter(|(then, now)| is_found(then) && then != now);
            self.tally.tiers_that_differ += moved.count() as u64;
            self.got = got;
            return;
        }
        let odd = got.iter().find(|key| expected.binary_search(key).is_err());
        let odd = odd.or_else(|| expected.iter().find(|key| got.binary_search(key).is_err()));
        let odd = odd.copied();
        self.diverge(what, (expected.len(), got.len()), odd);
    }

    /// Whether a call that looks for nothing came out as recorded, or else as it should.
    pub(super) fn compare_rest(&mut self, recorded: &Recorded, what: &'static str) {
        let then = self.expect.outcome(recorded);
        if self.turn.round > 0 || (then.is_none() && !self.expect.implies()) {
            return;
        }
        self.tally.others_compared += 1;
        let at = |fates: &[Fate], at: usize| fates.get(at).copied().unwrap_or(Fate::Done);
        let expected = |place: usize| then.map_or(Fate::Done, |then| at(then, place));
        let odd = (0..self.fates.len()).find(|&place| self.fates[place] != expected(place));
        let Some(odd) = odd else { return };
        self.tally.others_that_differ += 1;
        let done = |fate: &Fate| *fate == Fate::Done;
        let (all, now) = (self.fates.len(), self.fates.iter().filter(|fate| done(fate)).count());
        let then = then.map_or(all, |then| then.iter().filter(|fate| done(fate)).count());
        let key = recorded.call.keys().nth(odd);
        self.diverge(what, (then, now), key);
    }

    fn diverge(&mut self, what: &'static str, (expected, got): (usize, usize), odd: Option<KeyId>) {
        let Turn { number, at, .. } = self.turn;
        self.tally.first_divergence.get_or_insert(Divergence {
            call: number as u64,
            at,
            what,
            expected: expected as u64,
            got: got as u64,
            key: odd.map_or(0, |key| key.0),
        });
    }

    /// Keys that the call just made found, or was granted.
    pub(super) fn found<'c>(&'c self, call: &'c StorageCall) -> impl Iterator<Item = KeyId> + 'c {
        call.keys().zip(&self.fates).filter(|(_, fate)| is_found(fate)).map(|(key, _)| key)
    }
}
