//! A machine that is made for each test, and this one.

use std::path::Path;

use rustix::process::Rlimit;
use wavetank_store::backends::DeviceMemory;
use wavetank_store::{Buffers, TriedRing};

use super::subject::{Subject, Trials};
use super::*;
use crate::bench::Room;
use crate::host::testing::System;

/// A machine made of files and answers.
pub(super) struct Machine {
    /// Its files.
    pub(super) system: System,
    /// What trying things out comes to.
    pub(super) trials: Trials,
    /// Its processors.
    pub(super) processors: u32,
}

impl Machine {
    /// One that nothing is wrong with.
    pub(super) fn sound() -> Self {
        let system = System::empty();
        let files = [
            ("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"),
            ("/proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t0\n"),
            ("/proc/cpuinfo", "model name\t: Wave 9000\n"),
            ("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 62914560 kB\nHugePages_Free: 0\n"),
            ("/proc/loadavg", "0.10 0.20 0.30 1/100 4711\n"),
            ("/proc/swaps", "Filename Type Size Used Priority\n"),
            ("/proc/sys/kernel/osrelease", "7.1.0\n"),
            ("/proc/sys/kernel/io_uring_disabled", "0\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("/sys/devices/sda/queue/rotational", "1\n"),
            ("/sys/devices/sda/device/model", "Spinner 2\n"),
            ("/sys/devices/sda/sda1/partition", "1\n"),
        ];
        files.iter().for_each(|(path, text)| system.write(path, text));
        system.link("/sys/devices/sda/sda1", "/sys/dev/block/8:1");
        system.folder("/data");
        let trials = Trials {
            ring: || Ok(TriedRing { buffer_bytes: 40 << 20, buffers: Buffers::Registered }),
            direct: |_| Ok(Vec::new()),
            gpus: || Ok(vec![DeviceMemory { free_bytes: 20 << 30, total_bytes: 24 << 30 }]),
            limit: |_| Rlimit { current: None, maximum: None },
            room: |_| Ok(Room { free_bytes: 500 << 30, bytes: 1000 << 30, free_files: Some(1_000_000) }),
            tracing: || None,
        };
        Self { system, trials, processors: 2 }
    }

    /// As checks see it.
    pub(super) fn subject(&self) -> Subject {
        Subject {
            host: self.system.host(),
            directory: "/data".into(),
            processors: self.processors,
            trials: self.trials,
        }
    }
}

/// How a machine is spoilt.
type Harm = fn(&mut Machine);

/// Checks that measure this machine's own clock judge what they measured in their own tests.
const MEASURED: [&str; 2] = ["clock", "timers"];

/// Every other check has a machine that it finds fault with, and finds none with a sound one.
///
/// Broken by: a check that is always content, or never.
#[test]
fn every_check_can_tell_a_bad_machine_from_a_good_one() {
    let harms: &[(&str, Harm)] = &[
        ("direct-io", |m| m.trials.direct = |_| Err(Error::usage("the file system refuses O_DIRECT"))),
        ("disk-space", |m| m.trials.room = |_| Ok(Room { free_bytes: 1, bytes: 2, free_files: None })),
        ("file-system", |m| m.system.write("/proc/self/mountinfo", "1 1 0:9 / / rw - tmpfs none rw\n")),
        ("gpu", |m| m.trials.gpus = || Err(Error::unsupported("no driver"))),
        ("huge-pages", |m| m.system.write("/sys/kernel/mm/transparent_hugepage/enabled", "[never]\n")),
        ("io-uring", |m| m.trials.ring = || Err(std::io::ErrorKind::PermissionDenied.into())),
        ("load", |m| m.system.write("/proc/loadavg", "64.00 1.0 1.0 1/1 1\n")),
        ("locked-memory", |m| {
            m.trials.ring = || Ok(TriedRing { buffer_bytes: 1, buffers: Buffers::Plain });
        }),
        ("memory", |m| m.system.write("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 64 kB\n")),
        ("open-files", |m| m.trials.limit = |_| Rlimit { current: Some(8), maximum: Some(8) }),
        ("processors", |m| m.system.write("/sys/fs/cgroup/cpu.max", "10000 100000\n")),
        ("swap", |m| m.system.write("/proc/swaps", "Filename Type Size Used\n/dev/sdb partition 8 0 -2\n")),
        ("tracing", |m| m.trials.tracing = || Some(("no bpftrace".to_owned(), "install it"))),
    ];
    for check in ALL.iter().filter(|check| !MEASURED.contains(&check.name)) {
        let sound = check.look(&Machine::sound().subject());
        assert_eq!((sound.verdict, sound.remedy), (Verdict::Ok, None), "{}: {}", check.name, sound.found);
        let (_, harm) = harms.iter().find(|(name, _)| *name == check.name).expect("a harm for every check");
        let mut machine = Machine::sound();
        harm(&mut machine);
        let found = check.look(&machine.subject());
        assert!(found.verdict > Verdict::Ok && found.remedy.is_some(), "{}: {found:?}", check.name);
    }
}

/// Broken by: a remedy that is left out of the text, or a verdict that is not the worst.
#[test]
fn what_is_found_is_told_with_what_to_do() {
    let finding = |verdict| match verdict {
        Verdict::Ok => Finding::ok("fine"),
        Verdict::Note => Finding::note("so so", "think").with("count", 2),
        Verdict::Problem => Finding::problem("bad", "mend it"),
    };
    let of = |verdicts: &[Verdict]| Examination {
        directory: "/data".into(),
        kernel: Some("7.1.0".to_owned()),
        findings: ALL.iter().zip(verdicts.iter().map(|verdict| finding(*verdict))).collect(),
    };
    let mixed = of(&[Verdict::Ok, Verdict::Problem, Verdict::Note]);
    insta::assert_snapshot!(mixed.table());
    insta::assert_snapshot!(serde_json::to_string_pretty(&mixed.json()).unwrap());
    assert_eq!(of(&[Verdict::Ok]).verdict(), Verdict::Ok);
    assert_eq!(of(&[]).verdict(), Verdict::Ok);
}

/// Broken by: a check that panics on a real machine, or leaves something in the directory.
#[test]
fn this_machine_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let found = examine(folder.path()).unwrap();
    assert_eq!(found.findings.len(), ALL.len());
    for (check, finding) in &found.findings {
        assert_eq!(finding.verdict == Verdict::Ok, finding.remedy.is_none(), "{}: {finding:?}", check.name);
        assert!(!finding.found.is_empty() && !finding.facts.is_empty(), "{}: {finding:?}", check.name);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Broken by: a check that is not on the page that explains them, or one there that is gone.
#[test]
fn the_page_explains_every_check() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert!(rows.eq(ALL.iter().map(|check| check.name)));
}

#[test]
fn a_directory_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let told = |path: &Path| examine(path).err().unwrap().to_string();
    assert!(told(&file).contains("file: is not a directory\nhint: "), "{}", told(&file));
    assert!(told(&folder.path().join("none")).contains("none: cannot be used: No such file"));
}
