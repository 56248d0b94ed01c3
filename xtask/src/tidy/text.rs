//! Text rules: how a file begins, open work, paths of one machine, the lint that forbids unsafe code.

use super::Violation;
use super::tree::{File, Tree};

const MARKS: &[&str] = &["TODO", "FIXME"];

/// First folders of paths that exist on one machine only; the slashes are added, so that this file has none.
const MACHINE_FOLDERS: &[&str] = &["Users", "home", "root", "tmp", "work"];

/// The scratch names documents may use, after the folder `tmp`.
const SCRATCH: &str = "wavetank";

/// Crates that deny unsafe code and allow it per module instead.
const MAY_BE_UNSAFE: &[&str] = &["py", "store"];
const FORBIDS: &str = "#![forbid(unsafe_code)]";

/// A Rust file begins with `//!`.
pub(super) fn doc_line(tree: &Tree) -> Vec<Violation> {
    let silent = tree.rust().filter(|file| !file.text.starts_with("//!"));
    silent.map(|file| Violation::at(file, 1, "begin with a `//!` line that says what the file is")).collect()
}

/// `TODO` and `FIXME` name an issue. In Rust only comments count; a mark in backquotes is a mention.
pub(super) fn open_work(tree: &Tree) -> Vec<Violation> {
    tree.files.iter().flat_map(open_work_in).collect()
}

fn open_work_in(file: &File) -> Vec<Violation> {
    let text = if file.is_rust() { &file.masks.comments } else { &file.text };
    let lines = text.lines().zip(1..);
    let marked = lines.filter_map(|(line, at)| Some((MARKS.iter().find(|mark| is_open(line, mark))?, at)));
    marked
        .map(|(mark, at)| Violation::at(file, at, format!("`{mark}` without an issue: `{mark}(#12)`")))
        .collect()
}

fn is_open(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + mark.len()..]);
        let whole = !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        let mention = before.matches('`').count() % 2 == 1;
        let issue = after.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        whole && !mention && !issue
    })
}

/// No absolute path of somebody's machine, in any file.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Violation> {
    let lines =
        tree.files.iter().flat_map(|file| file.text.lines().zip(1..).map(move |(line, at)| (file, line, at)));
    let found = lines.filter_map(|(file, line, at)| {
        let folder = MACHINE_FOLDERS.iter().find(|folder| has_machine_path(line, folder))?;
        Some(Violation::at(file, at, format!("a path of one machine, under `{folder}`")))
    });
    found.collect()
}

/// Looks for the folder as the first one of an absolute path; one that continues another path is not.
fn has_machine_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let after = &line[at + folder.len()..];
        let Some(before) = line[..at].strip_suffix('/') else { return false };
        let continues = before.ends_with(|c: char| c.is_alphanumeric() || "_-.~*}>)/$".contains(c));
        let absolute = !continues || before.ends_with("://");
        let inside = after.strip_prefix('/').is_some_and(|rest| {
            let scratch = folder == "tmp" && rest.starts_with(SCRATCH);
            rest.starts_with(|c: char| c.is_alphanumeric() || "_.".contains(c)) && !scratch
        });
        let itself =
            folder == "root" && !after.starts_with(|c: char| c.is_alphanumeric() || "_-/".contains(c));
        absolute && (inside || itself)
    })
}

/// The root file of every crate forbids unsafe code, but for two crates.
pub(super) fn forbids_unsafe(tree: &Tree) -> Vec<Violation> {
    let roots = tree.files.iter().filter(|file| match file.place_in_crate() {
        Some((name, rest)) => ["src/lib.rs", "src/main.rs"].contains(&rest) && !MAY_BE_UNSAFE.contains(&name),
        None => false,
    });
    let open = roots.filter(|file| !file.masks.code.contains(FORBIDS));
    open.map(|file| Violation::at(file, 1, format!("`{FORBIDS}` is missing"))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn rust_files_begin_with_a_doc_line() {
        let message = "a.rs:1: begin with a `//!` line that says what the file is";
        assert_eq!(findings(doc_line, &[("a.rs", "#![forbid(unsafe_code)]\n//! x")]), [message]);
        assert_eq!(findings(doc_line, &[("a.rs", "")]), [message]);
        assert_eq!(findings(doc_line, &[("a.rs", "//! x"), ("a.md", "# x")]), [""; 0]);
    }

    #[test]
    fn open_work_without_an_issue_is_found() {
        for text in
            ["// TODO: later", "/* x\n TODO(me) #later */", "// `x` FIXME", "//! TODO #12, then FIXME"]
        {
            assert_eq!(findings(open_work, &[("a.rs", text)]).len(), 1, "{text}");
        }
        assert_eq!(
            findings(open_work, &[("a.md", "x\nTODO")]),
            ["a.md:2: `TODO` without an issue: `TODO(#12)`"]
        );
    }

    #[test]
    fn open_work_with_an_issue_and_mentions_are_not() {
        for text in
            ["// TODO(#12): later", "// FIXME #7", "let a = \"TODO\";", "// no `TODO` here", "// TODOS"]
        {
            assert_eq!(findings(open_work, &[("a.rs", text)]), [""; 0], "{text}");
        }
    }

    #[test]
    fn machine_paths_are_found_in_any_file() {
        for path in ["/{}/x", "see /{}/x/y", "\"/{}/a\"", "PATH=/{}/b", "(/{}/.c)", "a:/{}/d", "file:///{}/e"]
        {
            for folder in MACHINE_FOLDERS {
                let text = path.replace("{}", folder);
                assert_eq!(findings(machine_paths, &[("notes", &text)]).len(), 1, "{text}");
            }
        }
        let bare = format!("# x\ncd /{}", "root");
        assert_eq!(
            findings(machine_paths, &[("run", &bare)]),
            ["run:2: a path of one machine, under `root`"]
        );
    }

    #[test]
    fn other_paths_are_not() {
        for path in
            ["../{}/x", "a/{}/x", "$HOME/{}/x", "${X}/{}/x", "http://a.b/{}/x", "/{}less/x", "/opt/{}/x"]
        {
            for folder in MACHINE_FOLDERS {
                assert_eq!(
                    findings(machine_paths, &[("a.md", &path.replace("{}", folder))]),
                    [""; 0],
                    "{path}"
                );
            }
        }
        let scratch = format!("/{}/wavetank-run/x", "tmp");
        assert_eq!(findings(machine_paths, &[("a.md", &scratch)]), [""; 0]);
    }

    #[test]
    fn crates_forbid_unsafe_code() {
        let forbidding = "//! x\n#![forbid(unsafe_code)]\n";
        assert_eq!(
            findings(forbids_unsafe, &[("crates/sim/src/lib.rs", "//! #![forbid(unsafe_code)]")]),
            ["crates/sim/src/lib.rs:1: `#![forbid(unsafe_code)]` is missing"]
        );
        assert_eq!(findings(forbids_unsafe, &[("crates/cli/src/main.rs", "//! x")]).len(), 1);
        let others = [
            "crates/store/src/lib.rs",
            "crates/py/src/lib.rs",
            "crates/sim/src/loop.rs",
            "xtask/src/main.rs",
        ];
        for path in others {
            assert_eq!(findings(forbids_unsafe, &[(path, "//! x")]), [""; 0], "{path}");
        }
        assert_eq!(findings(forbids_unsafe, &[("crates/sim/src/lib.rs", forbidding)]), [""; 0]);
    }
}
