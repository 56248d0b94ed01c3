//! Files that hold nothing, by length, to be used for the next entries.

use std::collections::BTreeMap;

/// A file without an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpareFile {
    /// In which directory.
    pub(crate) shard: u8,
    /// The number in its name.
    pub(crate) version: u64,
    /// Never held an entry.
    pub(crate) fresh: bool,
    /// How long it is.
    pub(crate) len: u64,
}

impl SpareFile {
    /// Its name.
    pub(crate) fn name(&self) -> String {
        let kind = if self.fresh { "part" } else { "free" };
        format!("{:016x}.{kind}", self.version)
    }
}

/// The spare files of a folder.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    by_len: BTreeMap<u64, Vec<SpareFile>>,
}

impl Spares {
    /// The best file for `len` bytes: the shortest that is long enough, else the longest, to be grown.
    pub(crate) fn take(&mut self, len: u64) -> Option<SpareFile> {
        let fit = self.by_len.range(len..).next().or_else(|| self.by_len.iter().next_back());
        let len = *fit?.0;
        self.pop(len)
    }

    /// The shortest file that takes room.
    pub(crate) fn take_shortest(&mut self) -> Option<SpareFile> {
        let len = *self.by_len.range(1..).next()?.0;
        self.pop(len)
    }

    fn pop(&mut self, len: u64) -> Option<SpareFile> {
        let files = self.by_len.get_mut(&len)?;
        let file = files.pop();
        if files.is_empty() {
            self.by_len.remove(&len);
        }
        file
    }

    /// Adds a file.
    pub(crate) fn add(&mut self, file: SpareFile) {
        self.by_len.entry(file.len).or_default().push(file);
    }

    /// Takes all of them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = SpareFile> + use<> {
        std::mem::take(&mut self.by_len).into_values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u64, len: u64) -> SpareFile {
        SpareFile { shard: 0, version, fresh: false, len }
    }

    #[test]
    fn the_tightest_fit_goes_first_then_the_longest() {
        let mut spares = Spares::default();
        for (version, len) in [(1, 100), (2, 300), (3, 200), (4, 200)] {
            spares.add(file(version, len));
        }
        let order: Vec<_> =
            [150, 150, 50, 400, 10].map(|len| spares.take(len).map(|file| file.version)).into();
        assert_eq!(order, [Some(4), Some(3), Some(1), Some(2), None]);
    }
}
