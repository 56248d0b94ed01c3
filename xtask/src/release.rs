//! `release`: the binary as it is given to others, its checksum, and the list of what is inside. The same
//! revision gives the same bytes, whoever builds it in whichever folder: `--check` builds twice and compares.
//! `--glibc 2.17` links it against that version of the C library (with Zig's linker), for systems as old.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::process::{self, cargo, host, output_of, target_dir, text_of};
use crate::{peers, supply};

/// Where the results are.
const FILES: &str = "release-files";
/// What links against a C library older than this machine's; libraries to link against come inside.
const ZIG: &[&str] = &["cargo-zigbuild==0.24.0", "ziglang==0.16.0"];
/// A file that every binary must be able to replay.
const TRIED: &str = "examples/conversation.jsonl";

/// A version of the C library.
type Glibc = (u32, u32);

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Built again elsewhere and compared.
    is_checked: bool,
    /// This machine's when absent.
    glibc: Option<Glibc>,
}

impl Options {
    fn of(args: &[String]) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--check" => options.is_checked = true,
                "--glibc" => {
                    let version = args.next().and_then(|text| version(text));
                    let problem = || Failure::Usage("`--glibc` needs a version such as 2.17".to_owned());
                    options.glibc = Some(version.ok_or_else(problem)?);
                }
                _ => return Err(Failure::Usage(format!("unexpected argument `{arg}`"))),
            }
        }
        Ok(options)
    }
}

/// The chore.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let Options { is_checked, glibc } = Options::of(args)?;
    let revision = revision()?;
    let binary = built(Path::new("."), &target_dir().join("release-build"), &revision, glibc)?;
    let files = target_dir().join(FILES);
    fs::create_dir_all(&files).map_err(|e| format!("{}: {e}", files.display()))?;
    let suffix = glibc.map(|(major, minor)| format!("-glibc{major}.{minor}")).unwrap_or_default();
    let name = format!("wavetank-{}-{}{suffix}", env!("CARGO_PKG_VERSION"), host()?);
    let place = files.join(&name);
    fs::copy(&binary, &place).map_err(|e| format!("{}: {e}", place.display()))?;
    let (major, minor) = needs(&place)?;
    if glibc.is_some_and(|most| (major, minor) > most) {
        return Err(Failure::Failed(format!("{name} needs glibc {major}.{minor}")));
    }
    tried(&place, &revision)?;
    let sum = checksum(&place)?;
    let line = format!("{sum}  {name}\n");
    fs::write(files.join(format!("{name}.sha256")), &line).map_err(|e| e.to_string())?;
    let list = supply::contents()?;
    println!("{line}revision {revision}\nneeds glibc {major}.{minor}\ninside: {}", list.display());
    if is_checked {
        elsewhere(&revision, &sum, glibc)?;
    }
    Ok(())
}

/// Starts it: it knows its revision, and does what it is for.
fn tried(binary: &Path, revision: &str) -> Result<(), String> {
    let told = output_of(Command::new(binary).arg("--version"))?;
    if !told.contains(revision) {
        return Err(format!("--version does not name {revision}: {told}"));
    }
    let report = target_dir().join("tried.json");
    output_of(Command::new(binary).args(["replay", TRIED, "--report-json"]).arg(&report))?;
    fs::remove_file(&report).map_err(|e| format!("{}: {e}", report.display()))
}

/// The commit, and that the tree is not as it was there where that is so.
fn revision() -> Result<String, String> {
    text_of("git", &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

/// Builds the tree in `root`. Nothing of where it lies gets into the binary: not in messages, not from C.
fn built(root: &Path, target: &Path, revision: &str, glibc: Option<Glibc>) -> Result<PathBuf, String> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()));
    let (root, target) = (fs::canonicalize(root).map_err(|e| e.to_string())?, absolute(target)?);
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"));
    let home = home.map_err(|_| "where cargo keeps sources is not known: set CARGO_HOME")?;
    let places = [(target.as_path(), "/target"), (root.as_path(), "/wavetank"), (Path::new(&home), "/cargo")];
    let mapped = |option: &str| {
        let options = places.iter().map(|(from, to)| format!("{option}={}={to}", from.display()));
        options.collect::<Vec<_>>().join(" ")
    };
    let (mut build, place) = linked(glibc)?;
    build.args(["--release", "--locked", "-p", "wavetank-cli", "--target-dir"]).arg(&target);
    build.current_dir(&root).env("WAVETANK_REVISION", revision);
    build.env("RUSTFLAGS", mapped("--remap-path-prefix")).env("CFLAGS", mapped("-ffile-prefix-map"));
    // Names of functions stay for backtraces; lines are what most of the file would be.
    build.env("CARGO_PROFILE_RELEASE_DEBUG", "none").env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    build.env("SOURCE_DATE_EPOCH", text_of("git", &["log", "-1", "--format=%ct"])?);
    process::run(&mut build)?;
    Ok(target.join(place))
}

/// What builds, and where in its target folder the binary will be.
fn linked(glibc: Option<Glibc>) -> Result<(Command, PathBuf), String> {
    let Some((major, minor)) = glibc else {
        return Ok((cargo(&["build"]), "release/wavetank".into()));
    };
    let (host, python) = (host()?, peers::python("zig", ZIG)?);
    let programs = python.parent().ok_or("a program without a folder")?;
    let mut build = Command::new(programs.join("cargo-zigbuild"));
    build.args(["zigbuild", "--target", &format!("{host}.{major}.{minor}")]);
    // It looks for a Python that has Zig.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path));
    build.env("PATH", std::env::join_paths(places).map_err(|e| e.to_string())?);
    process::built_once(&mut build);
    Ok((build, PathBuf::from(host).join("release/wavetank")))
}

/// Builds the same revision in another folder and compares.
fn elsewhere(revision: &str, sum: &str, glibc: Option<Glibc>) -> Result<(), String> {
    if revision.ends_with("-dirty") {
        return Err("the tree has changes that are not committed: only a commit is built twice".to_owned());
    }
    let folder = target_dir().join("release-again");
    let tree = folder.join("another/folder");
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|e| format!("{}: {e}", tree.display()))?;
    }
    process::run(Command::new("git").args(["clone", "--quiet", "--no-hardlinks", "."]).arg(&tree))?;
    let other = checksum(&built(&tree, &folder.join("target"), revision, glibc)?)?;
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
fn needs(binary: &Path) -> Result<Glibc, String> {
    let symbols = output_of(Command::new("objdump").arg("-T").arg(binary))?;
    newest(&symbols).ok_or_else(|| format!("{}: asks for no glibc", binary.display()))
}

/// Of versions such as `GLIBC_2.34`, the last.
fn newest(symbols: &str) -> Option<Glibc> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        version(&rest[..end])
    });
    versions.max()
}

/// The first two numbers of a version.
fn version(text: &str) -> Option<Glibc> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
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

    #[test]
    fn options_are_read() {
        let options =
            |line: &str| Options::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).ok();
        assert_eq!(options(""), Some(Options::default()));
        let both = Options { is_checked: true, glibc: Some((2, 17)) };
        assert_eq!(options("--glibc 2.17 --check"), Some(both));
        assert_eq!((options("--glibc"), options("--glibc old"), options("--now")), (None, None, None));
    }
}
