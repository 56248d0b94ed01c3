//! What is measured as users name it: a directory, a backend without a place, a device, an address.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use wavetank_model::{Error, Result, without_login};
use wavetank_store::backend::Location;
use wavetank_store::backends::{self, Entry};

/// The backend of a directory unless another is asked for.
const OF_DIRECTORIES: &str = "direct";
/// The backend of addresses.
const OF_ADDRESSES: (&str, &str) = ("s3://", "object");
const TARGETS: &str = "name a directory that is there, memory, cuda or s3://bucket/prefix";
/// What everything of ours is in.
const PREFIX: &str = "wavetank-profile-";

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The backend.
    pub(super) backend: &'static str,
    /// Where it is.
    pub(super) site: Where,
}

/// Where a backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// Nowhere in particular.
    Here,
    /// On a device with this number.
    Device(String),
    /// In a directory that is there.
    Directory(PathBuf),
    /// At an address.
    Address(String),
}

impl Target {
    /// Reads what was typed; `backend` is another one than is usual for a directory.
    pub(super) fn read(typed: &str, backend: Option<&str>) -> Result<Self> {
        let (name, rest) = typed.split_once(':').unwrap_or((typed, ""));
        let named = backends::ALL.iter().find(|entry| entry.name == name && is_named(entry, rest));
        let (entry, site) = match named {
            Some(entry) if entry.caps.location == Location::Device => (entry, Where::Device(rest.to_owned())),
            Some(entry) => (entry, Where::Here),
            None if typed.contains("://") => (address(typed)?, Where::Address(typed.to_owned())),
            None => directory(typed, backend.unwrap_or(OF_DIRECTORIES))?,
        };
        if let Some(other) = backend.filter(|other| *other != entry.name) {
            let what = format!("{other} is not for {}", without_login(typed));
            let hint = format!("leave it out: it is {}", entry.name);
            return Err(Error::usage(what).at("--backend").hint(hint));
        }
        if !entry.caps.keeps_bytes {
            return Err(Error::usage(format!("{} holds no bytes: nothing is measured", entry.name))
                .at(typed)
                .hint(TARGETS));
        }
        Ok(Self { backend: entry.name, site })
    }

    /// What the profile says of it.
    pub(super) fn shown(&self) -> String {
        match &self.site {
            Where::Here => String::new(),
            Where::Device(number) => number.clone(),
            Where::Directory(path) => path.display().to_string(),
            Where::Address(address) => without_login(address),
        }
    }

    /// A place of our own there, which nobody else uses.
    pub(super) fn place(&self) -> Result<Place> {
        Ok(match &self.site {
            Where::Here => Place::Named(String::new()),
            Where::Device(number) => Place::Named(number.clone()),
            Where::Directory(path) => {
                let own = tempfile::Builder::new().prefix(PREFIX).tempdir_in(path);
                Place::Folder(own.map_err(|error| unusable(path, &error))?)
            }
            Where::Address(address) => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
                let own = format!("{PREFIX}{}-{since}", std::process::id());
                Place::Named(format!("{}/{own}", address.trim_end_matches('/')))
            }
        })
    }
}

/// Whether its name, and `rest` behind it, say where it is.
fn is_named(entry: &Entry, rest: &str) -> bool {
    match entry.caps.location {
        Location::None => rest.is_empty(),
        Location::Device => true,
        Location::Directory | Location::Url => false,
    }
}

fn address(typed: &str) -> Result<&'static Entry> {
    let (scheme, name) = OF_ADDRESSES;
    if typed.starts_with(scheme) {
        return backends::backend(name);
    }
    Err(Error::usage("is no address of a backend that is measured")
        .at(without_login(typed))
        .hint(format!("addresses begin with {scheme}; {TARGETS}")))
}

fn directory(typed: &str, backend: &str) -> Result<(&'static Entry, Where)> {
    let entry = backends::backend(backend).map_err(|error| error.at("--backend"))?;
    if entry.caps.location != Location::Directory {
        let what = format!("{backend} does not keep entries in a directory");
        return Err(Error::usage(what).at("--backend").hint("for a directory: direct, buffered"));
    }
    let wrong = |what: String| Error::usage(what).at(typed).hint(TARGETS);
    let path = Path::new(typed).canonicalize().map_err(|error| wrong(format!("cannot be used: {error}")))?;
    if !path.is_dir() {
        return Err(wrong("is not a directory".to_owned()));
    }
    Ok((entry, Where::Directory(path)))
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    Error::usage(format!("cannot write here: {error}"))
        .at(path.display().to_string())
        .hint("name a directory that may be written to")
}

/// A place of our own.
pub(super) enum Place {
    /// A folder that goes when this does.
    Folder(TempDir),
    /// What a backend is told.
    Named(String),
}

impl Place {
    /// As the backend is told.
    pub(super) fn location(&self) -> String {
        match self {
            Self::Folder(folder) => folder.path().display().to_string(),
            Self::Named(name) => name.clone(),
        }
    }

    /// Takes away what is there of ours.
    pub(super) fn close(self) -> Result<()> {
        let Self::Folder(folder) = self else { return Ok(()) };
        let path = folder.path().to_owned();
        let kept = |error| Error::usage(format!("cannot be removed: {error}")).at(path.display().to_string());
        folder.close().map_err(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a backend's name that is taken for a directory, or the other way round.
    #[test]
    fn what_is_typed_names_a_backend_and_a_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let typed = path.to_str().unwrap();
        let read = |typed: &str, backend: Option<&str>| {
            Target::read(typed, backend)
                .map(|target| (target.backend, target.shown()))
                .map_err(|error| error.to_string())
        };
        assert_eq!(read("memory", None), Ok(("memory", String::new())));
        assert_eq!(read("cuda:1", None), Ok(("cuda", "1".to_owned())));
        assert_eq!(read("s3://b/p", None), Ok(("object", "s3://b/p".to_owned())));
        assert_eq!(read(typed, None), Ok(("direct", typed.to_owned())));
        assert_eq!(read(typed, Some("buffered")), Ok(("buffered", typed.to_owned())));
        for (typed, backend, told) in [
            ("nowhere", None, "nowhere: cannot be used: "),
            ("memory:0", None, "memory:0: cannot be used: "),
            ("null", None, "null: null holds no bytes"),
            ("redis://u:p@h", None, "redis://…@h: is no address"),
            (typed, Some("memory"), "--backend: memory does not keep entries in a directory"),
            ("memory", Some("direct"), "--backend: direct is not for memory"),
        ] {
            let error = read(typed, backend).unwrap_err();
            assert!(error.starts_with(told), "{error}");
        }
    }

    /// Broken by: a directory that cannot be written to, told without its name or what to do.
    #[test]
    fn a_directory_that_cannot_be_written_to_is_refused() {
        // Nobody may, root included.
        let site = Where::Directory(PathBuf::from("/proc"));
        let refused = Target { backend: OF_DIRECTORIES, site }.place().err().unwrap();
        assert!(refused.to_string().starts_with("/proc: cannot write here: "), "{refused}");
        assert!(refused.advice().is_some(), "{refused:?}");
    }

    /// Broken by: entries that are stored in the directory itself, or a folder that stays.
    #[test]
    fn a_place_in_a_directory_is_its_own_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::read(folder.path().to_str().unwrap(), None).unwrap();
        let place = target.place().unwrap();
        assert!(Path::new(&place.location()).parent() == Some(&folder.path().canonicalize().unwrap()));
        std::fs::write(Path::new(&place.location()).join("x"), "x").unwrap();
        place.close().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
