//! Which revision this is, for `wavetank --version`: the variable `WAVETANK_REVISION`, or what git says.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=WAVETANK_REVISION");
    // A commit moves one of the two.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let revision = std::env::var("WAVETANK_REVISION").ok();
    let revision = revision.or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    println!("cargo::rustc-env=WAVETANK_REVISION={}", revision.as_deref().unwrap_or("no revision"));
}

/// What git says, where there is a repository.
fn git(words: &[&str]) -> Option<String> {
    let told = Command::new("git").args(words).output().ok().filter(|told| told.status.success())?;
    let text = String::from_utf8(told.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
