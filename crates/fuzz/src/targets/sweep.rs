//! Sweeps in TOML: what is varied, what is wanted, and the plans of their points.

use std::path::Path;

use wavetank_study::sweep::{Shard, Spec, Sweep};

use super::{Entry, inputs};
use crate::said::{Met, refused, sketch};
use crate::texts;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "sweep",
    about: "files of sweeps and searches",
    samples: &["crates/fuzz/samples/sweep"],
    seeds: || {
        inputs(&["", "[axes]\n", "[base]\ninput_tokens = 1\n", "[sweep]\nmode = \"random\"\nsamples = 3\n"])
    },
    changed: texts::changed,
    check,
    most_memory: 384 << 20,
};

const FILE: &str = "sweep.toml";
/// Points whose plans are made within milliseconds.
const FEW: u64 = 64;

fn check(bytes: &[u8]) -> Met {
    let Ok(text) = std::str::from_utf8(bytes) else { return Met::Refused("not text".to_owned()) };
    // What would start an interpreter is not tried.
    if text.contains("aic") {
        return Met::Refused("not tried".to_owned());
    }
    let spec = match Spec::parse(text, Path::new("none"), FILE) {
        Ok(spec) => spec,
        Err(error) => return refused(&error, FILE),
    };
    if spec.size() > FEW {
        return Met::Read("many points".to_owned());
    }
    match Sweep::prepare(&spec, Shard::WHOLE, 1) {
        Ok(sweep) => {
            assert!(sweep.len() as u64 <= spec.size(), "more points than there are");
            Met::Read(format!("{} points, {} axes", sweep.len(), spec.axes.len()))
        }
        Err(error) => Met::Read(sketch(&error.to_string())),
    }
}
