//! Processors: what they are, how fast they may run, and how busy they are.

use std::collections::BTreeSet;

use super::{Host, disk};

/// Where the kernel describes processors.
const PROCESSORS: &str = "/sys/devices/system/cpu";

/// What processors did since the machine started, in ticks of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// All of it.
    pub(crate) all: u64,
    /// Nothing, or waiting for a drive.
    pub(crate) idle: u64,
    /// What other machines on the same hardware had instead.
    pub(crate) stolen: u64,
}

impl Host {
    /// The processor's model.
    pub(crate) fn processor(&self) -> Option<String> {
        let text = self.read("/proc/cpuinfo")?;
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    }

    /// How many processors are switched on: `0-3,8` are five.
    pub(crate) fn online_processors(&self) -> Option<u32> {
        let text = self.read(format!("{PROCESSORS}/online"))?;
        let count = |part: &str| -> Option<u32> {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        };
        text.split(',').map(count).sum()
    }

    /// Who sets processors' frequencies; empty where nobody can be seen to.
    pub(crate) fn governors(&self) -> BTreeSet<String> {
        let folders = disk::entries(&self.at(PROCESSORS));
        let governor = |folder: &std::path::PathBuf| {
            let text = std::fs::read_to_string(folder.join("cpufreq/scaling_governor")).ok()?;
            Some(text.trim().to_owned())
        };
        folders.iter().filter_map(governor).collect()
    }

    /// Whether processors may run above their usual frequency.
    pub(crate) fn turbo(&self) -> Option<bool> {
        let intel = self.number(format!("{PROCESSORS}/intel_pstate/no_turbo")).map(|off| off == 0);
        intel.or_else(|| self.number(format!("{PROCESSORS}/cpufreq/boost")).map(|on| on == 1))
    }

    /// How many processes wanted to run, on average over the last minute.
    pub(crate) fn load(&self) -> Option<f64> {
        self.read("/proc/loadavg")?.split(' ').next()?.parse().ok()
    }

    /// What all processors together did: `cpu user nice system idle iowait irq softirq steal`, and then what
    /// is in user already.
    pub(crate) fn ticks(&self) -> Option<Ticks> {
        let text = self.read("/proc/stat")?;
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
        let at = |place: usize| ticks.get(place).copied();
        Some(Ticks { all: ticks.iter().sum(), idle: at(3)? + at(4)?, stolen: at(7).unwrap_or(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::System;

    #[test]
    fn processors_are_counted_by_ranges() {
        let system = System::empty();
        assert_eq!(system.host().online_processors(), None);
        for (text, count) in [("0", Some(1)), ("0-3", Some(4)), ("0-3,8,10-11", Some(7)), ("3-1", None)] {
            system.write("/sys/devices/system/cpu/online", text);
            assert_eq!(system.host().online_processors(), count, "{text}");
        }
    }

    #[test]
    fn frequencies_are_read_as_far_as_they_are_told() {
        let system = System::empty();
        assert_eq!((system.host().governors().len(), system.host().turbo()), (0, None));
        system.write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
        system.write("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
        system.write("/sys/devices/system/cpu/cpufreq/boost", "1\n");
        assert_eq!(system.host().governors(), BTreeSet::from(["powersave".to_owned()]));
        assert_eq!(system.host().turbo(), Some(true));
        system.write("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
        assert_eq!(system.host().turbo(), Some(false));
    }

    /// Broken by: time waiting for a drive counted as work, or guests counted twice.
    #[test]
    fn ticks_are_added_up() {
        let system = System::empty();
        system.write("/proc/stat", "cpu  10 1 5 70 4 1 2 7 3 1\ncpu0 1 1 1 1\n");
        system.write("/proc/loadavg", "2.50 1.80 1.52 3/105 14335\n");
        assert_eq!(system.host().ticks(), Some(Ticks { all: 100, idle: 74, stolen: 7 }));
        assert_eq!(system.host().load(), Some(2.5));
    }
}
