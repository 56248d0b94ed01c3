//! Whether buffers get huge pages: with small ones a piece is many segments, which the block layer splits.

use super::super::finding::Finding;
use super::super::subject::Subject;
use super::Check;
use crate::host::HugePages;

pub(super) const ENTRY: Check =
    Check { name: "huge-pages", about: "whether buffers that ask for huge pages get them", look };

const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

fn look(subject: &Subject) -> Finding {
    let set_aside = subject.host.free_huge_pages();
    let (word, finding) = match subject.host.huge_pages() {
        HugePages::Always => (Some("always"), Finding::ok("transparent huge pages for everybody (always)")),
        HugePages::Asked => (Some("madvise"), Finding::ok("transparent huge pages for who asks (madvise)")),
        HugePages::Never => {
            let found = "no transparent huge pages (never): storage I/O takes more requests and CPU time";
            (Some("never"), Finding::note(found, format!("echo madvise | sudo tee {SETTING}")))
        }
        HugePages::Unknown => {
            let found =
                "the kernel has no transparent huge pages: storage I/O takes more requests and CPU time";
            (None, Finding::note(found, "a kernel with CONFIG_TRANSPARENT_HUGEPAGE has them"))
        }
    };
    finding.with("transparent", word).with("free_set_aside", set_aside)
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    #[test]
    fn never_is_a_note_with_a_command() {
        let machine = Machine::sound();
        assert_eq!(look(&machine.subject()).verdict, Verdict::Ok);
        machine.system.write(SETTING, "always madvise [never]\n");
        let found = look(&machine.subject());
        assert_eq!((found.verdict, found.facts["transparent"].as_str()), (Verdict::Note, Some("never")));
        assert!(found.remedy.unwrap().starts_with("echo madvise | sudo tee /sys/kernel/mm/"));
    }
}
