//! Which disks a directory is on, by the numbers that the kernel's block events have.

use std::fs;
use std::io;
use std::path::Path;

use crate::host::disk;

/// A device that requests are sent to, and the disk that works on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// The partition, or the disk itself.
    pub(super) named: Device,
    /// The disk.
    pub(super) disk: Device,
}

/// Major and minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) major: u32,
    pub(super) minor: u32,
}

impl Device {
    /// As the kernel puts them together inside.
    pub(super) fn number(self) -> u32 {
        self.major << 20 | self.minor
    }

    fn read(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

/// The disks below `device`. `system` is where the kernel describes devices. Empty when it knows no such
/// block device.
pub(super) fn disks(system: &Path, device: Device) -> io::Result<Vec<Disk>> {
    let Device { major, minor } = device;
    let number = |folder: &Path| -> io::Result<Device> {
        let text = fs::read_to_string(folder.join("dev"))?;
        Device::read(&text).ok_or_else(|| io::Error::other(format!("{text:?} is no device")))
    };
    let found = disk::disks(&system.join(format!("dev/block/{major}:{minor}")));
    let numbered = |disk: &disk::Disk| Ok(Disk { named: number(&disk.named)?, disk: number(&disk.whole)? });
    found.iter().map(numbered).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Broken by: the number of the partition in the place of the disk's.
    #[test]
    fn a_partition_has_its_number_and_its_disks() {
        let folder = tempfile::tempdir().unwrap();
        let system = folder.path();
        fs::create_dir_all(system.join("disk/part")).unwrap();
        fs::create_dir_all(system.join("dev/block")).unwrap();
        fs::write(system.join("disk/dev"), "259:0\n").unwrap();
        fs::write(system.join("disk/part/dev"), "259:2\n").unwrap();
        fs::write(system.join("disk/part/partition"), "2\n").unwrap();
        symlink(system.join("disk/part"), system.join("dev/block/259:2")).unwrap();
        let device = |major, minor| Device { major, minor };
        let part = Disk { named: device(259, 2), disk: device(259, 0) };
        assert_eq!(disks(system, device(259, 2)).unwrap(), [part]);
        assert_eq!(disks(system, device(0, 31)).unwrap(), []);
        assert_eq!(device(254, 1).number(), 266_338_305);
    }
}
