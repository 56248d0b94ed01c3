//! Files that pages show, `<!-- file: examples/x.toml -->` before a block, are the files themselves.

use std::fs;

use super::fences::fences;
use super::{Page, path};

const MARK: &str = "<!-- file: ";

/// Broken by: an example that was changed in one place only.
#[test]
fn files_that_pages_show_are_the_files_themselves() {
    let mut seen = 0;
    for page in Page::all() {
        for fence in fences(&page.text) {
            let Some(name) = fence.before.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->"))
            else {
                continue;
            };
            let file = fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(fence.text, file, "{}:{}", page.name, fence.line);
            seen += 1;
        }
    }
    assert!(seen > 0, "some page shows a file");
}
