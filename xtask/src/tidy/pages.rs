//! Rules of the documentation: every page is a chapter of the book, and every link leads somewhere.

use super::Violation;
use super::tree::{File, Tree};
use crate::links::{Link, anchors, links, resolved};

/// The table of contents.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Every page under `docs/` is linked from the table of contents.
pub(super) fn chapters(tree: &Tree) -> Vec<Violation> {
    let summary = tree.files.iter().find(|file| file.path == SUMMARY);
    let listed: Vec<String> = summary.map_or_else(Vec::new, |file| {
        links(&file.text).iter().filter_map(|link| resolved(SUMMARY, link.path)).collect()
    });
    let is_page = |file: &&File| is_markdown(file) && file.path.starts_with("docs/") && file.path != SUMMARY;
    let pages = tree.files.iter().filter(is_page);
    let missing = pages.filter(|page| !listed.contains(&page.path));
    missing.map(|page| Violation::at(page, 1, format!("is in no line of {SUMMARY}"))).collect()
}

/// Links to files and headings that are there, on every page of the repository.
pub(super) fn dead_links(tree: &Tree) -> Vec<Violation> {
    let pages = tree.files.iter().filter(|file| is_markdown(file));
    pages.flat_map(|page| dead_links_of(tree, page)).collect()
}

fn dead_links_of(tree: &Tree, page: &File) -> Vec<Violation> {
    let found = links(&page.text);
    let dead = found.iter().filter_map(|link| Some((link.line, problem(tree, page, link)?)));
    dead.map(|(line, message)| Violation::at(page, line, message)).collect()
}

fn problem(tree: &Tree, page: &File, link: &Link<'_>) -> Option<String> {
    let Some(path) = resolved(&page.path, link.path) else {
        return Some(format!("`{}` leads out of the repository", link.path));
    };
    let Some(file) = tree.files.iter().find(|file| file.path == path) else {
        let is_there = tree.others.contains(&path);
        return (!is_there).then(|| format!("`{path}` is not a file of the repository"));
    };
    let is_dead = !link.anchor.is_empty() && is_markdown(file);
    let is_dead = is_dead && !anchors(&file.text).iter().any(|anchor| anchor == link.anchor);
    is_dead.then(|| format!("`{path}` has no heading `#{}`", link.anchor))
}

fn is_markdown(file: &File) -> bool {
    file.path.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn pages_without_a_line_in_the_summary_are_found() {
        let files = [
            (SUMMARY, "- [A](a.md)\n- [README](../README.md)\n"),
            ("docs/a.md", "# A"),
            ("docs/deep/b.md", "# B"),
            ("docs/c.ipynb", "{}"),
            ("records/d.md", "# D"),
        ];
        assert_eq!(findings(chapters, &files), ["docs/deep/b.md:1: is in no line of docs/SUMMARY.md"]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let page = "[a](b.md)\n[c](../README.md#try-it)\n[d](../README.md#gone)\n[e](#here)\n[f](../../g)\n";
        let files = [("docs/a.md", page), ("README.md", "# R\n## Try it\n[h](docs)\n")];
        let expected = [
            "docs/a.md:1: `docs/b.md` is not a file of the repository",
            "docs/a.md:3: `README.md` has no heading `#gone`",
            "docs/a.md:4: `docs/a.md` has no heading `#here`",
            "docs/a.md:5: `../../g` leads out of the repository",
            "README.md:3: `docs` is not a file of the repository",
        ];
        assert_eq!(findings(dead_links, &files), expected);
    }

    #[test]
    fn pictures_are_files_too() {
        let page = File::of("docs/a.md", "![b](b.png) [c](c.png)".into());
        let tree = Tree { files: vec![page], others: vec!["docs/b.png".into()] };
        let found: Vec<String> = dead_links(&tree).iter().map(Violation::to_string).collect();
        assert_eq!(found, ["docs/a.md:1: `docs/c.png` is not a file of the repository"]);
    }
}
