//! The output shown in README.md is what the command prints.
//!
//! Breaks when a number, a row or the layout of the table changes; `cargo xtask bless` writes it again.

use std::fs;

use crate::sandbox::{Sandbox, repository, steady};

const SHOWN: &str = "$ cargo run --release -- replay examples/conversation.jsonl --num-workers 4";
const TYPED: &str = "replay examples/conversation.jsonl --num-workers 4";
const FENCE: &str = "```";

/// The text around the output that follows [`SHOWN`], and the output.
fn parts(readme: &str) -> (&str, &str, &str) {
    let heading = format!("\n{SHOWN}\n");
    let start = readme.find(&heading).expect("README.md shows the command") + heading.len();
    let fence = readme[..start - heading.len()].rsplit('\n').next().unwrap_or_default();
    assert!(fence.starts_with(FENCE), "the command begins a fenced block, not after {fence:?}");
    let length = readme[start..].find(FENCE).expect("the block ends");
    (&readme[..start], &readme[start..start + length], &readme[start + length..])
}

#[test]
fn the_output_shown_is_real() {
    let path = repository().join("README.md");
    let readme = fs::read_to_string(&path).expect("README.md");
    let run = Sandbox::with_examples().run(TYPED);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let (before, shown, after) = parts(&readme);
    let (shown, real) = (steady(shown), steady(&run.stdout));
    if std::env::var_os("WAVETANK_BLESS").is_some_and(|value| value == "1") && shown != real {
        fs::write(&path, format!("{before}{real}{after}")).expect("README.md is writable");
        return;
    }
    assert!(shown == real, "`cargo xtask bless` writes it again\nshown:\n{shown}\nreal:\n{real}");
}

#[test]
fn the_block_is_found_between_its_fences() {
    let readme = format!("# Title\n{FENCE}console\n{SHOWN}\nout\nput\n{FENCE}\nafter {FENCE}\n");
    let (before, shown, after) = parts(&readme);
    assert!(before.ends_with(&format!("{SHOWN}\n")));
    assert_eq!((shown, after), ("out\nput\n", &*format!("{FENCE}\nafter {FENCE}\n")));
}
