//! `supply`: what others wrote and we deliver. Licences, bans and sources are judged by `deny.toml`,
//! advisories where a database can be had, dependencies that nothing uses, and a list of everything inside
//! (CycloneDX).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, cargo, output_of, target_dir};
use crate::{Failure, no_arguments};

/// Tools by package name, and their versions.
const TOOLS: [[&str; 2]; 3] =
    [["cargo-deny", "0.20.2"], ["cargo-machete", "0.9.2"], ["cargo-cyclonedx", "0.5.9"]];
/// What needs no network.
const OFFLINE: [&str; 3] = ["licenses", "bans", "sources"];

/// The chore.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    no_arguments(args)?;
    install()?;
    at_hand()?;
    advisories()?;
    let list = contents()?;
    println!("what is inside: {}", list.display());
    Ok(())
}

/// The step of `ci`: what the tools that are there find, without a network.
pub(crate) fn at_hand() -> Result<(), String> {
    let deny = tool("cargo-deny");
    if deny.exists() {
        let mut check = Command::new(deny);
        process::run(check.args(["--offline", "check", "--hide-inclusion-graph"]).args(OFFLINE))?;
    }
    let machete = tool("cargo-machete");
    if machete.exists() {
        process::run(Command::new(machete).args(["crates", "xtask", "fuzz"]))?;
    }
    if !tool("cargo-deny").exists() || !tool("cargo-machete").exists() {
        println!("not all tools are there: `cargo xtask supply` installs them");
    }
    Ok(())
}

fn folder() -> PathBuf {
    target_dir().join("tools")
}

fn tool(name: &str) -> PathBuf {
    folder().join("bin").join(name)
}

/// Builds the tools that are missing.
fn install() -> Result<(), String> {
    for [name, version] in TOOLS {
        if tool(name).exists() {
            continue;
        }
        let package = format!("{name}@{version}");
        let mut install = cargo(&["install", "--locked", &package, "--root"]);
        // Its own place, for what is built there is of no use to anybody else.
        install.arg(folder()).arg("--target-dir").arg(folder().join("build"));
        process::run(&mut install)?;
    }
    Ok(())
}

/// Known vulnerabilities, where somebody can be asked about them; where nobody can, that is said.
fn advisories() -> Result<(), String> {
    let mut check = Command::new(tool("cargo-deny"));
    check.args(["check", "--hide-inclusion-graph", "advisories"]);
    match output_of(&mut check) {
        Ok(told) => println!("advisories: {}", if told.is_empty() { "none" } else { &told }),
        Err(problem) if is_without_database(&problem) => {
            println!("advisories are NOT checked: no database can be had from here");
        }
        Err(problem) => return Err(problem),
    }
    Ok(())
}

/// Whether a check ended because there was nothing to check against.
fn is_without_database(problem: &str) -> bool {
    problem.contains("failed to fetch advisory database")
}

/// Writes the list of everything that is in the binary.
pub(crate) fn contents() -> Result<PathBuf, String> {
    const NAME: &str = "wavetank.cdx";
    install()?;
    let mut list = Command::new(tool("cargo-cyclonedx"));
    list.args(["cyclonedx", "--manifest-path", "crates/cli/Cargo.toml", "--format", "json"]);
    list.args(["--override-filename", NAME, "--quiet"]);
    process::run(&mut list)?;
    // It writes one beside every manifest of the workspace.
    let file = format!("{NAME}.json");
    let place = target_dir().join("release-files").join(&file);
    let moved = fs::create_dir_all(target_dir().join("release-files"))
        .and_then(|()| fs::copy(Path::new("crates/cli").join(&file), &place));
    moved.map_err(|error| format!("{}: {error}", place.display()))?;
    let folders = fs::read_dir("crates").into_iter().flatten().flatten().map(|entry| entry.path());
    for folder in folders.chain(["xtask".into()]) {
        // Not every folder is a crate.
        let _ = fs::remove_file(folder.join(&file));
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: advisories that were found and count as a database that was not.
    #[test]
    fn what_was_found_is_no_missing_database() {
        let message = "[ERROR] failed to fetch advisory database DB with cli: failed to clone: [\"clone\"]";
        assert!(is_without_database(message));
        assert!(!is_without_database("error[vulnerability]: x\nID: RUSTSEC-1\nadvisories FAILED"));
    }
}
