//! Which commit a source tree is, for the version of the binary and for records of measurements. The build
//! script and `xtask` have this file as a module.

use std::path::Path;
use std::process::Command;

/// Digits of a hash: a fixed number, so that every clone of a commit gives the same.
const DIGITS: &str = "--short=12";

/// The commit that `root` is a checkout of, with `-dirty` where tracked files of `paths` differ from it;
/// nothing where it is none, or there is no git.
pub(crate) fn revision(root: &Path, paths: &[&str]) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    // An archive that was unpacked inside some other repository is no commit of that.
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let commit = git(root, &["rev-parse", DIGITS, "HEAD"])?;
    let status = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=no", "--"];
    let changed = !git(root, &[&status, paths].concat())?.is_empty();
    Some(if changed { commit + "-dirty" } else { commit })
}

/// What git says about `root`, if it says it.
pub(crate) fn git(root: &Path, words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // A hook of git that builds something has its own repository in these.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    let output = command.arg("-C").arg(root).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Broken by: a commit of the repository around, a change that is not seen, or one elsewhere that is.
    #[test]
    fn a_tree_is_its_commit_and_says_what_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(revision(root, &["."]), None);
        let act = |words: &[&str]| git(root, words).unwrap_or_else(|| panic!("git {words:?}"));
        act(&["init", "--quiet"]);
        assert_eq!(revision(root, &["."]), None, "there is no commit");
        fs::create_dir(root.join("code")).unwrap();
        fs::write(root.join("code/a"), "a").unwrap();
        fs::write(root.join("notes"), "n").unwrap();
        act(&["add", "."]);
        act(&["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "-m", "a"]);
        let commit = revision(root, &["."]).unwrap();
        assert!(commit.len() == 12 && commit.bytes().all(|b| b.is_ascii_hexdigit()), "{commit}");
        assert!(act(&["rev-parse", "HEAD"]).starts_with(&commit));
        assert_eq!(revision(&root.join("code"), &["."]), None, "a folder of it is not the repository");
        fs::write(root.join("code/new"), "b").unwrap();
        assert_eq!(revision(root, &["."]), Some(commit.clone()), "what is not tracked does not count");
        fs::write(root.join("notes"), "m").unwrap();
        assert_eq!(revision(root, &["code"]), Some(commit.clone()));
        assert_eq!(revision(root, &["."]), Some(commit + "-dirty"));
    }
}
