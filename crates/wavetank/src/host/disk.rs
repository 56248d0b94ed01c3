//! Which disks a block device is on, by the folders in which the kernel describes them.

use std::fs;
use std::path::{Path, PathBuf};

/// Volumes of volumes are followed so deep.
const DEEPEST: u32 = 4;

/// A device that requests are sent to, and the disk that works on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    /// The partition, or the disk itself.
    pub(crate) named: PathBuf,
    /// The disk.
    pub(crate) whole: PathBuf,
}

/// The disks below `device`, a folder or link under `/sys`: itself, the disk it is a part of, or those it is
/// put together from. Empty where there is no such device.
pub(crate) fn disks(device: &Path) -> Vec<Disk> {
    below(device, DEEPEST)
}

fn below(device: &Path, depth: u32) -> Vec<Disk> {
    let Ok(named) = device.canonicalize() else { return Vec::new() };
    let parts = if depth > 0 { entries(&named.join("slaves")) } else { Vec::new() };
    if !parts.is_empty() {
        return parts.iter().flat_map(|part| below(part, depth - 1)).collect();
    }
    let parent = named.parent().filter(|_| named.join("partition").exists());
    let whole = parent.map_or_else(|| named.clone(), Path::to_path_buf);
    vec![Disk { named, whole }]
}

/// What is in a folder, sorted; nothing where there is none.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort_unstable();
    paths
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A disk with a partition, one without, and a volume on the partition and the other disk.
    #[test]
    fn partitions_and_volumes_are_led_back_to_disks() {
        let folder = tempfile::tempdir().unwrap();
        let system = folder.path().canonicalize().unwrap();
        for path in ["nvme0n1/nvme0n1p2", "nvme1n1", "dm-0/slaves"] {
            fs::create_dir_all(system.join(path)).unwrap();
        }
        fs::write(system.join("nvme0n1/nvme0n1p2/partition"), "2\n").unwrap();
        symlink(system.join("nvme0n1/nvme0n1p2"), system.join("dm-0/slaves/a")).unwrap();
        symlink(system.join("nvme1n1"), system.join("dm-0/slaves/b")).unwrap();
        let disk = |named: &str, whole: &str| Disk { named: system.join(named), whole: system.join(whole) };
        let expected = [disk("nvme0n1/nvme0n1p2", "nvme0n1"), disk("nvme1n1", "nvme1n1")];
        assert_eq!(disks(&system.join("nvme0n1/nvme0n1p2")), expected[..1]);
        assert_eq!(disks(&system.join("nvme1n1")), expected[1..]);
        assert_eq!(disks(&system.join("dm-0")), expected);
        assert_eq!(disks(&system.join("none")), []);
    }
}
