//! What the directory is on: a drive, memory, a network, or the layer of a container.

use super::super::finding::Finding;
use super::super::subject::Subject;
use super::Check;
use crate::host::{Drive, is_in_memory};

pub(super) const ENTRY: Check =
    Check { name: "file-system", about: "what the directory is on: a drive, memory or a network", look };

/// Kinds whose bytes go to other machines, by how they begin.
const NETWORK: [&str; 17] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse.ceph",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.s3fs",
    "fuse.sshfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "nfs",
    "smb",
    "wekafs",
];
/// Layers over a file system that cost time of their own.
const LAYERS: [&str; 3] = ["aufs", "fuse", "overlay"];
const OWN_DRIVE: &str = "name a directory on the drive that is meant, as wavetank doctor /mnt/nvme";

fn look(subject: &Subject) -> Finding {
    let Some(mount) = subject.mount() else {
        let finding = Finding::note("it is not known what the directory is on", "look at it: df -T DIR");
        return finding.with("file_system", None::<&str>);
    };
    let drives: Vec<String> = Drive::below(&subject.host, &mount).iter().map(ToString::to_string).collect();
    let kind = mount.kind.as_str();
    let begins = |names: &[&str]| names.iter().any(|name| kind.starts_with(name));
    let finding = if is_in_memory(kind) {
        Finding::problem(format!("{kind}: memory; no drive is measured here"), OWN_DRIVE)
    } else if begins(&NETWORK) {
        let remedy = format!("times have the network and the server in them; for a drive, {OWN_DRIVE}");
        Finding::note(format!("{kind}: on a network"), remedy)
    } else if begins(&LAYERS) {
        let remedy = "a layer over a file system costs time of its own: mount a volume (docker run -v \
                      /mnt/nvme:/mnt/nvme) and name it";
        Finding::note(format!("{kind}: a layer, as containers have"), remedy)
    } else if drives.is_empty() {
        Finding::ok(format!("{kind}, on a drive that is not known"))
    } else {
        Finding::ok(format!("{kind} on {}", drives.join(" and ")))
    };
    finding.with("file_system", kind).with("drives", drives)
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    #[test]
    fn what_is_no_drive_is_told() {
        let machine = Machine::sound();
        assert_eq!(look(&machine.subject()).found, "ext4 on sda (Spinner 2), rotating as the kernel says");
        let on = |kind: &str| {
            machine.system.write("/proc/self/mountinfo", &format!("1 1 0:9 / / rw - {kind} none rw\n"));
            let found = look(&machine.subject());
            (found.verdict, found.found)
        };
        assert_eq!(on("tmpfs").0, Verdict::Problem);
        assert_eq!(on("nfs4"), (Verdict::Note, "nfs4: on a network".to_owned()));
        assert_eq!(on("fuse.sshfs").1, "fuse.sshfs: on a network");
        assert_eq!(on("fuse.mergerfs").1, "fuse.mergerfs: a layer, as containers have");
        assert_eq!(on("overlay").0, Verdict::Note);
        assert_eq!(on("zfs"), (Verdict::Ok, "zfs, on a drive that is not known".to_owned()));
        machine.system.write("/proc/self/mountinfo", "");
        assert_eq!(look(&machine.subject()).verdict, Verdict::Note);
    }
}
