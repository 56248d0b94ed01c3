//! Whether the kernel gives this process an io_uring, and what forbids it if not.
//!
//! Reference: io_uring_setup(2); `kernel.io_uring_disabled` in the kernel's admin guide.

use std::io;

use rustix::io::Errno;

use super::super::finding::Finding;
use super::super::subject::Subject;
use super::Check;

pub(super) const ENTRY: Check =
    Check { name: "io-uring", about: "the queue of the direct backend: a ring is made and asked", look };

const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";
/// A process whose calls are filtered has this mode.
const FILTERED: &str = "2";

fn look(subject: &Subject) -> Finding {
    let disabled = subject.host.number(DISABLED);
    let finding = match (subject.trials.ring)() {
        Ok(_) => Finding::ok("a ring was made and answered"),
        Err(error) => {
            let found = format!("refused ({error}): threads with pread and pwrite instead, slower at depth");
            Finding::problem(found, remedy(subject, &error, disabled))
        }
    };
    let works = finding.remedy.is_none();
    finding.with("works", works).with("io_uring_disabled", disabled)
}

fn remedy(subject: &Subject, error: &io::Error, disabled: Option<u64>) -> &'static str {
    let is_filtered = subject.host.status("Seccomp").as_deref() == Some(FILTERED);
    match (Errno::from_io_error(error), disabled) {
        (Some(Errno::PERM | Errno::ACCESS), Some(2)) => "sudo sysctl kernel.io_uring_disabled=0",
        (Some(Errno::PERM | Errno::ACCESS), Some(1)) => {
            "sudo sysctl kernel.io_uring_disabled=0, or be in the group of kernel.io_uring_group"
        }
        (Some(Errno::PERM | Errno::ACCESS | Errno::NOSYS), _) if is_filtered => {
            "a filter of system calls forbids it, as containers have: docker run --security-opt \
             seccomp=unconfined, or a profile with io_uring_setup, io_uring_enter and io_uring_register"
        }
        (Some(Errno::PERM | Errno::ACCESS), _) => {
            "a security module (SELinux, AppArmor) forbids it: its log says which"
        }
        (Some(Errno::NOSYS), _) => "a kernel from 5.11 on, built with CONFIG_IO_URING",
        (Some(Errno::INVAL), _) => "a kernel from 5.11 on",
        (Some(Errno::NOMEM | Errno::AGAIN), _) => {
            "ulimit -l unlimited: kernels before 5.12 count rings as locked memory"
        }
        (Some(Errno::MFILE), _) => "ulimit -n 4096: no file descriptor is left for a ring",
        _ => "look into the kernel's log: dmesg",
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    fn refusal(errno: Errno) -> io::Error {
        errno.into()
    }

    /// Broken by: a container's filter that is blamed on the kernel's setting, or the other way round.
    #[test]
    fn a_refusal_is_led_back_to_what_forbids_it() {
        let mut machine = Machine::sound();
        assert_eq!(look(&machine.subject()).verdict, Verdict::Ok);
        machine.trials.ring = || Err(refusal(Errno::PERM));
        let said = |machine: &Machine| look(&machine.subject()).remedy.unwrap();
        assert!(said(&machine).contains("SELinux"));
        machine.system.write("/proc/self/status", "Seccomp:\t2\n");
        assert!(said(&machine).contains("seccomp=unconfined"));
        machine.system.write(DISABLED, "2\n");
        assert_eq!(said(&machine), "sudo sysctl kernel.io_uring_disabled=0");
        machine.system.write(DISABLED, "1\n");
        assert!(said(&machine).contains("io_uring_group"));
        machine.system.write("/proc/self/status", "Seccomp:\t0\n");
        machine.trials.ring = || Err(refusal(Errno::NOSYS));
        let found = look(&machine.subject());
        assert!(found.found.starts_with("refused (Function not implemented"), "{}", found.found);
        assert_eq!(found.remedy.as_deref(), Some("a kernel from 5.11 on, built with CONFIG_IO_URING"));
        assert_eq!((found.verdict, found.facts["works"].as_bool()), (Verdict::Problem, Some(false)));
    }
}
