//! How many objects there are, in whatever tier.

use wavetank_model::KeyId;

use crate::grow::grow;

/// Which keys have an object anywhere, and how many those are.
#[derive(Debug, Default)]
pub(super) struct Presence {
    rows: Vec<bool>,
    count: usize,
}

impl Presence {
    /// Keys below `keys` may be noted.
    pub(super) fn grow(&mut self, keys: usize) {
        grow(&mut self.rows, keys);
    }

    /// There is an object of `key`, or there is none.
    pub(super) fn note(&mut self, key: KeyId, is_there: bool) {
        let row = &mut self.rows[key.0 as usize];
        self.count = self.count + usize::from(is_there) - usize::from(*row);
        *row = is_there;
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}
