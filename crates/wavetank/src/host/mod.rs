//! The machine as the files of its kernel show it: the one place where they are read, below a root that tests
//! make themselves.
//!
//! What cannot be read is not known. Reference: proc(5), sysfs(5), cgroups(7).

pub(crate) mod disk;
mod drive;
mod group;
mod memory;
mod processor;

use std::path::{Path, PathBuf};

pub use drive::Drive;
pub(crate) use drive::{Mount, disks_below, mount_of};
pub(crate) use memory::{HugePages, Swap};
pub(crate) use processor::Ticks;

/// File systems without a drive below them.
const IN_MEMORY: [&str; 2] = ["ramfs", "tmpfs"];

/// Whether a kind of file system has no drive below it.
pub(crate) fn is_in_memory(kind: &str) -> bool {
    IN_MEMORY.contains(&kind)
}

/// A system below a folder.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    root: PathBuf,
}

impl Host {
    /// This system.
    pub(crate) fn here() -> Self {
        Self::below("/")
    }

    /// A system whose root is `folder`.
    pub(crate) fn below(folder: impl Into<PathBuf>) -> Self {
        Self { root: folder.into() }
    }

    /// Where a path of the system is for us.
    pub(crate) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A small file of the kernel, without the line's end; nothing where it is empty.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = std::fs::read_to_string(self.at(path)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The same as a number.
    pub(crate) fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    /// The kernel's version.
    pub(crate) fn kernel(&self) -> Option<String> {
        self.read("/proc/sys/kernel/osrelease")
    }

    /// A line `Name:\tvalue` of what the kernel says of this process.
    pub(crate) fn status(&self, name: &str) -> Option<String> {
        let text = self.read("/proc/self/status")?;
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim().to_owned())
    }

    /// What this process may do beyond others, a bit each (`linux/capability.h`).
    pub(crate) fn capabilities(&self) -> u64 {
        let digits = self.status("CapEff");
        digits.and_then(|digits| u64::from_str_radix(&digits, 16).ok()).unwrap_or(0)
    }

    /// Whether a signal does nothing to this process.
    fn ignores(&self, signal: u32) -> bool {
        let digits = self.status("SigIgn");
        let mask = digits.and_then(|digits| u64::from_str_radix(&digits, 16).ok()).unwrap_or(0);
        mask >> (signal - 1) & 1 == 1
    }

    /// The models of NVIDIA's GPUs, as its driver shows them.
    pub(crate) fn gpu_models(&self) -> Vec<String> {
        let folders = disk::entries(&self.at("/proc/driver/nvidia/gpus"));
        let model = |folder: &PathBuf| {
            let text = std::fs::read_to_string(folder.join("information")).ok()?;
            Some(text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim().to_owned())
        };
        folders.iter().filter_map(model).collect()
    }
}

/// Whether this process was started to outlive its terminal, as `nohup` does: hangups are ignored.
pub fn outlives_terminal() -> bool {
    const HANGUP: u32 = 1;
    Host::here().ignores(HANGUP)
}

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests {
    use super::testing::System;

    #[test]
    fn lines_of_a_process_are_found_by_their_names() {
        let system = System::empty();
        assert_eq!((system.host().capabilities(), system.host().status("Seccomp")), (0, None));
        system.write("/proc/self/status", "CapPrm:\t0\nCapEff:\t0000000000200001\nSeccomp:\t2\n");
        assert_eq!(system.host().capabilities(), 0x20_0001);
        assert_eq!(system.host().status("Seccomp").as_deref(), Some("2"));
    }

    /// Broken by: signals that are counted from 0.
    #[test]
    fn what_a_process_ignores_is_a_mask() {
        let system = System::empty();
        assert!(!system.host().ignores(1));
        system.write("/proc/self/status", "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n");
        assert_eq!([1, 2, 12, 13].map(|signal| system.host().ignores(signal)), [true, false, false, true]);
    }

    /// Broken by: a file that is empty and taken for an answer.
    #[test]
    fn what_is_not_there_is_not_known() {
        let system = System::empty();
        system.write("/proc/sys/kernel/osrelease", "\n");
        assert_eq!((system.host().kernel(), system.host().number("/none")), (None, None));
        assert_eq!(system.host().gpu_models(), [""; 0]);
    }
}
