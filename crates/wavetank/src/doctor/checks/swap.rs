//! Whether memory may be written to a drive: a cache in memory is then read from the drive it was to avoid.

use super::super::finding::{Finding, gib};
use super::super::subject::Subject;
use super::Check;
use crate::host::Swap;

pub(super) const ENTRY: Check =
    Check { name: "swap", about: "whether memory may be written to a file or a drive", look };

fn look(subject: &Subject) -> Finding {
    let swaps = subject.host.swaps();
    let told = |swap: &Swap| {
        let Swap { name, kind, bytes, used_bytes } = swap;
        format!("{name} ({kind}), {}, {} used", gib(*bytes), gib(*used_bytes))
    };
    let used: u64 = swaps.iter().map(|swap| swap.used_bytes).sum();
    let finding = if swaps.is_empty() {
        Finding::ok("none")
    } else {
        let words: Vec<String> = swaps.iter().map(told).collect();
        let remedy = "sudo swapoff -a while something is measured: a memory tier may be read from the drive";
        Finding::note(words.join("; "), remedy)
    };
    let files = swaps.iter().filter(|swap| swap.kind == "file").count();
    finding
        .with("swaps", swaps.len())
        .with("file_backed", files)
        .with("used_bytes", used)
        .with("swappiness", subject.host.number("/proc/sys/vm/swappiness"))
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    #[test]
    fn a_swap_file_is_a_note() {
        let machine = Machine::sound();
        assert_eq!(look(&machine.subject()).verdict, Verdict::Ok);
        machine
            .system
            .write("/proc/swaps", "Filename Type Size Used Priority\n/swapfile file 8388608 0 -2\n");
        let found = look(&machine.subject());
        assert_eq!(found.found, "/swapfile (file), 8.0 GiB, 0.0 MiB used");
        assert_eq!((found.verdict, found.facts["file_backed"].as_u64()), (Verdict::Note, Some(1)));
    }
}
