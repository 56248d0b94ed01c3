//! `bench mrc`: what miss-ratio curves cost, and how far off samples are: the cache's example `curves` on the
//! conversation trace and on ten copies of it in a row.

use std::process::Command;

use super::{Options, Page, trace};
use crate::process::{self, cargo, output_of, target_dir};

/// Copies that share nothing make the long trace.
const COPIES: u64 = 10;

pub(super) fn measure(_: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release", "-p", "wavetank-cache", "--example", "curves"]))?;
    let conversation = trace::conversation()?;
    let long = trace::repeated(&conversation, COPIES)?;
    let program = target_dir().join("release/examples/curves");
    let table = output_of(Command::new(program).args([conversation, long]))? + "\n";
    let method = "One pass over a trace in memory, on one core; CPU is that of the thread, the mean of \
                  passes of half a second together. Curves of policies other than LRU are those of eight \
                  capacities, with LRU's beside them. Errors are those of block hit ratios at eight \
                  capacities with ten seeds, in points of a hundred, against curves on everything. The \
                  second table has the errors, with five seeds, of drawing one conversation in eight, and \
                  one block in eight, and playing them on caches of an eighth.\n";
    Ok(Page { method: method.to_owned(), table })
}
