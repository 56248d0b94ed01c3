//! The files `tidy` looks at: tracked ones and new ones that git does not ignore, as far as they are text.

use std::fs;
use std::path::Path;

use super::source::{self, Masks};
use crate::process;

/// Every text file of the repository, and the names of those that are not text.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    pub(super) others: Vec<String>,
}

/// One text file; `masks` is empty unless it is Rust.
pub(super) struct File {
    /// Relative to the repository, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) masks: Masks,
}

impl Tree {
    pub(super) fn of_repository() -> Result<Self, String> {
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let names = process::text_of("git", &list)?;
        Self::read(Path::new("."), names.split_terminator('\0'))
    }

    /// Reads the named files that exist.
    fn read<'a>(root: &Path, names: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let (mut files, mut others) = (Vec::new(), Vec::new());
        for name in names.filter(|name| root.join(name).is_file()) {
            let bytes = fs::read(root.join(name)).map_err(|e| format!("{name}: {e}"))?;
            match String::from_utf8(bytes) {
                Ok(text) => files.push(File::of(name, text)),
                Err(_) => others.push(name.to_owned()),
            }
        }
        Ok(Self { files, others })
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }
}

impl File {
    pub(super) fn of(path: &str, text: String) -> Self {
        let masks = if path.ends_with(".rs") { source::masks(&text) } else { Masks::default() };
        Self { path: path.to_owned(), text, masks }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// A file of nothing but tests: `tests.rs`, or anything in a `tests` folder.
    pub(super) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// The folder under `crates/` this file is in, and the rest of its path.
    pub(super) fn place_in_crate(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("crates/")?.split_once('/')
    }

    /// The line of a byte offset, from one.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        source::line_of(&self.text, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_files_are_left_out_and_binary_ones_are_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.md"), "text").unwrap();
        fs::write(folder.path().join("b.gz"), [0x1f, 0x8b, 0xff]).unwrap();
        let tree = Tree::read(folder.path(), ["a.md", "b.gz", "gone.rs"].into_iter()).unwrap();
        assert_eq!(tree.files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["a.md"]);
        assert_eq!(tree.others, ["b.gz"]);
    }

    #[test]
    fn test_files_are_told_from_their_path() {
        let is_test = |path| File::of(path, String::new()).is_test();
        assert!(is_test("crates/cli/tests/it/main.rs") && is_test("crates/sim/src/tests.rs"));
        assert!(!is_test("crates/sim/src/contests.rs"));
    }
}
