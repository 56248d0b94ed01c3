//! How many files and sockets this process may have open: entries on a drive stay open while there is room,
//! and a client is a socket.

use rustix::process::Resource;

use super::super::finding::Finding;
use super::super::subject::Subject;
use super::Check;

pub(super) const ENTRY: Check =
    Check { name: "open-files", about: "how many files and sockets may be open", look };

/// Servers refuse clients, stores open files again and again.
const FEW: u64 = 4096;
/// What starts may not come to an end.
const HARDLY_ANY: u64 = 256;
const REMEDY: &str =
    "ulimit -n 1048576 as root (LimitNOFILE=1048576 in a unit, --ulimit nofile=1048576 of docker run)";

fn look(subject: &Subject) -> Finding {
    // Commands raise the limit as far as they may, so that the further one counts.
    let limit = (subject.trials.limit)(Resource::Nofile).maximum;
    let finding = match limit {
        None => Finding::ok("no limit"),
        Some(count) if count < HARDLY_ANY => Finding::problem(format!("{count} at most"), REMEDY),
        Some(count) if count < FEW => Finding::note(
            format!("{count} at most: files are opened again and again, few clients fit"),
            REMEDY,
        ),
        Some(count) => Finding::ok(format!("{count} at most")),
    };
    finding.with("limit", limit)
}

#[cfg(test)]
mod tests {
    use rustix::process::Rlimit;

    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    /// Broken by: the nearer limit, which commands raise, taken for the further one.
    #[test]
    fn the_further_limit_counts() {
        let mut machine = Machine::sound();
        machine.trials.limit = |_| Rlimit { current: Some(64), maximum: Some(1 << 20) };
        assert_eq!(look(&machine.subject()).found, "1048576 at most");
        machine.trials.limit = |_| Rlimit { current: Some(64), maximum: Some(1024) };
        assert_eq!(look(&machine.subject()).verdict, Verdict::Note);
        machine.trials.limit = |_| Rlimit { current: Some(64), maximum: Some(64) };
        assert_eq!(look(&machine.subject()).verdict, Verdict::Problem);
    }
}
