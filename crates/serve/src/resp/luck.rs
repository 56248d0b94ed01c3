//! Whether it pays to look for more to do before going to sleep.

/// How often a thread looks.
const GLANCES: u32 = 10;
/// After so many times in vain it looks only now and then.
const PATIENCE: u32 = 4;
/// How often, of so many times.
const RETRY: u32 = 32;

/// What became of the last looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Luck {
    in_vain: u32,
    skipped: u32,
}

impl Luck {
    /// How often to look this time.
    pub(super) fn glances(&mut self) -> u32 {
        if self.in_vain < PATIENCE {
            return GLANCES;
        }
        self.skipped = (self.skipped + 1) % RETRY;
        if self.skipped == 0 { GLANCES } else { 0 }
    }

    /// There was something.
    pub(super) fn found(&mut self) {
        self.in_vain = 0;
    }

    /// There was nothing, however often.
    pub(super) fn found_nothing(&mut self) {
        self.in_vain = self.in_vain.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: looking for ever in vain, or never again.
    #[test]
    fn who_finds_nothing_looks_seldom() {
        let mut luck = Luck::default();
        let looked = |luck: &mut Luck, times: u32| {
            (0..times)
                .filter(|_| {
                    let looks = luck.glances() > 0;
                    if looks {
                        luck.found_nothing();
                    }
                    looks
                })
                .count()
        };
        assert_eq!(looked(&mut luck, 4 + 10 * RETRY), 4 + 10);
        luck.found();
        assert_eq!(luck.glances(), GLANCES);
    }
}
