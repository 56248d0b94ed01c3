//! Child processes: cargo with the same toolchain, echoing output while reading it, capturing text.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

/// The cargo that started this program, with arguments.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    built_once(&mut command);
    command
}

/// Nothing is kept for a next build: a chore builds once, and a checking machine's disk may be small.
pub(crate) fn built_once(command: &mut Command) -> &mut Command {
    command.env("CARGO_INCREMENTAL", "0")
}

/// Where cargo puts its output, relative to the repository unless the environment says otherwise.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

/// The release binary under measurement and comparison.
pub(crate) fn release_binary() -> PathBuf {
    target_dir().join("release/wavetank")
}

/// The binary that tests start.
pub(crate) fn test_binary() -> PathBuf {
    target_dir().join("debug/wavetank")
}

/// Runs to the end; anything but success is an error naming the command.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{}: {e}", shown(command)))?;
    success(command, status)
}

/// Runs to the end, echoing standard output line by line and handing each line to `see`.
pub(crate) fn run_seen(command: &mut Command, mut see: impl FnMut(&str)) -> Result<(), String> {
    let failed = |command: &Command, e: std::io::Error| format!("{}: {e}", shown(command));
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| failed(command, e))?;
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).split(b'\n')) {
        let line = line.map_err(|e| failed(command, e))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        see(&line);
    }
    let status = child.wait().map_err(|e| failed(command, e))?;
    success(command, status)
}

/// Standard output of a command that must succeed, trimmed.
pub(crate) fn text_of(program: &str, args: &[&str]) -> Result<String, String> {
    output_of(Command::new(program).args(args))
}

/// The same of one that is made up.
pub(crate) fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{}: {e}", shown(command)))?;
    success(command, output.status)
        .map_err(|problem| format!("{problem}: {}", String::from_utf8_lossy(&output.stderr).trim()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What this compiler compiles for, when nothing else is said.
pub(crate) fn host() -> Result<String, String> {
    let about = text_of("rustc", &["-vV"])?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc names no host".to_owned())
}

fn success(command: &Command, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}", shown(command))) }
}

/// The command as a person would type it; the program without its folders.
fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let program = program.file_name().map_or_else(|| program.as_os_str().to_owned(), OsStr::to_owned);
    let words = std::iter::once(program.as_os_str()).chain(command.get_args());
    words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// One word for a shell, quoted only where it must be.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_seen_and_a_failure_names_the_command() {
        let mut lines = Vec::new();
        let result = run_seen(Command::new("sh").args(["-c", "echo a; printf b; exit 3"]), |l| {
            lines.push(l.to_owned())
        });
        assert_eq!(lines, ["a", "b"]);
        assert_eq!(result.unwrap_err(), "`sh -c 'echo a; printf b; exit 3'` ended with exit status: 3");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("--num-workers"), "--num-workers");
        assert_eq!(quoted(r#"{"block_size":64}"#), r#"'{"block_size":64}'"#);
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_failing_command_has_no_text() {
        assert_eq!(text_of("sh", &["-c", "echo ' x '"]), Ok("x".to_owned()));
        assert!(text_of("sh", &["-c", "echo no >&2; exit 1"]).unwrap_err().ends_with("exit status: 1: no"));
    }
}
