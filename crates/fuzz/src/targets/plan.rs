//! Plans of replays and of storage benchmarks, alone and inside reports.

use wavetank::{BenchPlan, Plan};

use super::{Entry, inputs};
use crate::said::{Met, refused};
use crate::scratch::Scratch;
use crate::{small_run, texts};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "plan",
    about: "plans of replays and storage benchmarks, as --plan takes them",
    samples: &["crates/fuzz/samples/plan"],
    seeds: || inputs(&["{}", r#"{"plan": {}}"#, "[]", "null"]),
    changed: texts::changed,
    check,
    most_memory: 512 << 20,
};

/// Read as a plan of each kind; what is one is written, read again, and runs where it is small.
fn check(bytes: &[u8]) -> Met {
    let file = Scratch::of("report.json", bytes);
    let place = file.place();
    let benchmark = BenchPlan::read(file.path());
    if let Ok(plan) = &benchmark {
        let text = serde_json::to_vec(plan).expect("a plan is plain data");
        let again = BenchPlan::read(Scratch::of("plan.json", &text).path());
        assert!(again.expect("what is written is a plan") == *plan, "{plan:?}");
    }
    match (Plan::read(file.path()), benchmark) {
        (Ok(plan), _) => Met::Read(small_run::all_holds(&plan)),
        (Err(_), Ok(_)) => Met::Read("a benchmark".to_owned()),
        (Err(error), Err(other)) => match (refused(&error, &place), refused(&other, &place)) {
            (Met::Refused(one), Met::Refused(two)) => Met::Refused(format!("{one}; {two}")),
            (either, _) => either,
        },
    }
}
