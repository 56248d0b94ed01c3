//! Whether bpftrace is there and may look into the kernel.

use std::path::{Path, PathBuf};

use super::script::NEEDED;
use crate::host::Host;

/// Where tracefs may be mounted.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Bits of a process's capabilities (`linux/capability.h`).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// What bpftrace needs, found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Permit {
    pub(super) bpftrace: PathBuf,
    /// The folder of the kernel's events.
    pub(super) events: PathBuf,
}

/// What is missing, and what to do.
pub(super) type Missing = (String, &'static str);

/// What there is.
struct Facts {
    bpftrace: Option<PathBuf>,
    capabilities: u64,
    events: Option<PathBuf>,
}

/// On this machine, for this process.
pub(super) fn here() -> Result<Permit, Missing> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&paths).map(|folder| folder.join("bpftrace"));
    let events = TRACEFS.iter().map(|folder| Path::new(folder).join("events"));
    permit(Facts {
        bpftrace: programs.into_iter().find(|program| program.is_file()),
        capabilities: Host::here().capabilities(),
        events: events.into_iter().find(|folder| folder.join("block").is_dir()),
    })
}

fn permit(facts: Facts) -> Result<Permit, Missing> {
    let has = |bit: u32| facts.capabilities >> bit & 1 == 1;
    let Some(bpftrace) = facts.bpftrace else {
        return Err((
            "bpftrace is not installed".to_owned(),
            "apt-get install bpftrace, or leave the flag out",
        ));
    };
    let is_permitted = has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON));
    if !is_permitted {
        let what = "bpftrace is not permitted: CAP_BPF and CAP_PERFMON are missing".to_owned();
        return Err((what, "run as root, or leave the flag out"));
    }
    let Some(events) = facts.events else {
        let what = "the kernel's events are not to be seen: tracefs is not mounted".to_owned();
        return Err((what, "mount -t tracefs tracefs /sys/kernel/tracing"));
    };
    let missing: Vec<&str> = NEEDED.into_iter().filter(|event| !events.join(event).is_dir()).collect();
    if !missing.is_empty() {
        let what = format!("this kernel has no events {}", missing.join(", "));
        return Err((what, "it needs CONFIG_BLK_DEV_IO_TRACE and CONFIG_FTRACE_SYSCALLS"));
    }
    Ok(Permit { bpftrace, events })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let events = folder.path().to_owned();
        let root = (1 << CAP_SYS_ADMIN, "root");
        let said = |program: bool, (capabilities, _): (u64, &str), mounted: bool| {
            let facts = Facts {
                bpftrace: program.then(|| PathBuf::from("bpftrace")),
                capabilities,
                events: mounted.then(|| events.clone()),
            };
            permit(facts).map_err(|(what, hint)| format!("{what} — {hint}"))
        };
        let is = |answer: Result<Permit, String>, words: &str| {
            let told = answer.unwrap_err();
            assert!(told.contains(words), "{told}");
        };
        is(said(false, root, true), "not installed — apt-get install bpftrace");
        is(said(true, (1 << CAP_BPF, "half"), true), "CAP_PERFMON are missing — run as root");
        is(said(true, root, false), "not mounted — mount -t tracefs");
        is(said(true, root, true), "no events block/block_bio_queue, block/block_rq_issue, ");
        NEEDED.iter().for_each(|event| std::fs::create_dir_all(events.join(event)).unwrap());
        assert!(said(true, root, true).is_ok());
        assert!(said(true, (1 << CAP_BPF | 1 << CAP_PERFMON, "both"), true).is_ok());
    }
}
