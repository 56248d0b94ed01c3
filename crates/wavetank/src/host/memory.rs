//! Main memory, huge pages and swap.

use super::Host;

/// Whether the kernel gives huge pages to who asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HugePages {
    /// To everybody.
    Always,
    /// To who asks, as we do.
    Asked,
    /// To nobody.
    Never,
    /// The kernel does not say.
    Unknown,
}

/// A file or device that memory is written to where it is short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Swap {
    /// The file, or the device.
    pub(crate) name: String,
    /// `file` or `partition`.
    pub(crate) kind: String,
    /// How much it holds.
    pub(crate) bytes: u64,
    /// What is in it.
    pub(crate) used_bytes: u64,
}

const KIB: u64 = 1024;

impl Host {
    /// What the kernel says of its memory by a name: a line `MemTotal: 16384 kB`.
    pub(crate) fn memory_bytes(&self, name: &str) -> Option<u64> {
        self.memory_line(name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(KIB)
    }

    /// Huge pages set aside that nobody uses: a line `HugePages_Free: 16`.
    pub(crate) fn free_huge_pages(&self) -> u64 {
        self.memory_line("HugePages_Free").and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    fn memory_line(&self, name: &str) -> Option<String> {
        let text = self.read("/proc/meminfo")?;
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim().to_owned())
    }

    /// Who gets huge pages, a word in brackets: `always [madvise] never`.
    pub(crate) fn huge_pages(&self) -> HugePages {
        let text = self.read("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        match chosen {
            Some("always") => HugePages::Always,
            Some("madvise") => HugePages::Asked,
            Some("never") => HugePages::Never,
            _ => HugePages::Unknown,
        }
    }

    /// Every swap in use: a heading, then `/swapfile file 8388604 1024 -2`.
    pub(crate) fn swaps(&self) -> Vec<Swap> {
        let text = self.read("/proc/swaps").unwrap_or_default();
        let swap = |line: &str| {
            let mut words = line.split_whitespace();
            let (name, kind) = (words.next()?, words.next()?);
            let mut bytes = || words.next()?.parse::<u64>().ok()?.checked_mul(KIB);
            Some(Swap { name: name.to_owned(), kind: kind.to_owned(), bytes: bytes()?, used_bytes: bytes()? })
        };
        text.lines().skip(1).filter_map(swap).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::System;

    #[test]
    fn memory_is_read_by_its_whole_name() {
        let system = System::empty();
        assert_eq!((system.host().memory_bytes("MemTotal"), system.host().free_huge_pages()), (None, 0));
        system.write("/proc/meminfo", "MemTotal:  2048 kB\nMemTotalish: 1 kB\nHugePages_Free:   16\n");
        assert_eq!(system.host().memory_bytes("MemTotal"), Some(2 << 20));
        assert_eq!(system.host().memory_bytes("Mem"), None);
        assert_eq!(system.host().free_huge_pages(), 16);
    }

    #[test]
    fn the_word_in_brackets_is_the_one_that_holds() {
        let system = System::empty();
        assert_eq!(system.host().huge_pages(), HugePages::Unknown);
        for (text, chosen) in [
            ("[always] madvise never\n", HugePages::Always),
            ("always [madvise] never\n", HugePages::Asked),
            ("always madvise [never]\n", HugePages::Never),
        ] {
            system.write("/sys/kernel/mm/transparent_hugepage/enabled", text);
            assert_eq!(system.host().huge_pages(), chosen);
        }
    }

    #[test]
    fn swaps_are_the_lines_below_the_heading() {
        let system = System::empty();
        system.write("/proc/swaps", "Filename Type Size Used Priority\n");
        assert_eq!(system.host().swaps(), []);
        system.write("/proc/swaps", "Filename Type Size Used Priority\n/swapfile file 2048 1024 -2\n");
        let swap =
            Swap { name: "/swapfile".into(), kind: "file".into(), bytes: 2 << 20, used_bytes: 1 << 20 };
        assert_eq!(system.host().swaps(), [swap]);
    }
}
