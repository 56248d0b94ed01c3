//! Links of Markdown pages to files of the repository, and the anchors that headings have on a forge.

use std::collections::BTreeMap;

use crate::fences::fences;

/// A link to a file, to a heading, or to a heading of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    /// The line it is on, from one.
    pub(crate) line: usize,
    /// Relative to the page's folder; empty for the page itself.
    pub(crate) path: &'a str,
    /// The heading, without `#`; empty for none.
    pub(crate) anchor: &'a str,
}

/// Every link of a page that stays inside the repository, images included.
pub(crate) fn links(page: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for (line, number) in prose(page) {
        let inside = targets(line).into_iter().filter(|target| !is_outside(target));
        found.extend(inside.map(|target| {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            Link { line: number, path, anchor }
        }));
    }
    found
}

/// The anchors of a page's headings; of equal ones the second has `-1` behind it.
pub(crate) fn anchors(page: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(page).into_iter().filter_map(|(line, _)| heading(line));
    let named = headings.map(|heading| {
        let name = anchor(heading);
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}-{}", *count - 1) }
    });
    named.collect()
}

/// The first heading of a page.
pub(crate) fn title(page: &str) -> Option<&str> {
    prose(page).into_iter().find_map(|(line, _)| heading(line))
}

/// Where a link of `page` leads, from the root of the repository; `None` when it leads out of it.
pub(crate) fn resolved(page: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(page.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Lines outside of fenced blocks, with their numbers from one.
fn prose(page: &str) -> Vec<(&str, usize)> {
    let fenced: Vec<_> = fences(page).iter().map(|f| f.line..=f.line + 1 + f.text.lines().count()).collect();
    let is_prose = |number: &usize| !fenced.iter().any(|lines| lines.contains(number));
    page.lines().zip(1..).filter(|(_, number)| is_prose(number)).collect()
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| text.trim())
}

/// As forges and mdBook make it: small letters, digits, `-` and `_`; spaces become `-`, the rest goes.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// What stands in the parentheses of `[text](target)`, outside of code.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = line[at..].find(['`', ']']) {
        at += next;
        if line[at..].starts_with('`') {
            at = after_code(line, at);
        } else {
            at += 1;
            let target = line[at..].strip_prefix('(').and_then(|rest| rest.split_once(')'));
            found.extend(target.map(|(target, _)| target));
        }
    }
    found
}

/// Behind the code that begins with the backquotes at `at`, or behind these where it does not end.
fn after_code(line: &str, at: usize) -> usize {
    let length = line[at..].len() - line[at..].trim_start_matches('`').len();
    let marks = &line[at..at + length];
    let end = line[at + length..].find(marks).map(|end| at + length + end + length);
    end.unwrap_or(at + length)
}

fn is_outside(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let page = "[a](b.md#c), ![d](e.png)\n`[x](y)` ``z` [u](v)`` [f](#g)\n```\n[h](i)\n```\n\
            [j](https://k.l) [m](../n)\n";
        let link = |line, path, anchor| Link { line, path, anchor };
        let expected = [link(1, "b.md", "c"), link(1, "e.png", ""), link(2, "", "g"), link(6, "../n", "")];
        assert_eq!(links(page), expected);
    }

    #[test]
    fn headings_have_the_anchors_of_a_forge() {
        let page = "# The `--tier` flag: how?\n## A\n```\n# no\n```\n## A\n#hash\n####### seven\n";
        assert_eq!(anchors(page), ["the---tier-flag-how", "a", "a-1"]);
        assert_eq!(title(page), Some("The `--tier` flag: how?"));
    }

    #[test]
    fn links_are_followed_from_the_page_they_are_on() {
        let to = |page, link| resolved(page, link).unwrap();
        assert_eq!(to("docs/a.md", "b.md"), "docs/b.md");
        assert_eq!(to("docs/a.md", "../README.md"), "README.md");
        assert_eq!(to("README.md", "./docs/report/x.png"), "docs/report/x.png");
        assert_eq!(to("docs/a.md", ""), "docs/a.md");
        assert_eq!(resolved("README.md", "../x"), None);
    }
}
