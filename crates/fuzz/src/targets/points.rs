//! Finished points of a sweep that was interrupted, as the next run finds them.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use wavetank_model::Result;
use wavetank_study::sweep::{Local, Onlooker, Setting, Shard, Spec, Start, Sweep, Swept};

use super::{Entry, inputs};
use crate::said::{Met, refused};
use crate::scratch::Scratch;
use crate::texts;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "points",
    about: "finished points of a sweep, with which it goes on",
    samples: &[],
    seeds,
    changed: texts::changed,
    check,
    most_memory: 256 << 20,
};

/// Two points of a few requests each.
const SPEC: &str = "[base]\ninput_tokens = 20\noutput_tokens = 2\nrequest_count = 3\nrequest_rate = 10\n\
    [axes]\nnum_workers = [1, 2]\n";

struct Nobody;

impl Onlooker for Nobody {
    fn expect(&self, _points: usize, _kept: usize) {}
    fn done(&self) {}
}

/// Runs what `points` does not have.
fn swept(points: &Path) -> Result<Swept> {
    let spec = Spec::parse(SPEC, Path::new("none"), "sweep.toml").expect("a sweep");
    let sweep = Sweep::prepare(&spec, Shard::WHOLE, 1).expect("two plans");
    let (stop, store) = (&AtomicBool::new(false), Some((points, Start::Resume)));
    sweep.run(&Setting { threads: 1, stop, runner: &Local::default(), store, onlooker: &Nobody })
}

/// A whole file, and how such files end when they are cut.
fn seeds() -> Vec<Vec<u8>> {
    let file = Scratch::of("points.jsonl", b"");
    swept(file.path()).expect("an empty file is the beginning");
    let whole = fs::read(file.path()).expect("points are kept");
    let cuts = [whole.len() - 9, whole.len() / 2, 30].map(|end| whole[..end].to_vec());
    let mut all = inputs(&["", "dear diary", "\n", "{}\n"]);
    all.extend(cuts);
    all.push(whole);
    all
}

/// What is refused stays as it is; what is taken gives every row, and the next time the same without a run.
fn check(bytes: &[u8]) -> Met {
    let file = Scratch::of("points.jsonl", bytes);
    let kept = || fs::read(file.path()).expect("the file is there");
    let first = match swept(file.path()) {
        Ok(swept) => swept,
        Err(error) => {
            assert!(kept() == bytes, "a file that was refused is another one");
            return refused(&error, &file.place());
        }
    };
    assert_eq!(first.rows.len(), 2);
    assert!(!first.table().is_empty());
    let (before, again) = (kept(), swept(file.path()).expect("it goes on"));
    assert!(again.ran == 0 && kept() == before, "finished points are run again");
    let rows = |swept: &Swept| swept.rows.iter().map(|row| row.json(&[])).collect::<Vec<_>>();
    assert_eq!(rows(&again), rows(&first));
    Met::Read(format!("{} were run, {:?}", first.ran, first.warnings.len()))
}
