//! Rule of numbers: METHODOLOGY.md says where each section's numbers come from, and that is there: a test, a
//! command or a record.

use super::Violation;
use super::tree::{File, Tree};

const PAGE: &str = "METHODOLOGY.md";
/// Pages whose sections need a row.
const PAGES: [&str; 2] = [PAGE, "README.md"];
/// The section with the table.
const SOURCES: &str = "Where the numbers come from";

/// Every section with measured numbers has a row, and every row names something that is there.
pub(super) fn sources(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.files.iter().find(|file| file.path == PAGE) else { return Vec::new() };
    let rows: Vec<Row<'_>> = rows(page);
    let dead =
        rows.iter().flat_map(|row| dead(tree, row).into_iter().map(|message| (page, row.line, message)));
    let silent = PAGES.iter().filter_map(|path| tree.files.iter().find(|file| file.path == *path));
    let silent = silent.flat_map(|file| {
        let sections =
            sections(file).into_iter().filter(|section| section.is_measured() && !section.has_row(&rows));
        sections.map(move |section| {
            let message =
                format!("the numbers of \"{}\" have no row in \"{SOURCES}\" of {PAGE}", section.title);
            (file, section.line, message)
        })
    });
    dead.chain(silent).map(|(file, line, message)| Violation::at(file, line, message)).collect()
}

/// A row of the table: whose numbers, and what gives them.
struct Row<'a> {
    line: usize,
    what: &'a str,
    from: &'a str,
}

fn rows(page: &File) -> Vec<Row<'_>> {
    let lines = page.text.lines().zip(1..);
    let section = lines.skip_while(|(line, _)| line.trim_start_matches('#').trim() != SOURCES);
    let rows = section.filter_map(|(text, line)| {
        let mut cells = text.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        Some(Row { line, what: cells.next()?, from: cells.next()? })
    });
    rows.skip(1).collect()
}

struct Section<'a> {
    line: usize,
    title: &'a str,
    text: String,
}

/// What stands below each heading, up to the next; output in a fence is shown by tests.
fn sections(page: &File) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut is_fenced = false;
    for (text, line) in page.text.lines().zip(1..) {
        is_fenced ^= text.starts_with("```");
        match (text.strip_prefix("## ").or_else(|| text.strip_prefix("### ")), sections.last_mut()) {
            (Some(title), _) if !is_fenced => sections.push(Section { line, title, text: String::new() }),
            (_, Some(section)) if !is_fenced => section.text += &format!("{text}\n"),
            _ => {}
        }
    }
    sections
}

impl Section<'_> {
    /// A percentage, or a day on which something was seen, stands in it.
    fn is_measured(&self) -> bool {
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let is_after_digit = |&(at, _): &(usize, &str)| is_digit(self.text[..at].chars().last());
        let has_percent = self.text.match_indices(" %").any(|found| is_after_digit(&found));
        has_percent
            || self.text.match_indices("2026-").any(|(at, _)| is_digit(self.text[at + 5..].chars().next()))
    }

    /// Rows name sections in quotes, by their first words.
    fn has_row(&self, rows: &[Row<'_>]) -> bool {
        let names = rows.iter().flat_map(|row| row.what.split('"').skip(1).step_by(2));
        self.title == SOURCES || names.into_iter().any(|name| self.title.starts_with(name))
    }
}

/// What a row names and is not there; a row that names nothing is one of them.
fn dead(tree: &Tree, row: &Row<'_>) -> Vec<String> {
    let named: Vec<_> =
        row.from.split('`').skip(1).step_by(2).filter_map(|code| Some((code, kind(code)?))).collect();
    if named.is_empty() {
        return vec![format!("names no command, test or record: {}", row.from)];
    }
    let dead = named.into_iter().filter(|(_, kind)| !kind.is_in(tree));
    dead.map(|(code, _)| format!("`{code}` is not there")).collect()
}

/// What gives a number.
enum Source<'a> {
    /// A file of one of these names.
    File(Vec<String>),
    /// A row of a table in the file.
    Row { file: &'a str, name: &'a str },
    /// Tests of a crate: the folder they are in, and what their names, or those of their files, hold.
    Tests { folders: Vec<String>, filter: &'a str },
}

