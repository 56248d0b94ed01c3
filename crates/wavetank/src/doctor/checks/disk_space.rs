//! Whether there is room for entries in the directory: bytes, and files.

use super::super::finding::{Finding, gib};
use super::super::subject::Subject;
use super::Check;
use crate::bench::Room;

pub(super) const ENTRY: Check =
    Check { name: "disk-space", about: "free bytes and files where the directory is", look };

const GIB: u64 = 1 << 30;
/// Not even one tier fits.
const HARDLY_ANY: u64 = GIB;
/// `bench` and `profile tier` want more in their usual settings.
const LITTLE: u64 = 10 * GIB;
/// An entry is a file.
const FEW_FILES: u64 = 10_000;
/// Drives that are fuller than this write slower.
const FULL: f64 = 0.9;

fn look(subject: &Subject) -> Finding {
    match (subject.trials.room)(&subject.host.at(&subject.directory)) {
        Ok(room) => judged(&room),
        Err(error) => Finding::problem(error.message(), "name a directory that can be looked into")
            .with("free_bytes", None::<u64>),
    }
}

fn judged(room: &Room) -> Finding {
    let Room { free_bytes, bytes, free_files } = *room;
    let used = 1.0 - free_bytes as f64 / (bytes.max(1)) as f64;
    let files = free_files.map(|count| format!(", {count} more files")).unwrap_or_default();
    let told = format!("{} of {} free{files}", gib(free_bytes), gib(bytes));
    let finding = if free_bytes < HARDLY_ANY {
        Finding::problem(
            format!("{told}: too little"),
            "delete what is not needed, or name another directory",
        )
    } else if free_files.is_some_and(|count| count < FEW_FILES) {
        let remedy = "an entry is a file: make the file system again with more inodes (mkfs.ext4 -N), or \
                      name another directory";
        Finding::note(format!("{told}: few files"), remedy)
    } else if free_bytes < LITTLE {
        let remedy = "keep runs small: --storage-capacity-gb of bench, --size-gb of profile tier";
        Finding::note(format!("{told}: little"), remedy)
    } else if used > FULL {
        let remedy = "drives that are nearly full write slower: measure on one with more free, or say so";
        Finding::note(format!("{told}: {:.0} % full", used * 100.0), remedy)
    } else {
        Finding::ok(told)
    };
    finding.with("free_bytes", free_bytes).with("bytes", bytes).with("free_files", free_files)
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::*;

    #[test]
    fn room_is_judged_by_what_runs_need() {
        let verdict = |free_bytes, free_files| judged(&Room { free_bytes, bytes: 1000 * GIB, free_files });
        let plenty = verdict(500 * GIB, Some(1_000_000));
        assert_eq!(plenty.verdict, Verdict::Ok);
        assert_eq!(plenty.found, "500 GiB of 1000 GiB free, 1000000 more files");
        assert_eq!(verdict(500 * GIB, None).verdict, Verdict::Ok);
        assert_eq!(verdict(500 * GIB, Some(9)).verdict, Verdict::Note);
        assert!(verdict(50 * GIB, None).found.ends_with("95 % full"));
        assert!(verdict(5 * GIB, None).remedy.unwrap().contains("--storage-capacity-gb"));
        assert_eq!(verdict(GIB / 2, None).verdict, Verdict::Problem);
    }
}
