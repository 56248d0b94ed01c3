//! A drive of a few megabytes that is there for one case alone: a file system in memory, in a mount
//! namespace that ends with the process that holds it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What it holds.
const BYTES: u64 = 64 << 20;
/// What takes the room that is not left.
const FILLER: &str = "filler";

/// A drive; dropped, it is gone with all that is on it.
pub(super) struct Drive {
    holder: Child,
    path: PathBuf,
}

impl Drive {
    /// Mounts one with so much room at `place`, seen by its holder. None where a process may not do that.
    pub(super) fn mount(place: &Path, room: u64) -> Result<Option<Self>, String> {
        fs::create_dir_all(place).map_err(|e| format!("{}: {e}", place.display()))?;
        let script = format!("mount -t tmpfs -o size={BYTES} none \"$0\" && echo mounted && exec cat");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).arg(place);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut holder) = command.spawn() else { return Ok(None) };
        let mut said = String::new();
        let stdout = holder.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut said).map_err(|e| format!("unshare: {e}"))?;
        // Others reach it through the holder's eyes.
        let inside = place.strip_prefix("/").map_err(|e| format!("{}: {e}", place.display()))?;
        let path = Path::new("/proc").join(holder.id().to_string()).join("root").join(inside);
        let drive = Self { holder, path };
        if said != "mounted\n" {
            return Ok(None);
        }
        drive.fill(BYTES.saturating_sub(room))?;
        Ok(Some(drive))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// So many bytes are taken by somebody else.
    fn fill(&self, bytes: u64) -> Result<(), String> {
        let chunk = vec![1; 1 << 16];
        let filled = File::create(self.path(FILLER)).and_then(|mut file| {
            let mut left = bytes;
            while left > 0 {
                let part = left.min(chunk.len() as u64);
                file.write_all(&chunk[..part as usize])?;
                left -= part;
            }
            Ok(())
        });
        filled.map_err(|e| format!("a small drive: {e}"))
    }

    /// Somebody else goes away.
    pub(super) fn make_room(&self) -> Result<(), String> {
        fs::remove_file(self.path(FILLER)).map_err(|e| format!("a small drive: {e}"))
    }

    /// What is on it besides.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name != FILLER).collect();
        names.sort();
        names
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a drive that is not full, or stays full.
    #[test]
    fn a_small_drive_is_full_until_room_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let Some(drive) = Drive::mount(&folder.path().join("drive"), 4096).unwrap() else { return };
        let write = || fs::write(drive.path("x"), vec![0; 1 << 20]);
        assert!(write().is_err());
        drive.make_room().unwrap();
        write().unwrap();
        assert_eq!(drive.names(), ["x"]);
        drop(drive);
        assert_eq!(fs::read_dir(folder.path().join("drive")).unwrap().count(), 0);
    }
}
