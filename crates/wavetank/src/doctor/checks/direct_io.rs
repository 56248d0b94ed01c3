//! Whether entries can be written past the page cache in the directory, by writing and reading one.

use super::super::finding::Finding;
use super::super::subject::Subject;
use super::Check;

pub(super) const ENTRY: Check =
    Check { name: "direct-io", about: "O_DIRECT in the directory: an entry written and read back", look };

const ELSEWHERE: &str = "name a directory that may be written to";

fn look(subject: &Subject) -> Finding {
    let kind = subject.mount().map(|mount| mount.kind);
    let system = kind.as_deref().unwrap_or("a file system that is not known");
    let finding = match (subject.trials.direct)(&subject.directory) {
        Ok(notes) if notes.is_empty() => {
            Finding::ok(format!("{system}: 1 MiB was written past the page cache, read back and removed"))
        }
        Ok(notes) => Finding::note(
            format!("{system}: O_DIRECT works; {}", notes.join("; ")),
            "it works; ext4 and xfs do it better",
        ),
        Err(error) => Finding::problem(
            format!("{system}: {}", error.message()),
            error.advice().unwrap_or(ELSEWHERE).to_owned(),
        ),
    };
    let works = finding.verdict != super::super::Verdict::Problem;
    finding.with("works", works).with("file_system", kind)
}

#[cfg(test)]
mod tests {
    use wavetank_model::Error;

    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    #[test]
    fn a_refusal_is_a_problem_with_its_own_hint() {
        let mut machine = Machine::sound();
        let found = look(&machine.subject());
        assert_eq!((found.verdict, found.facts["works"].as_bool()), (Verdict::Ok, Some(true)));
        assert!(found.found.starts_with("ext4: "), "{}", found.found);
        machine.trials.direct =
            |_| Err(Error::usage("the file system refuses O_DIRECT").hint("use buffered"));
        let found = look(&machine.subject());
        assert_eq!((found.verdict, found.remedy.as_deref()), (Verdict::Problem, Some("use buffered")));
        machine.trials.direct = |_| Ok(vec!["cannot preallocate".to_owned()]);
        assert_eq!(look(&machine.subject()).verdict, Verdict::Note);
    }
}
