//! What the control groups of this process allow it: the least of its own group and of those around it, in
//! either version of them.
//!
//! Reference: cgroups(7); `memory.max` and `cpu.max` of version 2, `memory.limit_in_bytes` and
//! `cpu.cfs_quota_us` of version 1.

use std::path::{Path, PathBuf};

use super::Host;

/// Where groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";
/// Version 1 has a number for "no limit" that no machine has.
const NO_LIMIT_FROM: u64 = 1 << 60;

impl Host {
    /// Bytes of memory, where they are limited.
    pub(crate) fn group_memory_bytes(&self) -> Option<u64> {
        let of = |folder: &Path| {
            let newer = self.number(folder.join("memory.max"));
            newer.or_else(|| self.number(folder.join("memory.limit_in_bytes")))
        };
        let limits = self.group_folders("memory").into_iter().filter_map(|folder| of(&folder));
        limits.filter(|bytes| *bytes < NO_LIMIT_FROM).min()
    }

    /// How many processors' time, where that is limited.
    pub(crate) fn group_processors(&self) -> Option<f64> {
        let of = |folder: &Path| {
            let newer = self.read(folder.join("cpu.max"));
            let newer = newer.as_deref().and_then(|text| text.split_once(' '));
            let newer = newer.and_then(|(quota, period)| Some((quota.parse().ok()?, period.parse().ok()?)));
            let number = |name: &str| self.number(folder.join(name));
            let (quota, period): (u64, u64) =
                newer.or_else(|| Some((number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)))?;
            (period > 0).then(|| quota as f64 / period as f64)
        };
        let limits = self.group_folders("cpu").into_iter().filter_map(|folder| of(&folder));
        limits.min_by(f64::total_cmp)
    }

    /// The folders of the group that has a say over `controller` and of those around it. In a container its
    /// own may be seen as the outermost: folders that are not there say nothing.
    fn group_folders(&self, controller: &str) -> Vec<PathBuf> {
        let text = self.read("/proc/self/cgroup").unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            match controllers {
                "" => Some((PathBuf::from(GROUPS), path)),
                named if named.split(',').any(|name| name == controller) => {
                    Some((Path::new(GROUPS).join(controller), path))
                }
                _ => None,
            }
        });
        let mut folders: Vec<PathBuf> = lines.flat_map(|(base, path)| around(&base, path)).collect();
        // A process that may not see its group is still in the one that is mounted.
        folders.extend([PathBuf::from(GROUPS), Path::new(GROUPS).join(controller)]);
        folders
    }
}

/// A group's folder and those around it.
fn around(base: &Path, path: &str) -> Vec<PathBuf> {
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors().map(|folder| base.join(folder)).collect()
}

#[cfg(test)]
mod tests {
    use crate::host::testing::System;

    #[test]
    fn the_least_of_the_groups_around_counts() {
        let system = System::empty();
        assert_eq!((system.host().group_memory_bytes(), system.host().group_processors()), (None, None));
        system.write("/proc/self/cgroup", "0::/jobs/one\n");
        system.write("/sys/fs/cgroup/jobs/one/memory.max", "max\n");
        system.write("/sys/fs/cgroup/jobs/memory.max", "8589934592\n");
        system.write("/sys/fs/cgroup/jobs/one/cpu.max", "150000 100000\n");
        system.write("/sys/fs/cgroup/jobs/cpu.max", "max 100000\n");
        assert_eq!(system.host().group_memory_bytes(), Some(8 << 30));
        assert_eq!(system.host().group_processors(), Some(1.5));
    }

    /// Broken by: version 1's number for no limit, or its -1, taken for one; another controller's group.
    #[test]
    fn the_first_version_is_read_too() {
        let system = System::empty();
        system.write("/proc/self/cgroup", "4:memory:/a/b\n3:cpu,cpuacct:/a\n2:pids:/c\n0::/\n");
        system.write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "4294967296\n");
        system.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        system.write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
        system.write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
        assert_eq!(system.host().group_memory_bytes(), Some(4 << 30));
        assert_eq!(system.host().group_processors(), None);
        system.write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
        assert_eq!(system.host().group_processors(), Some(0.5));
    }
}
