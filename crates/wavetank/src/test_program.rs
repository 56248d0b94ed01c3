//! Programs that tests write and start.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program to `path`, ready to be started.
///
/// Another process writes it: were it open for writing here, a thread that starts a child at that moment
/// would hand it on, and what somebody has open for writing cannot be started.
pub(crate) fn write_program(path: &Path, text: &str) {
    let mut install = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("coreutils are there");
    install.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
    assert!(install.wait().expect("it ends").success(), "{} was not written", path.display());
}