fn kind(code: &str) -> Option<Source<'_>> {
    let words: Vec<&str> = code.split(' ').collect();
    let after = |flag: &str| words.iter().skip_while(|word| **word != flag).nth(1).copied();
    let folder = after("-p").map(|package| format!("crates/{}", package.trim_start_matches("wavetank-")));
    Some(match (words.as_slice(), folder) {
        ([path], _) if path.starts_with("records/") => Source::File(vec![(*path).to_owned()]),
        (["cargo", "xtask", "bench", name, ..], _) => Source::Row { file: "xtask/src/bench/mod.rs", name },
        (["cargo", "xtask", name, ..], _) => Source::Row { file: "xtask/src/main.rs", name },
        (["cargo", "run", ..], Some(folder)) => {
            Source::File(vec![format!("{folder}/examples/{}.rs", after("--example")?)])
        }
        (["cargo", "test", rest @ ..], Some(folder)) => {
            let target = after("--test");
            let folders = match target {
                Some(name) => vec![format!("{folder}/tests/{name}.rs"), format!("{folder}/tests/{name}/")],
                None => vec![format!("{folder}/src/"), format!("{folder}/tests/")],
            };
            let words =
                rest.iter().take_while(|word| **word != "--").copied().filter(|word| !word.starts_with('-'));
            let filter = words.filter(|word| Some(*word) != after("-p") && Some(*word) != target).last();
            Source::Tests { folders, filter: filter.unwrap_or("") }
        }
        (["wavetank", verb, ..], _) => {
            Source::File(["", "/mod"].map(|end| format!("crates/cli/src/cmd/{verb}{end}.rs")).into())
        }
        _ => return None,
    })
}

impl Source<'_> {
    fn is_in(&self, tree: &Tree) -> bool {
        match self {
            Self::File(names) => tree.files.iter().any(|file| names.contains(&file.path)),
            Self::Row { file, name } => {
                let row = format!("name: \"{name}\"");
                tree.files.iter().any(|found| found.path == *file && found.text.contains(&row))
            }
            Self::Tests { folders, filter } => tree.rust().any(|file| {
                let is_there = folders.iter().any(|folder| file.path.starts_with(folder.as_str()));
                let names = file.masks.code.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
                let mut names = names.filter_map(|name| name.split('(').next());
                is_there && (file.path.contains(filter) || names.any(|name| name.contains(filter)))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    fn found(page: &str) -> Vec<String> {
        let files = [
            (PAGE, page),
            ("records/day.md", ""),
            ("xtask/src/main.rs", "name: \"walk\""),
            ("xtask/src/bench/mod.rs", "name: \"kv\""),
            ("crates/sim/src/grid/tests.rs", "    fn grids_are_met() {}"),
            ("crates/sim/tests/oracle/main.rs", ""),
            ("crates/sim/examples/cost.rs", ""),
            ("crates/cli/src/cmd/replay.rs", ""),
        ];
        findings(sources, &files)
    }

    fn page(row: &str) -> String {
        format!("# M\n## Fast\n9 % of it.\n## Still\nWords.\n## {SOURCES}\n| what | by |\n|---|---|\n{row}\n")
    }

    #[test]
    fn what_is_there_is_a_source() {
        for source in [
            "`records/day.md`",
            "`cargo xtask walk`",
            "`cargo xtask bench kv --peer`",
            "`cargo test -p wavetank-sim grids -- --nocapture`",
            "`cargo test -p wavetank-sim --test oracle`",
            "`cargo run --release -p wavetank-sim --example cost`",
            "`wavetank replay trace --seeds 3`",
        ] {
            assert_eq!(found(&page(&format!("| \"Fast\" | {source} |"))), [""; 0], "{source}");
        }
    }

    #[test]
    fn what_is_not_is_none() {
        for source in [
            "`records/night.md`",
            "`cargo xtask run`",
            "`cargo xtask bench walk`",
            "`cargo test -p wavetank-sim lost`",
            "`cargo test -p wavetank-sim --test lost`",
            "`cargo run --release -p wavetank-sim --example lost`",
            "`wavetank play`",
            "seen once",
        ] {
            assert_eq!(found(&page(&format!("| \"Fast\" | {source} |"))).len(), 1, "{source}");
        }
    }

    #[test]
    fn a_section_without_a_row_is_found() {
        let message = format!("{PAGE}:2: the numbers of \"Fast\" have no row in \"{SOURCES}\" of {PAGE}");
        assert_eq!(found(&page("| \"Slow\" | `records/day.md` |")), [message]);
    }
}
