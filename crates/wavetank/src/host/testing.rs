//! Systems made of files.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::Host;

/// A system in a folder, which goes with it.
pub(crate) struct System {
    root: TempDir,
}

impl System {
    /// One without a file.
    pub(crate) fn empty() -> Self {
        Self { root: tempfile::tempdir().expect("a temporary directory") }
    }

    /// As its processes see it.
    pub(crate) fn host(&self) -> Host {
        Host::below(self.path())
    }

    /// Its root.
    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    /// Makes a file and the folders above it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.host().at(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    /// Makes a folder.
    pub(crate) fn folder(&self, path: &str) {
        fs::create_dir_all(self.host().at(path)).expect("a folder");
    }

    /// Makes `path` a link `to` something.
    pub(crate) fn link(&self, to: &str, path: &str) {
        let path = self.host().at(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("folders");
        std::os::unix::fs::symlink(self.host().at(to), path).expect("a link");
    }
}
