//! Where entries are stored: which directories may be used, how much room they have, and which files a
//! pattern names.

use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, access, statvfs};
use wavetank_model::{Error, Result};

/// First folders of paths that belong to the system.
const SYSTEM: &[&str] = &["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "sys", "usr"];
/// The home of the superuser. What is in it may be used, because many benchmarks run as that user; it itself
/// may not.
const SUPERUSER: &str = "root";
/// Folders of secrets, wherever they are.
const SECRET: &[&str] = &[".gnupg", ".ssh"];

/// Checks a cache directory, which may not exist yet, and gives its absolute path without links.
pub(super) fn check(directory: &Path) -> Result<PathBuf> {
    let wrong = |what: String| Error::usage(what).at("--cache-dir");
    let (existing, path) = resolve(directory).map_err(|error| wrong(format!("cannot be used: {error}")))?;
    if let Some(why) = forbidden(&path) {
        return Err(wrong(format!("{} {why}", path.display())).hint("name a directory of its own"));
    }
    if path.to_str().is_none() {
        return Err(wrong(format!("{} is not UTF-8", path.display())));
    }
    if !existing.is_dir() {
        return Err(wrong(format!("{} is not a directory", existing.display())));
    }
    access(&existing, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| wrong(format!("cannot write in {}: {error}", existing.display())))?;
    Ok(path)
}

/// The room of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Bytes that are free for us.
    pub(crate) free_bytes: u64,
    /// All of its bytes.
    pub(crate) bytes: u64,
    /// How many files may still be made, where it has a limit of them.
    pub(crate) free_files: Option<u64>,
}

/// What there is where `path` is or will be.
pub(crate) fn room(path: &Path) -> Result<Room> {
    let failed = |error: std::io::Error| Error::io(path, error);
    let (existing, _) = resolve(path).map_err(failed)?;
    let system = statvfs(&existing).map_err(|error| failed(error.into()))?;
    let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize);
    let free_files = (system.f_files > 0).then_some(system.f_favail);
    Ok(Room { free_bytes: bytes(system.f_bavail), bytes: bytes(system.f_blocks), free_files })
}

/// Bytes that are free for us where `path` is or will be.
pub(crate) fn free_bytes(path: &Path) -> Result<u64> {
    Ok(room(path)?.free_bytes)
}

/// The nearest parent that exists, or the path itself, and the whole path, both without links.
pub(super) fn resolve(path: &Path) -> std::io::Result<(PathBuf, PathBuf)> {
    let path = std::path::absolute(path)?;
    let existing = path.ancestors().find(|parent| parent.symlink_metadata().is_ok());
    let existing = existing.unwrap_or(Path::new("/"));
    let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
    let existing = existing.canonicalize()?;
    let mut whole = existing.clone();
    for part in rest.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            part => whole.push(part),
        }
    }
    Ok((existing, whole))
}

/// Why no entries are stored at an absolute path, if so.
fn forbidden(path: &Path) -> Option<&'static str> {
    let mut parts = path.components().skip(1).map(|part| part.as_os_str());
    let is_secret = path.components().any(|part| SECRET.iter().any(|name| part.as_os_str() == *name));
    let Some(first) = parts.next() else { return Some("is the whole system") };
    if SYSTEM.iter().any(|name| first == *name) {
        return Some("belongs to the system");
    }
    if first == SUPERUSER && parts.next().is_none() {
        return Some("is the home of the superuser");
    }
    is_secret.then_some("holds secrets")
}

/// The files that `pattern` names, sorted: a file, what matches `*` and `?` in its last part, or, with an
/// `extension`, all of a directory that have it.
pub(super) fn files(flag: &str, pattern: &str, extension: Option<&str>) -> Result<Vec<String>> {
    let wrong = |what: String| Error::usage(what).at(flag);
    let path = Path::new(pattern);
    if path.is_dir() {
        let Some(extension) = extension else { return Err(wrong(format!("{pattern} is a directory"))) };
        let found = matching(path, &format!("*.{extension}")).map_err(|error| Error::io(path, error))?;
        return some(found, || wrong(format!("{pattern} has no .{extension} files")));
    }
    let last = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if path.symlink_metadata().is_err() && last.contains(['*', '?']) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let found = matching(folder, last).map_err(|error| Error::io(folder, error).at(flag))?;
        return some(found, || wrong(format!("nothing matches {pattern}")));
    }
    std::fs::File::open(path).map_err(|error| wrong(format!("cannot open {pattern}: {error}")))?;
    Ok(vec![pattern.to_owned()])
}

fn some(found: Vec<String>, none: impl Fn() -> Error) -> Result<Vec<String>> {
    if found.is_empty() { Err(none()) } else { Ok(found) }
}

/// The files in `folder` whose names match, sorted.
fn matching(folder: &Path, pattern: &str) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if matches(pattern.as_bytes(), name.as_bytes()) && path.is_file() {
            found.extend(path.to_str().map(str::to_owned));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Whether `name` is what `*` (any letters) and `?` (any letter) stand for; a leading dot has to be typed.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_directories_are_refused_by_their_parts() {
        let refusal = |path: &str| check(Path::new(path)).err().map(|error| error.to_string());
        for path in
            ["/", "/etc", "/etc/kv", "/usr/share/kv", "/dev/shm/kv", "/proc/self/kv", "/nowhere/../etc/kv"]
        {
            assert!(refusal(path).is_some(), "{path}");
        }
        let home = format!("/{SUPERUSER}");
        assert_eq!(forbidden(Path::new(&home)), Some("is the home of the superuser"));
        assert_eq!(forbidden(&Path::new(&home).join("kv")), None);
        assert_eq!(forbidden(&Path::new(&home).join(".ssh/kv")), Some("holds secrets"));
        assert_eq!(forbidden(Path::new("/etc-cache/kv")), None);
        assert_eq!(forbidden(Path::new("/usrlocal")), None);
    }

    #[test]
    fn a_link_into_the_system_and_a_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/etc", &link).unwrap();
        assert!(check(&link.join("kv")).unwrap_err().to_string().contains("belongs to the system"));
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(check(&file).unwrap_err().to_string().contains("is not a directory"));
        assert!(check(&file.join("kv")).unwrap_err().to_string().contains("is not a directory"));
        let new = folder.path().join("a/b");
        assert_eq!(check(&new).unwrap(), folder.path().canonicalize().unwrap().join("a/b"));
        assert!(free_bytes(&new).unwrap() > 0);
        assert!(!new.exists(), "checking makes nothing");
    }

    #[test]
    fn patterns_name_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b_2.csv", "b_1.csv", "c.txt", ".h.csv"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let root = folder.path().to_str().unwrap();
        let named = |pattern: &str| {
            let found = files("--trace", &format!("{root}/{pattern}"), Some("csv"));
            let found = found.map_err(|error| error.to_string().replace(root, "D"))?;
            Ok::<_, String>(found.into_iter().map(|path| path.replace(root, "D")).collect::<Vec<_>>())
        };
        assert_eq!(named("").unwrap(), ["D/b_1.csv", "D/b_2.csv"]);
        assert_eq!(named("b_?.csv").unwrap(), ["D/b_1.csv", "D/b_2.csv"]);
        assert_eq!(named("*2*").unwrap(), ["D/b_2.csv"]);
        assert_eq!(named("c.txt").unwrap(), ["D/c.txt"]);
        assert_eq!(named("z*").unwrap_err(), "--trace: nothing matches D/z*");
        assert!(named("z").unwrap_err().starts_with("--trace: cannot open D/z: "));
    }
}
