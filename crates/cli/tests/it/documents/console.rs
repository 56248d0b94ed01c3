//! The output that `console` blocks show is what their commands print; `cargo xtask bless` writes it again.
//!
//! The commands of a page run in one folder, in order, with what a comment `<!-- walk: first … -->` before a
//! block asks for. In what is shown `…` stands for any text of a line, and a line of nothing else for any
//! lines.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::fences::{Fence, fences, shown};
use super::{Page, path};
use crate::sandbox::{Sandbox, WAVETANK};

/// A command that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);
const ANY: &str = "…";
const FIRST: &str = "<!-- walk: first ";

/// Broken by: a number, a row or a word of any output that is shown.
#[test]
fn the_output_shown_is_real() {
    let is_blessing = std::env::var_os("WAVETANK_BLESS").is_some_and(|value| value == "1");
    let pages = Page::all();
    let wrong = thread::scope(|scope| {
        let checks: Vec<_> = pages.iter().map(|page| scope.spawn(|| page.with_real_output())).collect();
        let real = checks.into_iter().map(|check| check.join().expect("commands of a page run"));
        pages.iter().zip(real).filter(|(page, real)| page.text != *real).collect::<Vec<_>>()
    });
    if is_blessing {
        wrong.iter().for_each(|(page, real)| fs::write(path(&page.name), real).expect("a page is writable"));
        return;
    }
    let told: String = wrong.iter().map(|(page, real)| page.first_difference(real)).collect();
    assert!(told.is_empty(), "`cargo xtask bless` writes it again\n{told}");
}

impl Page {
    /// The page as it should be: itself, or with what commands print now.
    fn with_real_output(&self) -> String {
        let mut text = self.text.clone();
        let sandbox = Sandbox::on_disk();
        for name in ["examples", "crates"] {
            symlink(path(name).canonicalize().expect("a folder"), sandbox.path(name)).expect("a link");
        }
        let found = fences(&self.text);
        let mut outputs = Vec::new();
        for fence in found.iter().filter(|fence| fence.language == "console") {
            prepare(&sandbox, fence);
            for (command, output) in shown(fence.text) {
                let real = printed(&sandbox, &command, &format!("{}:{}", self.name, fence.line));
                outputs.push((output, rewritten(output, &real)));
            }
        }
        for (old, new) in outputs.iter().rev() {
            let start = old.as_ptr() as usize - self.text.as_ptr() as usize;
            text.replace_range(start..start + old.len(), new);
        }
        text
    }

    /// Where another text first differs, and what it says there.
    fn first_difference(&self, real: &str) -> String {
        let lines = self.text.lines().zip(real.lines()).zip(1..);
        let first = lines.into_iter().find(|((ours, theirs), _)| ours != theirs);
        let ((ours, theirs), line) = first.unwrap_or((("(the end)", "(more)"), 0));
        format!("{}:{line}\n  shown: {ours}\n  real:  {theirs}\n", self.name)
    }
}

/// Does what has to be done before a block.
fn prepare(sandbox: &Sandbox, fence: &Fence<'_>) {
    let first = fence.before.strip_prefix(FIRST).and_then(|rest| rest.strip_suffix("-->"));
    first.into_iter().for_each(|command| drop(printed(sandbox, command, "before a block")));
}

/// What a command prints on a terminal; it must succeed.
fn printed(sandbox: &Sandbox, command: &str, place: &str) -> String {
    // Cargo would build what is built already.
    let command = command.replace("cargo run --release -- ", "wavetank ");
    let programs = Path::new(WAVETANK).parent().expect("a folder").display();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(["-e", "-c", &format!("exec 2>&1\n{command}")]).env("PATH", path);
    let run = sandbox.spawn(bash, "", Stdio::null()).finish(LIMIT);
    assert_eq!(run.code, Some(0), "{place}: {command}\n{}", run.stdout);
    run.stdout
}

/// What should be shown: what is, where it stands for `real`, and else `real`, as far as it was shown.
fn rewritten(shown: &str, real: &str) -> String {
    let (shown, real): (Vec<&str>, Vec<&str>) = (shown.lines().collect(), real.lines().collect());
    let any = shown.iter().position(|line| *line == ANY);
    let kept = |real: &&str| shown.iter().find(|line| stands_for(line, real)).unwrap_or(real).to_string();
    let lines: Vec<String> = match any {
        None => real.iter().map(kept).collect(),
        Some(at) => {
            let (head, tail) = (at.min(real.len()), (shown.len() - at - 1).min(real.len()));
            let any = std::iter::once(ANY.to_owned());
            real[..head]
                .iter()
                .map(kept)
                .chain(any)
                .chain(real[real.len() - tail..].iter().map(kept))
                .collect()
        }
    };
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Whether a line that is shown, with `…` for any text in it, stands for another.
fn stands_for(shown: &str, real: &str) -> bool {
    let Some((first, rest)) = shown.split_once(ANY).filter(|_| shown != ANY) else { return false };
    let Some(mut real) = real.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split(ANY).collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = real.find(part) else { return false };
        real = &real[at + part.len()..];
    }
    real.ends_with(last)
}

#[test]
fn what_changes_between_runs_may_be_left_out() {
    assert_eq!(rewritten("a\nWall: … ms, … s\n", "a\nWall: 7 ms, 3 s\n"), "a\nWall: … ms, … s\n");
    assert_eq!(rewritten("a\nWall: … ms\n", "b\nWall: 7 s\n"), "b\nWall: 7 s\n");
    assert_eq!(rewritten("a\n…\nz\n", "a\nb\nc\nz\n"), "a\n…\nz\n");
    assert_eq!(rewritten("…\ny\nz\n", "a\nb\nc\nd\n"), "…\nc\nd\n");
    assert_eq!(rewritten("", "new\n"), "new\n");
}
