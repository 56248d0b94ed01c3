//! What is below a directory: the mount it is on and the block device behind that.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Host;
use super::disk::{Disk, disks};

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// The kernel's name of it: `nvme0n1`, `sda`.
    pub name: String,
    /// Its model, where it says so; virtual drives often do not.
    pub model: Option<String>,
    /// Whether it rotates, as the kernel believes.
    pub rotates: Option<bool>,
}

impl fmt::Display for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(model) = &self.model {
            write!(f, " ({model})")?;
        }
        match self.rotates {
            Some(true) => f.write_str(", rotating as the kernel says"),
            Some(false) => f.write_str(", not rotating"),
            None => Ok(()),
        }
    }
}

/// A line of the kernel's table of mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    point: PathBuf,
    /// Major and minor number of the device.
    device: String,
    /// The kind of file system.
    pub(crate) kind: String,
    /// What was mounted.
    source: String,
}

/// The mount that `directory` is on, or will be on once it is made.
pub(crate) fn mount_of(host: &Host, directory: &Path) -> Option<Mount> {
    let text = host.read("/proc/self/mountinfo")?;
    // Of two mounts at the same point the later one is seen.
    text.lines()
        .filter_map(mount)
        .filter(|mount| directory.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

/// `36 35 98:0 / /mnt/point rw,noatime master:1 - ext4 /dev/sda1 rw` (proc(5), mountinfo).
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(2);
    let (device, point) = (before.next()?, before.nth(1)?);
    let mut after = after.split(' ');
    let (kind, source) = (after.next()?, after.next()?);
    Some(Mount {
        point: unescaped(point).into(),
        device: device.to_owned(),
        kind: kind.to_owned(),
        source: unescaped(source),
    })
}

/// Spaces and the like are `\040` there.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |done, part| {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => format!("{done}{}{}", char::from(code), &part[3..]),
            None => format!("{done}\\{part}"),
        }
    })
}

/// The disks of a mount: a partition's is the one it is a part of, a volume has several.
pub(crate) fn disks_below(host: &Host, mount: &Mount) -> Vec<Disk> {
    let by_number = PathBuf::from("/sys/dev/block").join(&mount.device);
    // File systems of their own devices (btrfs, zfs) have a number that is no drive's.
    let by_name = mount.source.strip_prefix("/dev/").map(|name| Path::new("/sys/class/block").join(name));
    let mut links = [Some(by_number), by_name].into_iter().flatten();
    links.find_map(|link| Some(disks(&host.at(link))).filter(|found| !found.is_empty())).unwrap_or_default()
}

impl Drive {
    /// The drives of a mount.
    pub(crate) fn below(host: &Host, mount: &Mount) -> Vec<Self> {
        disks_below(host, mount).iter().filter_map(|disk| Self::of(&disk.whole)).collect()
    }

    /// The one that a folder under `/sys` tells about.
    fn of(folder: &Path) -> Option<Self> {
        let read = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).ok()?;
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        Some(Self {
            name: folder.file_name()?.to_str()?.to_owned(),
            model: read("device/model"),
            rotates: read("queue/rotational").map(|flag| flag == "1"),
        })
    }
}
