//! Unsafe rule: the files that hold unsafe code are listed here, and nowhere else is any. That each place of
//! it says why it is sound is a lint (`clippy::undocumented_unsafe_blocks`, denied for the workspace).

use super::Violation;
use super::source::line_of;
use super::tree::{File, Tree};

/// Every file with unsafe code, and what it is for.
const UNSAFE: &[(&str, &str)] = &[
    ("crates/calls/examples/entry_bytes.rs", "an allocator that counts"),
    ("crates/store/examples/gpu_copy.rs", "copies on a GPU, measured"),
    ("crates/store/src/arena.rs", "memory mapped at once and given out in pieces"),
    ("crates/store/src/backends/cuda/driver.rs", "calls of the CUDA driver"),
    ("crates/store/src/backends/cuda/port.rs", "copies between a host and a device"),
    ("crates/store/src/mapping.rs", "memory on huge pages, backed when that is asked for"),
    ("crates/store/src/buffer.rs", "buffers on huge pages that the kernel reads and writes"),
    ("crates/store/src/copy.rs", "copies past the cache"),
    ("crates/store/src/payload.rs", "wide instructions, where the processor has them"),
    ("crates/store/src/ring.rs", "requests of io_uring"),
];

/// Unsafe code is where the list says, and the list says nothing else.
pub(super) fn listed(tree: &Tree) -> Vec<Violation> {
    let known = |file: &File| UNSAFE.iter().any(|(path, _)| *path == file.path);
    let found = |file: &File| first_unsafe(&file.masks.code);
    let unlisted = tree.rust().filter(|file| !known(file)).filter_map(|file| {
        let message = "unsafe code in a file that xtask/src/tidy/safety.rs does not list";
        Some(Violation::at(file, line_of(&file.text, found(file)?), message))
    });
    let stale = tree.rust().filter(|file| known(file) && found(file).is_none());
    let stale = stale.map(|file| Violation::at(file, 1, "no unsafe code here: take it off the list"));
    unlisted.chain(stale).collect()
}

/// Where the word stands alone.
fn first_unsafe(code: &str) -> Option<usize> {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found = code.match_indices("unsafe");
    found.find_map(|(at, word)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        (!before.ends_with(is_letter) && !after.starts_with(is_letter)).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn unsafe_code_is_listed_and_the_list_is_true() {
        let code = "//! x\nfn f() {\n    unsafe { g() }\n}\n";
        let message =
            "crates/sim/src/a.rs:3: unsafe code in a file that xtask/src/tidy/safety.rs does not list";
        assert_eq!(findings(listed, &[("crates/sim/src/a.rs", code)]), [message]);
        assert_eq!(findings(listed, &[("crates/store/src/ring.rs", code)]), [""; 0]);
        assert_eq!(
            findings(listed, &[("crates/store/src/ring.rs", "//! x\n")]),
            ["crates/store/src/ring.rs:1: no unsafe code here: take it off the list"]
        );
        let mentions = "//! unsafe\n#![forbid(unsafe_code)]\nlet a = \"unsafe\"; // unsafe\n";
        assert_eq!(findings(listed, &[("crates/sim/src/a.rs", mentions)]), [""; 0]);
    }
}
