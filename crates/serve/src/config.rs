//! The configuration file: TOML with the names of the flags. A key that is not known is refused with its
//! line and the name that comes nearest.

use std::path::Path;

use toml::de::DeTable;
use wavetank_model::{Error, Result, nearest};

use crate::args::Args;

impl Args {
    /// The settings in a file.
    pub fn from_file(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        Self::from_toml(&text, &path.display().to_string())
    }

    /// The settings in `text`; `file` is its name in errors.
    pub fn from_toml(text: &str, file: &str) -> Result<Self> {
        let place = |offset: usize| format!("{file}:{}", line_of(text, offset));
        let broken = |error: toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            Error::input(error.message().to_owned()).at(place(offset)).hint(HINT)
        };
        let table = DeTable::parse(text).map_err(broken)?;
        for key in table.get_ref().keys() {
            let name: &str = key.get_ref();
            if !Self::NAMES.contains(&name) {
                return Err(unknown(name).at(place(key.span().start)));
            }
        }
        toml::from_str(text).map_err(broken)
    }
}

const HINT: &str = "keys are the flags of `wavetank serve --help`, with underscores: l1_size_gb = 100";

fn unknown(name: &str) -> Error {
    let error = Error::input(format!("unknown key \"{name}\""));
    if name == "password" {
        return error.hint("a password is given in password_file, or in the variable WAVETANK_PASSWORD");
    }
    match nearest(name, Args::NAMES.iter().copied()) {
        Some(known) => error.hint(format!("did you mean {known}?")),
        None => error.hint(HINT),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        Args::from_toml(text, "kv.toml").unwrap_err().to_string()
    }

    #[test]
    fn every_way_to_write_a_tier_is_read() {
        let text = r#"
            host = "127.0.0.1"
            l1_size_gb = 0.5
            l2 = ["buffered:/a:1GiB"]
            quota = { alice = "1GiB" }
            l2_prefetch_policy = "retain"
            [[l2_adapter]]
            type = "mock"
            max_size_gb = 1
        "#;
        let args = Args::from_toml(text, "kv.toml").unwrap();
        assert_eq!((args.l1_size_gb, args.port), (Some(0.5), None));
        assert_eq!(args.l2_adapter.unwrap()[0].text(), r#"{"max_size_gb":1,"type":"mock"}"#);
        assert_eq!(args.quota.unwrap()["alice"], "1GiB");
    }

    /// Broken by: keys looked at after their values, a line that is counted from zero, or a name that is not
    /// the nearest.
    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let unknown = told("port = 1\n\nl1_sise_gb = 2\n");
        assert_eq!(unknown, "kv.toml:3: unknown key \"l1_sise_gb\"\nhint: did you mean l1_size_gb?");
        assert!(told("http-port = 1").ends_with("did you mean http_port?"));
        assert!(told("password = \"x\"").contains("WAVETANK_PASSWORD"));
        assert!(told("wholly_other_thing = 1").ends_with("l1_size_gb = 100"));
        assert!(told("port = 1\nport = 2").starts_with("kv.toml:2: duplicate key"));
        assert!(
            told("\nport = \"x\"").starts_with("kv.toml:2: invalid type: string \"x\""),
            "{}",
            told("\nport = \"x\"")
        );
        assert!(told("port = ").starts_with("kv.toml:1: "));
    }

    #[test]
    fn flags_win_over_the_file() {
        let file = Args { port: Some(1), http_port: Some(2), ..Args::default() };
        let typed = Args { port: Some(3), ..Args::default() };
        let both = typed.over(file);
        assert_eq!((both.port, both.http_port, both.host), (Some(3), Some(2), None));
    }
}
