//! `tidy`: the layout and style rules of the repository that no other tool checks. Each row of [`RULES`] is
//! one function from the tree to what it finds wrong.

mod arrows;
mod name;
mod numbers;
mod pages;
mod plugin;
mod public;
mod safety;
mod size;
mod source;
mod text;
mod tree;

use std::fmt;

use crate::{Failure, no_arguments};
use tree::{File, Tree};

/// One thing the repository promises.
struct Rule {
    promise: &'static str,
    check: fn(&Tree) -> Vec<Violation>,
}

const RULES: &[Rule] = &[
    Rule { promise: "a Rust file begins with what it is", check: text::doc_line },
    Rule { promise: "a file stays short", check: size::files },
    Rule { promise: "a function stays short", check: size::functions },
    Rule { promise: "a line stays short", check: size::lines },
    Rule { promise: "a name says what the thing is", check: name::banned },
    Rule { promise: "open work has an issue", check: text::open_work },
    Rule { promise: "no path of one machine", check: text::machine_paths },
    Rule { promise: "unsafe code is forbidden", check: text::forbids_unsafe },
    Rule { promise: "files with unsafe code are listed", check: safety::listed },
    Rule { promise: "every plug-in file is a row of its table", check: plugin::rows },
    Rule { promise: "crates depend as ARCHITECTURE.md says", check: arrows::dependencies },
    Rule { promise: "every page of docs/ is a chapter", check: pages::chapters },
    Rule { promise: "every link of a page leads somewhere", check: pages::dead_links },
    Rule { promise: "every number has a source", check: numbers::sources },
    Rule { promise: "what is public is used outside its crate", check: public::used },
];

/// A broken promise, at a line counted from one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    path: String,
    line: usize,
    message: String,
}

impl Violation {
    fn at(file: &File, line: usize, message: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    no_arguments(args)?;
    Ok(check_repository()?)
}

/// Prints every violation, sorted by place; an error says how many, and which promises they break.
pub(crate) fn check_repository() -> Result<(), String> {
    let tree = Tree::of_repository()?;
    let mut found = Vec::new();
    let mut broken = Vec::new();
    for rule in RULES {
        let violations = (rule.check)(&tree);
        broken.extend((!violations.is_empty()).then_some(rule.promise));
        found.extend(violations);
    }
    found.sort();
    for violation in &found {
        println!("{violation}");
    }
    if found.is_empty() {
        println!("tidy: {} files keep {} rules", tree.files.len(), RULES.len());
        return Ok(());
    }
    Err(format!("{} violations of: {}", found.len(), broken.join("; ")))
}

/// What a rule says about a tree, as it would be printed.
#[cfg(test)]
fn findings(check: fn(&Tree) -> Vec<Violation>, files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(path, text)| File::of(path, (*text).to_owned())).collect();
    check(&Tree { files, others: Vec::new() }).iter().map(Violation::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orderly_crate_breaks_no_rule() {
        let files = [
            ("ARCHITECTURE.md", "# Map\n```arrows\nmodel:\n```\n"),
            ("crates/model/Cargo.toml", "[dependencies]\nserde = \"1\"\n"),
            ("crates/model/src/lib.rs", "//! The vocabulary.\n#![forbid(unsafe_code)]\n\nfn ids() {}\n"),
        ];
        for rule in RULES {
            assert_eq!(findings(rule.check, &files), [""; 0], "{}", rule.promise);
        }
    }

    #[test]
    fn a_disorderly_crate_breaks_every_rule() {
        let long = "    x();\n".repeat(600);
        let names = "pub fn get_it() {}\n// TODO later\n";
        let text = format!("pub const ALL: &[u8] = &[];\n{names}fn f() {{\n{long}}}\n{}", "y".repeat(200));
        let path = format!("let x = \"/{}/me\"; unsafe {{}}", "home");
        let files = [
            ("crates/sim/Cargo.toml", ""),
            ("crates/sim/src/lib.rs", path.as_str()),
            ("crates/sim/src/links/mod.rs", text.as_str()),
            ("crates/sim/src/links/wire.rs", ""),
            ("docs/lost.md", "[nowhere](gone.md)"),
            ("METHODOLOGY.md", "## Speed\n9 % faster, somehow.\n"),
        ];
        for rule in RULES {
            assert_ne!(findings(rule.check, &files), [""; 0], "{}", rule.promise);
        }
    }
}
