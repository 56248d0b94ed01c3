//! Rule of visibility: what is public is used outside its crate. What is not is `pub(crate)`, and then the
//! compiler says when nobody uses it any more.

use std::collections::{HashMap, HashSet};

use super::Violation;
use super::tree::{File, Tree};

/// Parts of the storage-call API that no program of ours needs; with them it is whole.
const WHOLE_API: &[&str] = &["finish_read", "read_prefetched", "submit_prefetch"];

/// Functions and constants that are public for nobody.
pub(super) fn used(tree: &Tree) -> Vec<Violation> {
    let mut places: HashMap<&str, HashSet<&str>> = HashMap::new();
    for file in tree.rust() {
        for word in words(&file.masks.code) {
            places.entry(word).or_default().insert(place(file));
        }
    }
    let is_used = |file: &File, name: &str| {
        WHOLE_API.contains(&name)
            || places.get(name).is_some_and(|found| found.iter().any(|other| *other != place(file)))
    };
    let sources = tree.rust().filter(|file| is_source(file));
    let unused = sources.flat_map(|file| {
        let unused = public(file).filter(|&(_, name)| !is_used(file, name) && !is_renamed(tree, file, name));
        unused.map(|(line, name)| {
            let message = format!("`{name}` is public and nothing outside its crate uses it: `pub(crate)`");
            Violation::at(file, line, message)
        })
    });
    unused.collect()
}

/// A crate for what is in its `src`, the file itself for tests and examples, which see what is public.
fn place(file: &File) -> &str {
    match file.path.find("/src/") {
        Some(end) => &file.path[..end],
        None => &file.path,
    }
}

fn is_source(file: &File) -> bool {
    file.place_in_crate().is_some_and(|(_, path)| path.starts_with("src/")) && !file.is_test()
}

/// Public functions and constants with their lines.
fn public(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.masks.code.lines().zip(1..).filter_map(|(line, number)| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let rest = rest.strip_prefix("const fn ").or_else(|| rest.strip_prefix("fn "));
        let name = rest.or_else(|| line.trim_start().strip_prefix("pub const "))?;
        Some((number, words(name).next()?))
    })
}

/// Whether the crate gives it out under another name.
fn is_renamed(tree: &Tree, file: &File, name: &str) -> bool {
    let alias = format!("{name} as ");
    tree.rust().filter(|other| place(other) == place(file)).any(|other| other.masks.code.contains(&alias))
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn what_only_its_crate_uses_is_found() {
        let source = "pub fn alone() {}\npub(crate) fn inside() { alone() }\n    pub const fn rare() {}\n";
        let files = [("crates/a/src/lib.rs", source), ("crates/a/src/tests.rs", "alone() rare()")];
        let message = |line, name| {
            format!(
                "crates/a/src/lib.rs:{line}: `{name}` is public and nothing outside its crate uses it: \
                 `pub(crate)`"
            )
        };
        assert_eq!(findings(used, &files), [message(1, "alone"), message(3, "rare")]);
    }

    #[test]
    fn what_others_use_is_not() {
        let source =
            "pub fn told() {}\npub const SIZE: u8 = 1;\npub fn given() {}\npub use given as other;\n";
        let files = [
            ("crates/a/src/lib.rs", source),
            ("crates/a/tests/it.rs", "fn t() { told() }"),
            ("crates/b/src/lib.rs", "const TWICE: u8 = 2 * a::SIZE;"),
        ];
        assert_eq!(findings(used, &files), [""; 0]);
        let comment = ("crates/b/src/lib.rs", "// told SIZE");
        assert_eq!(findings(used, &[("crates/a/src/lib.rs", source), comment]).len(), 2);
    }
}
