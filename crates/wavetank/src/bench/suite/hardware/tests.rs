//! A system made of files, and what is found in it.

use super::*;
use crate::bench::testing::{with_gpu, without_gpu};
use crate::host::testing::System;

const ROOT_MOUNT: &str = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n";

/// A system with a root file system on a partition of a drive.
fn plain() -> System {
    let system = System::empty();
    system.write("/proc/self/mountinfo", ROOT_MOUNT);
    system.write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Wave 9000\n");
    system.write("/proc/sys/kernel/osrelease", "7.1.0\n");
    system.write("/sys/devices/sda/queue/rotational", "1\n");
    system.write("/sys/devices/sda/device/model", "Spinner 2\n");
    system.write("/sys/devices/sda/sda1/partition", "1\n");
    system.link("/sys/devices/sda/sda1", "/sys/dev/block/8:1");
    system.folder("/scratch");
    system.folder("/home");
    system
}

impl System {
    fn surroundings(&self) -> Surroundings {
        Surroundings { host: self.host(), temporary: "/scratch".into(), current: "/home".into() }
    }

    fn found(&self) -> Hardware {
        Hardware::detect(&without_gpu(), &self.surroundings(), None).unwrap()
    }
}

#[test]
fn a_plain_machine() {
    let found = plain().found();
    assert_eq!((found.cpu.as_deref(), found.kernel.as_deref()), (Some("Wave 9000"), Some("7.1.0")));
    assert_eq!((found.cores, found.memory_bytes), (8, Some(64 << 30)));
    assert_eq!(found.gpu, Gpu::Missing { why: "cuda: no NVIDIA driver".to_owned() });
    let place = found.place;
    assert_eq!(place.directory, Path::new("/scratch/kvcache_benchmark"));
    assert_eq!(place.made, [Path::new("/scratch/kvcache_benchmark")]);
    assert_eq!(place.file_system.as_deref(), Some("ext4"));
    assert_eq!(place.drive_names(), "sda (Spinner 2), rotating as the kernel says");
    let passed: Vec<String> = place
        .passed_over
        .iter()
        .map(|other| format!("{} {}", other.directory.display(), other.why))
        .collect();
    assert_eq!(passed, ["/mnt/nvme is not there", "/mnt/ssd is not there"]);
}

/// Broken by: taking the first mount that fits instead of the deepest, or a partition for its drive.
#[test]
fn a_mounted_drive_is_better_and_memory_is_not() {
    let system = plain();
    system.folder("/mnt/nvme");
    system.folder("/mnt/ssd");
    let nvme = "40 22 0:50 / /mnt/nvme rw - tmpfs tmpfs rw\n41 22 0:51 / /mnt/ssd rw - btrfs /dev/sdb rw\n";
    system.write("/proc/self/mountinfo", &format!("{nvme}{ROOT_MOUNT}"));
    system.write("/sys/devices/sdb/queue/rotational", "0\n");
    system.link("/sys/devices/sdb", "/sys/class/block/sdb");
    let place = system.found().place;
    assert_eq!(place.directory, Path::new("/mnt/ssd"));
    assert_eq!((place.file_system.as_deref(), place.made.len()), (Some("btrfs"), 0));
    assert_eq!(place.drive_names(), "sdb, not rotating");
    assert_eq!(place.passed_over[0].why, "is in memory (tmpfs)");
}

#[test]
fn memory_is_the_last_resort() {
    let system = plain();
    system.folder("/var/tmp");
    system.write("/proc/self/mountinfo", &format!("{ROOT_MOUNT}9 22 0:9 / /scratch rw - tmpfs tmpfs rw\n"));
    let place = system.found().place;
    assert_eq!(place.directory, Path::new("/var/tmp/kvcache_benchmark"));
    system.write("/proc/self/mountinfo", "1 1 0:9 / / rw - tmpfs none rw\n");
    let place = system.found().place;
    assert_eq!(place.directory, Path::new("/scratch/kvcache_benchmark"));
    assert!(place.is_in_memory());
    assert_eq!((place.reason.as_str(), place.passed_over.len()), ("nothing better was found", 5));
}

#[test]
fn a_group_may_have_less_memory_than_the_machine() {
    let system = plain();
    system.write("/proc/self/cgroup", "0::/jobs/one\n");
    system.write("/sys/fs/cgroup/jobs/one/memory.max", "max\n");
    system.write("/sys/fs/cgroup/jobs/memory.max", &format!("{}\n", 8u64 << 30));
    assert_eq!(system.found().memory_bytes, Some(8 << 30));
}

#[test]
fn a_gpu_is_named_and_what_changed_is_said() {
    let system = plain();
    let bare = system.found();
    system.write("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\tH200\nIRQ: 5\n");
    let found = Hardware::detect(&with_gpu(), &system.surroundings(), None).unwrap();
    assert_eq!(found.gpu.name(), "H200, 24 GiB");
    assert_eq!(bare.differences(&bare), [""; 0]);
    assert_eq!(
        bare.differences(&found),
        ["cores: 8 then, 64 now", "memory: 64 GiB then, not known now", "GPU: none then, H200, 24 GiB now"]
    );
}

#[test]
fn spaces_in_mount_points() {
    let system = plain();
    let line = "40 22 8:1 / /mnt/my\\040drive rw shared:3 - xfs /dev/sda1 rw\n";
    system.write("/proc/self/mountinfo", &format!("{ROOT_MOUNT}{line}"));
    let mount = mount_of(&system.host(), Path::new("/mnt/my drive/kv")).unwrap();
    assert_eq!(mount.kind, "xfs");
}
