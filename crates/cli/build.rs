//! Tells the command which commit it is built from. No date and no path goes in: a commit gives the same
//! bytes wherever and whenever it is built, and a tree without git the version alone.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

mod revision;

use std::path::{Path, PathBuf};

/// What the command is built from.
const SOURCES: [&str; 6] =
    [".cargo", "Cargo.lock", "Cargo.toml", "crates", "profiles", "rust-toolchain.toml"];
/// What git changes when another commit is checked out or made.
const MARKS: [&str; 3] = ["HEAD", "logs/HEAD", "packed-refs"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let version = env!("CARGO_PKG_VERSION");
    // Who builds a tree without git says what it is of.
    let told = std::env::var("WAVETANK_REVISION").ok();
    let version = match told.or_else(|| revision::revision(&root, &SOURCES)) {
        Some(revision) => format!("{version} ({revision})"),
        None => version.to_owned(),
    };
    println!("cargo::rustc-env=WAVETANK_VERSION={version}");
    println!("cargo::rerun-if-env-changed=WAVETANK_REVISION");
    for path in watched(&root) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// When to look again. Who develops builds often and is told of changes with the next commit only; a release
/// is always exact.
fn watched(root: &Path) -> Vec<PathBuf> {
    let marks = MARKS.iter().filter_map(|mark| revision::git(root, &["rev-parse", "--git-path", mark]));
    let mut paths: Vec<PathBuf> = marks.map(|path| root.join(path)).collect();
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        paths.extend(SOURCES.map(|source| root.join(source)));
    }
    paths.extend(["build.rs", "revision.rs"].map(PathBuf::from));
    // What is not there would be looked for with every build.
    paths.retain(|path| path.exists());
    paths
}
