//! Checksums of a folder, in the format of `sha256sum` (GNU coreutils).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};
use wavetank_model::{Error, Result};

/// The file they are in.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Sums by the path of a file below the folder.
type Sums = BTreeMap<String, String>;

/// Writes the sums of every file in `folder` but the sums themselves.
pub(super) fn write(folder: &Path) -> Result<()> {
    let lines: String = of(folder)?.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    let path = folder.join(SUMS);
    fs::write(&path, lines).map_err(|error| Error::io(&path, error))
}

/// What is not as the sums say: files changed, missing or added.
pub(super) fn differences(folder: &Path) -> Result<Vec<String>> {
    let path = folder.join(SUMS);
    let text = fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
    let mut written = Sums::new();
    for (number, line) in (1..).zip(text.lines()) {
        let (sum, name) = line.split_once("  ").ok_or_else(|| {
            Error::input("not a checksum and a name").at(format!("{}:{number}", path.display()))
        })?;
        written.insert(name.to_owned(), sum.to_owned());
    }
    let found = of(folder)?;
    let mut differences = Vec::new();
    for (name, sum) in &written {
        match found.get(name) {
            None => differences.push(format!("{name} is missing")),
            Some(other) if other != sum => differences.push(format!("{name} was changed")),
            Some(_) => {}
        }
    }
    let added = found.keys().filter(|name| !written.contains_key(*name));
    differences.extend(added.map(|name| format!("{name} was added")));
    Ok(differences)
}

fn of(folder: &Path) -> Result<Sums> {
    let mut sums = Sums::new();
    collect(folder, "", &mut sums).map_err(|error| Error::io(folder, error))?;
    sums.remove(SUMS);
    Ok(sums)
}

fn collect(folder: &Path, prefix: &str, sums: &mut Sums) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| io::Error::other(format!("{} is not UTF-8", path.display())))?;
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), sums)?;
            continue;
        }
        let sum = Sha256::digest(fs::read(&path)?).iter().map(|byte| format!("{byte:02x}")).collect();
        sums.insert(format!("{prefix}{name}"), sum);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: another hash, folders left out, changes that are not seen.
    #[test]
    fn every_change_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/x"), "abc").unwrap();
        fs::write(root.join("y"), "").unwrap();
        write(root).unwrap();
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a/x\n";
        assert!(fs::read_to_string(root.join(SUMS)).unwrap().starts_with(abc));
        assert_eq!(differences(root).unwrap(), Vec::<String>::new());
        fs::write(root.join("a/x"), "abd").unwrap();
        fs::remove_file(root.join("y")).unwrap();
        fs::write(root.join("z"), "").unwrap();
        assert_eq!(differences(root).unwrap(), ["a/x was changed", "y is missing", "z was added"]);
        fs::write(root.join(SUMS), "nothing\n").unwrap();
        assert!(differences(root).unwrap_err().to_string().contains("SHA256SUMS:1"));
    }
}
