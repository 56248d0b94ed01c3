//! `release`: the binary as it is given to others, its checksum, and the list of what is inside. The same
//! revision gives the same bytes, whoever builds it in whichever folder: `--check` builds twice and compares.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::process::{self, cargo, output_of, target_dir, text_of};
use crate::supply;

/// Where the results are.
const FILES: &str = "release-files";

/// The chore.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let is_checked = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        [other, ..] => return Err(Failure::Usage(format!("unexpected argument `{other}`"))),
    };
    let revision = revision()?;
    let binary = built(Path::new("."), &target_dir().join("release-build"), &revision)?;
    let files = target_dir().join(FILES);
    fs::create_dir_all(&files).map_err(|e| format!("{}: {e}", files.display()))?;
    let name = format!("wavetank-{}-{}", env!("CARGO_PKG_VERSION"), host()?);
    let place = files.join(&name);
    fs::copy(&binary, &place).map_err(|e| format!("{}: {e}", place.display()))?;
    let sum = checksum(&place)?;
    let line = format!("{sum}  {name}\n");
    fs::write(files.join(format!("{name}.sha256")), &line).map_err(|e| e.to_string())?;
    let list = supply::contents()?;
    println!("{line}revision {revision}\nneeds {}\ninside: {}", needs(&place)?, list.display());
    if is_checked {
        elsewhere(&revision, &sum)?;
    }
    Ok(())
}

/// The commit, and that the tree is not as it was there where that is so.
fn revision() -> Result<String, String> {
    text_of("git", &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

fn host() -> Result<String, String> {
    let about = text_of("rustc", &["-vV"])?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc names no host".to_owned())
}

/// Builds the tree in `root`. Nothing of where it lies gets into the binary: not in messages, not from C.
fn built(root: &Path, target: &Path, revision: &str) -> Result<PathBuf, String> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()));
    let (root, target) = (fs::canonicalize(root).map_err(|e| e.to_string())?, absolute(target)?);
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"));
    let home = home.map_err(|_| "where cargo keeps sources is not known: set CARGO_HOME")?;
    let places = [(target.as_path(), "/target"), (root.as_path(), "/wavetank"), (Path::new(&home), "/cargo")];
    let mapped = |option: &str| {
        let options = places.iter().map(|(from, to)| format!("{option}={}={to}", from.display()));
        options.collect::<Vec<_>>().join(" ")
    };
    let mut build = cargo(&["build", "--release", "--locked", "-p", "wavetank-cli"]);
    build.current_dir(&root).arg("--target-dir").arg(&target).env("WAVETANK_REVISION", revision);
    build.env("RUSTFLAGS", mapped("--remap-path-prefix")).env("CFLAGS", mapped("-ffile-prefix-map"));
    // Names of functions stay for backtraces; lines are what most of the file would be.
    build.env("CARGO_PROFILE_RELEASE_DEBUG", "none").env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    build.env("SOURCE_DATE_EPOCH", text_of("git", &["log", "-1", "--format=%ct"])?);
    process::run(&mut build)?;
    Ok(target.join("release/wavetank"))
}

/// Builds the same revision in another folder and compares.
fn elsewhere(revision: &str, sum: &str) -> Result<(), String> {
    if revision.ends_with("-dirty") {
        return Err("the tree has changes that are not committed: only a commit is built twice".to_owned());
    }
    let folder = target_dir().join("release-again");
    let tree = folder.join("another/folder");
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|e| format!("{}: {e}", tree.display()))?;
    }
    process::run(Command::new("git").args(["clone", "--quiet", "--no-hardlinks", "."]).arg(&tree))?;
    let other = checksum(&built(&tree, &folder.join("target"), revision)?)?;
    if other != sum {
        return Err(format!("another folder gives other bytes: {other}"));
    }
    println!("built again in another folder: the same bytes");
    Ok(())
}

fn checksum(path: &Path) -> Result<String, String> {
    let told = output_of(Command::new("sha256sum").arg(path))?;
    told.split_whitespace().next().map(str::to_owned).ok_or_else(|| format!("no checksum: {told}"))
}

/// The newest version of the C library that the binary asks for.
fn needs(binary: &Path) -> Result<String, String> {
    let symbols = output_of(Command::new("objdump").arg("-T").arg(binary))?;
    newest(&symbols)
        .map(|(major, minor)| format!("glibc {major}.{minor}"))
        .ok_or_else(|| "no glibc".to_owned())
}

/// Of versions such as `GLIBC_2.34`, the last.
fn newest(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let version: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let mut parts = version.split('.').map(|part| part.parse().ok());
        Some((parts.next()??, parts.next()??))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: versions compared as texts.
    #[test]
    fn the_newest_version_counts() {
        let symbols = "(GLIBC_2.2.5) memcpy\n(GLIBC_2.34) pthread\n(GLIBC_2.4) x\n(GLIBC_PRIVATE) y";
        assert_eq!(newest(symbols), Some((2, 34)));
        assert_eq!(newest("nothing"), None);
    }
}
