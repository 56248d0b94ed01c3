//! Whether buffers can be registered with the kernel, which the limit of locked memory may forbid.

use rustix::process::Resource;
use wavetank_store::Buffers;

use super::super::finding::{Finding, gib};
use super::super::subject::Subject;
use super::Check;
use crate::bench::usual_io_threads;

pub(super) const ENTRY: Check = Check {
    name: "locked-memory",
    about: "whether the kernel takes buffers once instead of each time",
    look,
};

/// Processes with this bit have no limit (`linux/capability.h`).
const CAP_IPC_LOCK: u32 = 14;
const REMEDY: &str =
    "ulimit -l unlimited (LimitMEMLOCK=infinity in a unit, --ulimit memlock=-1 of docker run)";

fn look(subject: &Subject) -> Finding {
    let limit = (subject.trials.limit)(Resource::Memlock).current;
    let is_free = subject.host.capabilities() >> CAP_IPC_LOCK & 1 == 1;
    let lanes = u64::from(usual_io_threads(subject.processors));
    let told = match limit {
        _ if is_free => "no limit for this process".to_owned(),
        None => "no limit".to_owned(),
        Some(bytes) => format!("limited to {}", gib(bytes)),
    };
    let finding = match (subject.trials.ring)() {
        Err(_) => Finding::ok(format!("{told}; of no account without io_uring")),
        Ok(tried) if tried.buffers == Buffers::Plain => {
            let found = format!("{told}: buffers are not registered, more CPU time per byte");
            Finding::note(found, REMEDY)
        }
        Ok(tried) => {
            let needed = lanes * tried.buffer_bytes;
            let threads = if lanes == 1 { "thread" } else { "threads" };
            let wanted = format!("{} for {lanes} I/O {threads}", gib(needed));
            if !is_free && limit.is_some_and(|bytes| bytes < needed) {
                Finding::note(format!("{told}, {wanted}: not all will be registered"), REMEDY)
            } else {
                Finding::ok(format!("{told}; buffers were registered ({wanted})"))
            }
        }
    };
    finding.with("limit_bytes", if is_free { None } else { limit })
}

#[cfg(test)]
mod tests {
    use rustix::process::Rlimit;
    use wavetank_store::TriedRing;

    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    /// Broken by: a limit that is blamed where it does not hold, or one lane's buffers taken for all.
    #[test]
    fn buffers_that_cannot_be_registered_are_a_note() {
        let mut machine = Machine::sound();
        assert_eq!(
            look(&machine.subject()).found,
            "no limit; buffers were registered (40.0 MiB for 1 I/O thread)"
        );
        machine.trials.limit = |_| Rlimit { current: Some(60 << 20), maximum: None };
        assert_eq!(look(&machine.subject()).verdict, Verdict::Ok);
        machine.processors = 8;
        assert_eq!(look(&machine.subject()).verdict, Verdict::Note);
        machine.system.write("/proc/self/status", "CapEff:\t0000000000004000\n");
        assert_eq!(look(&machine.subject()).verdict, Verdict::Ok);
        machine.trials.ring = || Ok(TriedRing { buffer_bytes: 40 << 20, buffers: Buffers::Plain });
        assert!(look(&machine.subject()).remedy.unwrap().starts_with("ulimit -l unlimited"));
        machine.trials.ring = || Err(std::io::ErrorKind::PermissionDenied.into());
        assert_eq!(look(&machine.subject()).verdict, Verdict::Ok);
    }
}
