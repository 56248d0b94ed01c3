//! Processors: how many may be used, whether a limit stops them in between, and whether their frequency is
//! left to a governor that saves power.

use super::super::finding::Finding;
use super::super::subject::Subject;
use super::Check;

pub(super) const ENTRY: Check =
    Check { name: "processors", about: "how many may be used, and at what frequency", look };

const STEADY: &str = "performance";

fn look(subject: &Subject) -> Finding {
    let host = &subject.host;
    let (online, group) = (host.online_processors(), host.group_processors());
    let group = group.filter(|limit| online.is_none_or(|online| *limit < f64::from(online)));
    let governors = host.governors();
    let mut words = host.processor().map(|model| format!("{model}, ")).unwrap_or_default();
    words += &match online.filter(|online| *online != subject.processors) {
        Some(online) => format!("{} of {online} may be used", subject.processors),
        None => format!("{} processors", subject.processors),
    };
    let names: Vec<&str> = governors.iter().map(String::as_str).collect();
    if !names.is_empty() {
        words += &format!(", governor {}", names.join(" and "));
    }
    if let Some(is_on) = host.turbo() {
        words += if is_on { ", turbo on" } else { ", turbo off" };
    }
    let finding = if let Some(limit) = group {
        let remedy = "threads are stopped where the limit is reached, and latencies jump: give the process \
                      whole processors (docker run --cpuset-cpus, AllowedCPUs= of a unit)";
        Finding::note(format!("{words}; limited to the time of {limit:.1}"), remedy)
    } else if names.iter().any(|name| *name != STEADY) {
        let remedy =
            "sudo cpupower frequency-set -g performance: frequencies that change are in every number";
        Finding::note(words, remedy)
    } else {
        Finding::ok(words)
    };
    finding
        .with("usable", subject.processors)
        .with("online", online)
        .with("group_limit", group)
        .with("governors", names)
        .with("turbo", host.turbo())
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    #[test]
    fn limits_and_governors_are_notes() {
        let machine = Machine::sound();
        assert_eq!(look(&machine.subject()).found, "Wave 9000, 2 processors");
        machine.system.write("/sys/devices/system/cpu/online", "0-7\n");
        let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        machine.system.write(governor, "performance\n");
        let found = look(&machine.subject());
        let words = "Wave 9000, 2 of 8 may be used, governor performance";
        assert_eq!((found.verdict, found.found.as_str()), (Verdict::Ok, words));
        machine.system.write(governor, "powersave\n");
        assert!(look(&machine.subject()).remedy.unwrap().contains("cpupower"));
        machine.system.write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
        assert!(look(&machine.subject()).found.ends_with("; limited to the time of 1.5"));
    }
}
