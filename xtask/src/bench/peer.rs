//! The reference tool beside us: a Python module in a virtual environment that somebody else installed.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where a reference tool may be; it is never installed from here.
pub(super) struct Peer {
    pub(super) name: &'static str,
    /// The variable that names its python.
    pub(super) variable: &'static str,
    /// Its folder under `wavetank-peers` in the user's cache.
    pub(super) folder: &'static str,
    /// What `python -m` runs.
    pub(super) module: &'static str,
}

impl Peer {
    /// Its python, or a note that there is none.
    pub(super) fn program(&self, notes: &mut Vec<String>) -> Option<PathBuf> {
        let program = self.place(|name| std::env::var_os(name).filter(|value| !value.is_empty()));
        let found = program.filter(|program| program.is_file());
        if found.is_none() {
            let note =
                format!("{} is not installed here and was not measured; set {}", self.name, self.variable);
            eprintln!("{note}");
            notes.push(note);
        }
        found
    }

    fn place(&self, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let cache = || match variable("XDG_CACHE_HOME") {
            Some(cache) => Some(PathBuf::from(cache)),
            None => Some(PathBuf::from(variable("HOME")?).join(".cache")),
        };
        let installed = || Some(cache()?.join("wavetank-peers").join(self.folder).join("bin/python"));
        variable(self.variable).map(PathBuf::from).or_else(installed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Peer = Peer { name: "p", variable: "P", folder: "f", module: "m" };

    fn place(variables: &[(&str, &str)]) -> Option<String> {
        let value =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        PEER.place(value).map(|path| path.display().to_string())
    }

    #[test]
    fn the_variable_wins_over_the_cache_over_the_home_folder() {
        let all = [("P", "py"), ("XDG_CACHE_HOME", "cache"), ("HOME", "me")];
        assert_eq!(place(&all), Some("py".into()));
        assert_eq!(place(&all[1..]), Some("cache/wavetank-peers/f/bin/python".into()));
        assert_eq!(place(&all[2..]), Some("me/.cache/wavetank-peers/f/bin/python".into()));
        assert_eq!(place(&[]), None);
    }
}
