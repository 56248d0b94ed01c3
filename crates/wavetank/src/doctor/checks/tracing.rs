//! Whether `bench --enable-latency-tracing` can look into the block layer.

use super::super::finding::Finding;
use super::super::subject::Subject;
use super::Check;

pub(super) const ENTRY: Check =
    Check { name: "tracing", about: "whether bpftrace may look at the block layer", look };

fn look(subject: &Subject) -> Finding {
    match (subject.trials.tracing)() {
        None => Finding::ok("bpftrace is there and may look at the block layer").with("works", true),
        Some((missing, remedy)) => {
            let found = format!("{missing}: no --enable-latency-tracing");
            Finding::note(found, remedy).with("works", false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    #[test]
    fn what_is_missing_is_a_note() {
        let mut machine = Machine::sound();
        assert_eq!(look(&machine.subject()).verdict, Verdict::Ok);
        machine.trials.tracing = || Some(("bpftrace is not installed".to_owned(), "install it"));
        let found = look(&machine.subject());
        assert_eq!((found.verdict, found.remedy.as_deref()), (Verdict::Note, Some("install it")));
    }
}
