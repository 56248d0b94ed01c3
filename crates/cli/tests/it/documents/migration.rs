//! The tables of the pages for those who come from other tools: what they call ours is there.

use super::{Page, code};
use crate::sandbox::Sandbox;

/// A page, and the verbs whose flags its tables name.
const PAGES: [(&str, &[&str]); 3] = [
    ("docs/from-dynamo-replay.md", &["replay"]),
    ("docs/from-kv-cache.md", &["bench", "bench suite"]),
    ("docs/from-lmcache.md", &["serve", "trace replay", "trace info"]),
];
/// What a row may say of a flag of the other tool.
const VERDICTS: [&str; 4] = ["same", "differs", "refused", "not there"];

/// Broken by: a flag that is called otherwise by now, or a row that does not say what becomes of a flag.
#[test]
fn every_flag_named_is_there() {
    let sandbox = Sandbox::empty();
    for (name, verbs) in PAGES {
        let page = Page::of(name);
        let help: String = verbs.iter().map(|verb| sandbox.run(&format!("{verb} --help")).stdout).collect();
        let mut seen = 0;
        for row in page.rows().into_iter().filter(|row| code(row[0]).iter().any(|it| it.starts_with('-'))) {
            let [_, ours, verdict, ..] = row[..] else { panic!("{name}: {row:?}") };
            assert!(VERDICTS.iter().any(|word| verdict.starts_with(word)), "{name}: {row:?}");
            for flag in code(ours).into_iter().flat_map(str::split_whitespace) {
                let flag = flag.split(['=', '[']).next().unwrap_or_default();
                let is_flag = flag.starts_with('-');
                assert!(!is_flag || has_flag(&help, flag), "{name}: {flag} is no flag of {verbs:?}");
                seen += usize::from(is_flag);
            }
            let is_named = code(ours).iter().any(|it| it.starts_with('-'));
            assert!(
                is_named || !["same", "differs", "refused"].iter().any(|it| verdict.starts_with(it)),
                "{row:?}"
            );
        }
        assert!(seen > 20, "{name}: {seen} flags");
    }
}

/// Broken by: a flag of ours with a counterpart that nobody wrote down.
#[test]
fn every_flag_of_replay_and_bench_is_on_its_page() {
    let sandbox = Sandbox::empty();
    for (name, verb) in [("docs/from-dynamo-replay.md", "replay"), ("docs/from-kv-cache.md", "bench")] {
        let page = Page::of(name);
        let help = sandbox.run(&format!("{verb} --help")).stdout;
        let flags = help.lines().filter_map(|line| line.trim_start().split([' ', '=', '[', ',']).next());
        let flags = flags.filter(|word| word.starts_with("--") && !["--help", "--version"].contains(word));
        let missing: Vec<&str> = flags.filter(|flag| !has_flag(&page.text, flag)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}

/// Whether a text has the flag as a whole word.
fn has_flag(text: &str, flag: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    let begins = |before: &str| !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    text.match_indices(flag).any(|(at, _)| begins(&text[..at]) && ends(&text[at + flag.len()..]))
}
