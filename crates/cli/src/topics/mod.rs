//! What `wavetank help TOPIC` says: one file per topic, one row each in [`ALL`]. A text fits a screen and
//! names the page that says more; where the truth is a table of the code, it is printed from there.

mod bench;
mod environment;
mod exit_codes;
mod metrics;
mod migration;
mod reports;
mod seeds;
mod serve;
mod tiers;
mod traces;

use wavetank::catalog;

pub(crate) use environment::VARIABLES;

/// A row of the table.
pub(crate) struct Topic {
    /// As typed.
    pub(crate) name: &'static str,
    /// What it is about, in one line.
    pub(crate) about: &'static str,
    /// What is said about it.
    pub(crate) text: fn() -> String,
}

/// Every topic, alphabetical. `wavetank help` prints this table.
pub(crate) const ALL: &[Topic] = &[
    bench::ENTRY,
    environment::ENTRY,
    exit_codes::ENTRY,
    metrics::ENTRY,
    migration::ENTRY,
    reports::ENTRY,
    seeds::ENTRY,
    serve::ENTRY,
    tiers::ENTRY,
    traces::ENTRY,
];

/// Rows of a table of choices, as `wavetank list KIND -v` has them.
fn choices(kind: &str) -> String {
    let kind = catalog::kind(kind).expect("topics name kinds that there are");
    columns(kind.rows().iter().map(|row| (row.name, row.about)))
}

/// Names and what they are, the second column aligned.
fn columns<'r>(rows: impl Iterator<Item = (&'r str, &'r str)>) -> String {
    let rows: Vec<_> = rows.collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, about)| format!("  {name:width$}  {about}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal shows at once, if it is a tall one.
    const LINES_MOST: usize = 48;
    const CHARS_MOST: usize = 122;

    #[test]
    fn topics_are_told_on_a_screen() {
        assert!(ALL.is_sorted_by_key(|topic| topic.name));
        for topic in ALL {
            let text = (topic.text)();
            assert!(text.lines().count() <= LINES_MOST, "{}: {} lines", topic.name, text.lines().count());
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(CHARS_MOST), "{}: {longest:?} characters", topic.name);
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{}", topic.name);
        }
    }

    /// Broken by: a flag, a command or a page that is renamed, and a topic that still names it.
    #[test]
    fn topics_name_flags_and_pages_that_there_are() {
        let mut root = crate::command();
        root.build();
        let mut flags = Vec::new();
        collect(&root, &mut flags);
        // Tables of results name flags of the tools that write them.
        let results = choices("results");
        let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let is_other = |c: char| !c.is_ascii_alphanumeric() && !"-_./".contains(c);
        for topic in ALL {
            let text = (topic.text)();
            for word in text.split(is_other).map(|word| word.trim_end_matches(['.', '-'])) {
                if let Some(flag) = word.strip_prefix("--").filter(|flag| !flag.is_empty()) {
                    let is_known = flags.iter().any(|known| known == flag) || results.contains(word);
                    assert!(is_known, "{}: --{flag}", topic.name);
                }
                if word.ends_with(".md") {
                    let is_there = std::path::Path::new(repository).join(word).is_file();
                    assert!(is_there, "{}: {word}", topic.name);
                }
            }
        }
    }

    fn collect(command: &clap::Command, flags: &mut Vec<String>) {
        flags.extend(command.get_arguments().filter_map(|argument| Some(argument.get_long()?.to_owned())));
        command.get_subcommands().for_each(|inner| collect(inner, flags));
    }
}
