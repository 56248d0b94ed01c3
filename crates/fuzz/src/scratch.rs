//! A file for readers that take a path. It is gone when it is dropped.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A file in a folder of its own.
pub(crate) struct Scratch {
    folder: TempDir,
    path: PathBuf,
}

impl Scratch {
    /// A file called `name` that holds `bytes`.
    pub(crate) fn of(name: &str, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("there is room for an input");
        Self { folder, path }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How errors name the file.
    pub(crate) fn place(&self) -> String {
        self.path.display().to_string()
    }
}
