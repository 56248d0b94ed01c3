//! A fresh clone of the last commit, with the command on its path.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, cargo, target_dir, text_of};

/// Where a walk takes place.
pub(super) struct Checkout {
    /// The clone.
    pub(super) tree: PathBuf,
    /// What goes in front of the path: the command, and with a given binary what stands in for cargo.
    pub(super) programs: PathBuf,
    /// What blocks print.
    pub(super) log: PathBuf,
}

/// With a given binary nothing is built: what documents ask of cargo is answered by that binary.
const CARGO: &str = r#"#!/bin/sh
case "$1 $2" in
  "build --release") exit 0 ;;
  "run --release") shift 3; exec wavetank "$@" ;;
esac
echo "cargo $*: a walk with --binary knows build --release and run --release" >&2
exit 1
"#;

impl Checkout {
    /// Clones into `folder`, made anew, and builds the command there unless there is one.
    pub(super) fn make(folder: Option<PathBuf>, binary: Option<&Path>) -> Result<Self, String> {
        let folder = absolute(&folder.unwrap_or_else(|| target_dir().join("walk")))?;
        let [tree, programs] = ["wavetank", "programs"].map(|name| folder.join(name));
        for made in [&tree, &programs] {
            // What an earlier walk left.
            let _ = fs::remove_dir_all(made);
        }
        fs::create_dir_all(&programs).map_err(|error| format!("{}: {error}", programs.display()))?;
        let unsaved = text_of("git", &["status", "--porcelain"])?.lines().count();
        if unsaved > 0 {
            println!("note: {unsaved} files are not as in the last commit, which is what is walked");
        }
        process::run(Command::new("git").args(["clone", "--quiet", "."]).arg(&tree))?;
        let checkout = Self { tree, programs, log: folder.join("output.txt") };
        checkout.provide(binary)?;
        Ok(checkout)
    }

    fn provide(&self, binary: Option<&Path>) -> Result<(), String> {
        let binary = match binary {
            Some(binary) => {
                let shim = self.programs.join("cargo");
                let written = fs::write(&shim, CARGO);
                let made =
                    written.and_then(|()| fs::set_permissions(&shim, PermissionsExt::from_mode(0o755)));
                made.map_err(|error| format!("{}: {error}", shim.display()))?;
                absolute(binary)?
            }
            None => {
                let mut build = cargo(&["build", "--release"]);
                process::run(build.current_dir(&self.tree).env_remove("CARGO_TARGET_DIR"))?;
                self.tree.join("target/release/wavetank")
            }
        };
        if !binary.is_file() {
            return Err(format!("{}: there is no such binary", binary.display()));
        }
        symlink(&binary, self.programs.join("wavetank")).map_err(|error| error.to_string())
    }

    /// Puts the clone back to what it was, but for what was built.
    pub(super) fn sweep(&self) -> Result<(), String> {
        let git = |words: &[&str]| process::run(Command::new("git").arg("-C").arg(&self.tree).args(words));
        git(&["checkout", "--quiet", "."])?;
        git(&["clean", "-ffdxq", "--exclude", "/target"])
    }
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}
