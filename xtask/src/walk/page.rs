//! What a new user would paste: the runnable blocks of a page, with what is said about them in comments.

use std::fs;
use std::path::Path;

use crate::fences::{Fence, fences, shown};
use crate::links::{links, resolved};

const README: &str = "README.md";
const SUMMARY: &str = "docs/SUMMARY.md";
const MARK: &str = "<!-- walk:";
const MARK_END: &str = "-->";

/// One block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Page and line, as `docs/x.md:12`.
    pub(super) place: String,
    pub(super) task: Task,
}

/// What is done about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// A script for bash.
    Run(String),
    /// Nothing, because it needs something; what.
    Skip(String),
}

/// README, and what the table of contents lists, in its order.
pub(super) fn pages(tree: &Path) -> Result<Vec<String>, String> {
    let summary = read(tree, SUMMARY)?;
    let listed = links(&summary).into_iter().filter_map(|link| resolved(SUMMARY, link.path));
    let mut pages = vec![README.to_owned()];
    for page in listed {
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    Ok(pages)
}

/// The steps of one page.
pub(super) fn steps(tree: &Path, page: &str) -> Result<Vec<Step>, String> {
    steps_of(page, &read(tree, page)?)
}

fn read(tree: &Path, page: &str) -> Result<String, String> {
    fs::read_to_string(tree.join(page)).map_err(|error| format!("{page}: {error}"))
}

fn steps_of(page: &str, text: &str) -> Result<Vec<Step>, String> {
    let runnable: Vec<Fence<'_>> = fences(text).into_iter().filter(|f| commands(f).is_some()).collect();
    let marked = runnable.iter().filter(|fence| fence.before.starts_with(MARK)).count();
    if marked < text.lines().filter(|line| line.trim().starts_with(MARK)).count() {
        return Err(format!("{page}: a comment `{MARK}` is not right before a `console` or `bash` block"));
    }
    runnable.iter().map(|fence| step(page, fence)).collect()
}

/// What of a block is typed; `None` when it is not for typing.
fn commands(fence: &Fence<'_>) -> Option<String> {
    match fence.language {
        "bash" => Some(fence.text.to_owned()),
        "console" => Some(shown(fence.text).into_iter().map(|(command, _)| command).collect()),
        _ => None,
    }
}

fn step(page: &str, fence: &Fence<'_>) -> Result<Step, String> {
    let place = format!("{page}:{}", fence.line);
    let script = commands(fence).unwrap_or_default();
    let mark = fence.before.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(MARK_END)).map(str::trim);
    let task = match mark.map(|mark| mark.split_once(' ').unwrap_or((mark, ""))) {
        None => Task::Run(script),
        Some(("needs", what)) if !what.is_empty() => Task::Skip(format!("needs {what}")),
        Some(("first", what)) if !what.is_empty() => Task::Run(format!("{what}\n{script}")),
        Some(_) => return Err(format!("{place}: say `{MARK} needs …` or `{MARK} first …` before a block")),
    };
    Ok(Step { place, task })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_scripts_in_order() {
        let page = "```console\n$ a\nout\n$ b \\\n c\n```\n```toml\nx = 1\n```\n\
            <!-- walk: first mkdir d -->\n```bash\n# why\ne\n```\n\
            <!-- walk: needs a GPU -->\n```bash\nf\n```\n";
        let step = |place: &str, task| Step { place: place.into(), task };
        let expected = [
            step("p.md:1", Task::Run("a\nb \\\n c\n".into())),
            step("p.md:11", Task::Run("mkdir d\n# why\ne\n".into())),
            step("p.md:16", Task::Skip("needs a GPU".into())),
        ];
        assert_eq!(steps_of("p.md", page).unwrap(), expected);
    }

    #[test]
    fn marks_that_say_nothing_are_refused() {
        let block = "```bash\na\n```\n";
        for mark in ["<!-- walk: needs -->\n", "<!-- walk: maybe -->\n", "<!-- walk: needs x -->\n\n"] {
            assert!(steps_of("p.md", &format!("{mark}{block}")).is_err(), "{mark}");
        }
        assert!(steps_of("p.md", "<!-- walk: needs x -->\n```toml\n```\n").is_err());
    }

    #[test]
    fn pages_come_in_the_order_of_the_summary() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        let summary = "[R](../README.md)\n- [B](b.md)\n- [A](a.md)\n- [B](b.md#x)\n";
        fs::write(folder.path().join(SUMMARY), summary).unwrap();
        assert_eq!(pages(folder.path()).unwrap(), ["README.md", "docs/b.md", "docs/a.md"]);
    }
}
