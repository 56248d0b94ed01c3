//! Main memory: what there is, what is free, and what this process may have of it.

use super::super::finding::{Finding, gib};
use super::super::subject::Subject;
use super::Check;

pub(super) const ENTRY: Check =
    Check { name: "memory", about: "main memory, what is free of it, and the limit of this process", look };

const GIB: u64 = 1 << 30;
/// Buffers and an index hardly fit.
const HARDLY_ANY: u64 = GIB / 2;
/// A memory tier is small here.
const LITTLE: u64 = 2 * GIB;

fn look(subject: &Subject) -> Finding {
    let (total, free) = (subject.host.memory_bytes("MemTotal"), subject.host.memory_bytes("MemAvailable"));
    let group = subject.host.group_memory_bytes().filter(|limit| total.is_none_or(|total| *limit < total));
    let usable = free.into_iter().chain(group).min();
    let told = |bytes: Option<u64>| bytes.map_or("not known how much".to_owned(), gib);
    let mut words = format!("{}, {} available", told(total), told(free));
    if let Some(limit) = group {
        words += &format!("; this process may have {}", gib(limit));
    }
    let finding = match (usable, group) {
        (Some(bytes), _) if bytes < HARDLY_ANY => {
            let remedy =
                "end what takes memory, or give the process more (docker run -m, MemoryMax= of a unit)";
            Finding::problem(format!("{words}: too little"), remedy)
        }
        (Some(bytes), _) if bytes < LITTLE => {
            let remedy = "keep memory tiers small: --cpu-mem-gb of bench, --l1-size-gb of serve";
            Finding::note(format!("{words}: little"), remedy)
        }
        (_, Some(_)) => {
            let remedy = "memory tiers and the page cache of this process share that: a process that takes \
                          more is killed";
            Finding::note(words, remedy)
        }
        _ => Finding::ok(words),
    };
    finding.with("bytes", total).with("available_bytes", free).with("group_limit_bytes", group)
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    #[test]
    fn the_limit_of_a_group_counts() {
        let machine = Machine::sound();
        let found = look(&machine.subject());
        assert_eq!((found.verdict, found.found.as_str()), (Verdict::Ok, "64.0 GiB, 60.0 GiB available"));
        machine.system.write("/sys/fs/cgroup/memory.max", "8589934592\n");
        let found = look(&machine.subject());
        assert_eq!(found.found, "64.0 GiB, 60.0 GiB available; this process may have 8.0 GiB");
        assert_eq!(
            (found.verdict, found.facts["group_limit_bytes"].as_u64()),
            (Verdict::Note, Some(8 << 30))
        );
        machine.system.write("/sys/fs/cgroup/memory.max", "268435456\n");
        assert_eq!(look(&machine.subject()).verdict, Verdict::Problem);
        machine.system.write("/sys/fs/cgroup/memory.max", "99999999999999\n");
        assert_eq!(look(&machine.subject()).verdict, Verdict::Ok, "a limit above what there is is none");
    }
}
