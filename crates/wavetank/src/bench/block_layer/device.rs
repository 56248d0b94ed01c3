//! Which disks a directory is on, by the numbers that the kernel's block events have.

use std::fs;
use std::io;
use std::path::Path;

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

/// The disks below `device`: itself, the disk it is a part of, or those it is put together from. `system` is
/// where the kernel describes devices. Empty when it knows no such block device.
pub(super) fn disks(system: &Path, device: Device) -> io::Result<Vec<Disk>> {
    let Device { major, minor } = device;
    let folder = system.join(format!("dev/block/{major}:{minor}"));
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let folder = folder.canonicalize()?;
    let number = |folder: &Path| -> io::Result<Device> {
        let text = fs::read_to_string(folder.join("dev"))?;
        Device::read(&text).ok_or_else(|| io::Error::other(format!("{text:?} is no device")))
    };
    let mut below = Vec::new();
    for part in fs::read_dir(folder.join("slaves")).into_iter().flatten() {
        below.extend(disks(system, number(&part?.path())?)?);
    }
    if !below.is_empty() {
        return Ok(below);
    }
    let parent = folder.parent().filter(|_| folder.join("partition").exists());
    let disk = parent.map_or(Ok(device), number)?;
    Ok(vec![Disk { named: device, disk }])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A disk with a partition, one without, and a volume on the partition and the other disk.
    #[test]
    fn partitions_and_volumes_are_led_back_to_disks() {
        let folder = tempfile::tempdir().unwrap();
        let system = folder.path();
        let make = |path: &str, number: &str| {
            fs::create_dir_all(system.join("devices").join(path)).unwrap();
            fs::write(system.join("devices").join(path).join("dev"), format!("{number}\n")).unwrap();
            fs::create_dir_all(system.join("dev/block")).unwrap();
            symlink(system.join("devices").join(path), system.join("dev/block").join(number)).unwrap();
        };
        make("nvme0n1", "259:0");
        make("nvme0n1/nvme0n1p2", "259:2");
        fs::write(system.join("devices/nvme0n1/nvme0n1p2/partition"), "2\n").unwrap();
        make("nvme1n1", "259:1");
        make("dm-0", "253:0");
        fs::create_dir(system.join("devices/dm-0/slaves")).unwrap();
        for part in ["nvme0n1/nvme0n1p2", "nvme1n1"] {
            let name = part.rsplit('/').next().unwrap();
            symlink(system.join("devices").join(part), system.join("devices/dm-0/slaves").join(name))
                .unwrap();
        }
        let device = |major, minor| Device { major, minor };
        let part = Disk { named: device(259, 2), disk: device(259, 0) };
        let whole = Disk { named: device(259, 1), disk: device(259, 1) };
        assert_eq!(disks(system, device(259, 2)).unwrap(), [part]);
        assert_eq!(disks(system, device(259, 1)).unwrap(), [whole]);
        let mut volume = disks(system, device(253, 0)).unwrap();
        volume.sort_by_key(|disk| disk.disk.minor);
        assert_eq!(volume, [part, whole]);
        assert_eq!(disks(system, device(0, 31)).unwrap(), []);
        assert_eq!(device(254, 1).number(), 266_338_305);
    }
}
