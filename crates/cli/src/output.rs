//! Data to standard output, words to standard error, reports to files.

use std::borrow::Cow;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use wavetank::{CallRecording, Error, Result};

pub use wavetank::try_out;
pub(crate) use wavetank::write_whole as write;

/// Prints data. A reader that went away is no error.
pub(crate) fn say(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(harmless(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new(wavetank::ErrorKind::Io, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints words; if that fails there is nobody to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(text));
}

/// A text whose names, which come from traces and files of others, give no orders to a terminal: what would
/// move, colour, hide or turn round is spelled out.
fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_order) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_order(letter) { shown.extend(letter.escape_unicode()) } else { shown.push(letter) }
    }
    Cow::Owned(shown)
}

fn is_order(letter: char) -> bool {
    let is_laid_out = matches!(letter, '\n' | '\t');
    let turns_round = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() && !is_laid_out || turns_round
}

/// The file a report goes to: `given`, a timestamped name inside it if it is a directory, or that name here.
pub(crate) fn report_path(given: Option<&Path>, kind: &str) -> PathBuf {
    let stamped = || stamped(kind) + ".json";
    match given {
        None => PathBuf::from(stamped()),
        Some(path) if path.is_dir() => path.join(stamped()),
        Some(path) => path.to_owned(),
    }
}

/// A name with the time.
pub(crate) fn stamped(kind: &str) -> String {
    format!("{kind}_{}", jiff::Zoned::now().strftime("%Y%m%d_%H%M%S"))
}

/// Refuses output that would overwrite the input or other output, by whatever name, and what is no name.
pub(crate) fn keep_apart(files: &[(&str, &Path)]) -> Result<()> {
    let is_dash = |(flag, path): &&(&str, &Path)| flag.starts_with("--") && *path == Path::new("-");
    if let Some((flag, _)) = files.iter().find(is_dash) {
        return Err(Error::usage("output goes to a file")
            .at(format!("{flag} -"))
            .hint("name a file; /dev/stdout is one, and ./- is one called -"));
    }
    for (position, (flag, path)) in files.iter().enumerate().skip(1) {
        if let Some((other, _)) = files[..position].iter().find(|(_, other)| is_same(other, path)) {
            return Err(
                Error::usage(format!("is the same file as {other}")).at(format!("{flag} {}", path.display()))
            );
        }
    }
    Ok(())
}

/// Refuses output over what is read, which may be named twice.
pub fn spare<'p>(inputs: impl IntoIterator<Item = &'p Path>, outputs: &[(&str, &Path)]) -> Result<()> {
    let inputs: Vec<&Path> = inputs.into_iter().collect();
    let over = |(_, path): &&(&str, &Path)| inputs.iter().any(|input| is_same(input, path));
    match outputs.iter().find(over) {
        None => Ok(()),
        Some((flag, path)) => {
            Err(Error::usage("is the same file as an input").at(format!("{flag} {}", path.display())))
        }
    }
}

/// Refuses a recording whose later files would overwrite one of `files`, or anything that is there.
pub(crate) fn keep_parts_apart(recording: &CallRecording, files: &[(&str, &Path)]) -> Result<()> {
    match files.iter().find(|(_, path)| recording.may_go_on_in(path)) {
        None => recording.check_place(),
        Some((flag, path)) => Err(Error::usage(format!("the recording would go on in {flag}"))
            .at(path.display().to_string())
            .hint("--trace-rotate-mb makes x.2.lct and so on of x.lct: name one of them otherwise")),
    }
}

/// A file has more than one name where there are links.
fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => real(one) == real(other),
        _ => false,
    }
}

/// The path of a file that may not be there.
fn real(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a name that colours the terminal, sets its title, rings, returns or reads backwards.
    #[test]
    fn names_give_no_orders_to_terminals() {
        let plain = "┃ a é\tb\n";
        assert_eq!(harmless(plain), plain);
        assert_eq!(harmless("\u{1b}]0;x\u{7}\r"), "\\u{1b}]0;x\\u{7}\\u{d}");
        assert_eq!(harmless("\u{9b}31m\u{202e}gpj"), "\\u{9b}31m\\u{202e}gpj");
    }
}
