//! `book`: the pages of the repository as a book that mdBook makes. Pages are read where they stand on a
//! forge; the book has copies of those that `docs/SUMMARY.md` lists, and of everything they link to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::links::{links, resolved, title};
use crate::process::{self, cargo, target_dir};

const MDBOOK: &str = "mdbook";
const VERSION: &str = "0.5.3";
const SETTINGS: &str = "docs/book.toml";
const SUMMARY: &str = "docs/SUMMARY.md";

/// The chore.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["--install"] => install()?,
        _ => return Err(Failure::Usage("book takes --install, or nothing".into())),
    }
    let book = target_dir().join("book");
    stage(Path::new("."), &book)?;
    let mdbook = program().ok_or_else(|| {
        "mdbook is not installed: `cargo xtask book --install` puts it into the target folder".to_owned()
    })?;
    process::run(Command::new(mdbook).arg("build").arg(&book))?;
    println!("book: {}", book.join("html/index.html").display());
    Ok(())
}

/// Ours, or one on the path.
fn program() -> Option<PathBuf> {
    let ours = target_dir().join("tools/bin").join(MDBOOK);
    let answers = |program: &PathBuf| process::output_of(Command::new(program).arg("--version")).is_ok();
    [ours, MDBOOK.into()].into_iter().find(answers)
}

fn install() -> Result<(), String> {
    let tools = target_dir().join("tools");
    process::run(cargo(&["install", "--locked", MDBOOK, "--version", VERSION, "--root"]).arg(tools))
}

/// Lays out `book` as mdBook wants it, with every page in the place it has in the repository.
fn stage(root: &Path, book: &Path) -> Result<(), String> {
    let source = book.join("src");
    // Pages of an earlier book may be gone by now.
    let _ = fs::remove_dir_all(&source);
    let summary = read(root, SUMMARY)?;
    let listed: Vec<String> =
        links(&summary).iter().filter_map(|link| resolved(SUMMARY, link.path)).collect();
    let mut seen: BTreeSet<String> = listed.iter().cloned().collect();
    let mut next = listed;
    let mut further = String::new();
    while let Some(path) = next.pop() {
        copy(&root.join(&path), &source.join(&path))?;
        if !path.ends_with(".md") {
            continue;
        }
        let page = read(root, &path)?;
        for link in links(&page).iter().filter_map(|link| resolved(&path, link.path)) {
            if seen.insert(link.clone()) {
                further.extend(line_of(root, &link)?);
                next.push(link);
            }
        }
    }
    let text = format!("{}\n# Further pages\n\n{}", from_root(&summary), sorted(&further));
    write(&source.join("SUMMARY.md"), &text)?;
    copy(&root.join(SETTINGS), &book.join("book.toml"))
}

/// A line of the table of contents for a page that another one links to; nothing for other files.
fn line_of(root: &Path, path: &str) -> Result<Option<String>, String> {
    if !path.ends_with(".md") {
        return Ok(None);
    }
    let page = read(root, path)?;
    Ok(Some(format!("- [{}]({path})\n", title(&page).unwrap_or(path))))
}

/// The table of contents with links from the root of the repository.
fn from_root(summary: &str) -> String {
    let mut text = summary.to_owned();
    for link in links(summary) {
        if let Some(path) = resolved(SUMMARY, link.path) {
            text = text.replace(&format!("]({})", link.path), &format!("]({path})"));
        }
    }
    text
}

fn sorted(lines: &str) -> String {
    let mut lines: Vec<&str> = lines.split_inclusive('\n').collect();
    lines.sort_unstable();
    lines.concat()
}

fn read(root: &Path, path: &str) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let bytes = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    write(to, bytes)
}

fn write(to: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    let folder = to.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(to, content)).map_err(|error| format!("{}: {error}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a page or picture that is linked and not copied, or a chapter whose link still is relative
    /// to docs/.
    #[test]
    fn a_book_has_what_its_pages_link_to() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            (SUMMARY, "# Summary\n\n[Start](../README.md)\n\n- [A](a.md)\n"),
            (SETTINGS, "[book]\n"),
            ("README.md", "# R\n[record](records/r.md)\n"),
            ("docs/a.md", "# A\n![p](p.png) [r](../README.md#r)\n"),
            ("docs/p.png", "png"),
            ("records/r.md", "# Measured\n[a](../docs/a.md)\n"),
            ("records/other.md", "# Not linked\n"),
        ];
        for (path, text) in files {
            write(&root.path().join(path), text).unwrap();
        }
        let book = root.path().join("book");
        stage(root.path(), &book).unwrap();
        let summary = fs::read_to_string(book.join("src/SUMMARY.md")).unwrap();
        let expected = "# Summary\n\n[Start](README.md)\n\n- [A](docs/a.md)\n\n# Further pages\n\n\
            - [Measured](records/r.md)\n";
        assert_eq!(summary, expected);
        for path in ["src/README.md", "src/docs/a.md", "src/docs/p.png", "src/records/r.md", "book.toml"] {
            assert!(book.join(path).is_file(), "{path}");
        }
        assert!(!book.join("src/records/other.md").exists());
    }
}
