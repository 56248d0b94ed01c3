//! What holds of every target: its seeds keep the rules, so do changes of them, and some of them are read.

#![forbid(unsafe_code)]

use wavetank_fuzz::{Met, inputs, targets};
use wavetank_model::seeded;

/// Changes of each target: moments, not minutes.
const CHANGES: usize = 40;

/// Broken by: a reader that panics, a law that does not hold, or samples that are refused all.
#[test]
fn seeds_and_their_changes_keep_the_rules() {
    for target in targets::ALL {
        let seeds = inputs(target);
        let met: Vec<Met> = seeds.iter().map(|seed| (target.check)(seed)).collect();
        let is_read = met.iter().any(|met| matches!(met, Met::Read(_)));
        assert!(is_read, "{}: nothing is read: {met:?}", target.name);
        let mut draw = seeded(7, target.name);
        for number in 0..CHANGES {
            let [one, other] = [number, number * 7 + 3].map(|at| &seeds[at % seeds.len()]);
            (target.check)(&(target.changed)(one, other, &mut draw));
        }
    }
}

/// Broken by: a draw that does not come from the seed.
#[test]
fn a_seed_means_the_same_changes() {
    for target in targets::ALL {
        let seeds = inputs(target);
        let changes = || {
            let mut draw = seeded(3, target.name);
            seeds.iter().map(|seed| (target.changed)(seed, &seeds[0], &mut draw)).collect::<Vec<_>>()
        };
        assert!(changes() == changes(), "{}", target.name);
    }
}

#[test]
fn names_are_in_order() {
    assert!(targets::ALL.is_sorted_by(|one, next| one.name < next.name));
    assert!(targets::find("lct").is_some() && targets::find("none").is_none());
}
