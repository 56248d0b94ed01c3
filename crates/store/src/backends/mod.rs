//! What holds bytes: one file per backend, one row each in [`ALL`].

mod buffered;
mod cuda;
mod direct;
mod gpu_sim;
mod memory;
mod null;
mod object;
mod redis;

use std::sync::Arc;

use wavetank_model::{Error, Result, described, find};

use crate::backend::{Backend, Caps, Location};
use crate::options::Options;
pub use cuda::{DeviceMemory, device_memory, devices as gpu_devices};
pub use memory::{BACKED, backed_bytes};

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// What it can do.
    pub caps: Caps,
    /// The options it takes besides `capacity`, with a line each.
    pub options: &'static [(&'static str, &'static str)],
    /// Opens one at a site that was checked.
    open: fn(&Site) -> Result<Arc<dyn Backend>>,
}

described!(Entry);

/// Where a backend is and how it works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// A directory, device number or address; empty where there is none.
    pub location: String,
    /// How many bytes of entries it may hold; no limit when absent.
    pub capacity_bytes: Option<u64>,
    /// Its options by name; only those of its row.
    pub options: Options,
}

impl Site {
    /// The option `name` as a `T`, or `default`.
    pub fn option<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T> {
        self.options.option(name, default)
    }
}

/// Every backend, alphabetical. `wavetank list backends` prints this table.
pub const ALL: &[Entry] = &[
    buffered::ENTRY,
    cuda::ENTRY,
    direct::ENTRY,
    gpu_sim::ENTRY,
    memory::ENTRY,
    null::ENTRY,
    object::ENTRY,
    redis::ENTRY,
];

/// The backend called `name`.
pub fn backend(name: &str) -> Result<&'static Entry> {
    find("backend", ALL, name)
}

/// Opens a backend; what it does not take is refused here.
pub fn open(name: &str, site: &Site) -> Result<Arc<dyn Backend>> {
    let entry = backend(name)?;
    site.options.only(name, entry.options)?;
    match (entry.caps.location, site.location.is_empty()) {
        (Location::Directory, true) => Err(Error::usage(format!("{name}: no directory is given"))),
        (Location::Url, true) => Err(Error::usage(format!("{name}: no address is given"))),
        (Location::None, false) => {
            Err(Error::usage(format!("{name} takes no location, not \"{}\"", site.location)))
        }
        _ => (entry.open)(site),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_backend_does_not_take_is_refused() {
        let refusal = |name: &str, location: &str, options: &[(&str, &str)]| {
            let options = options.iter().copied().collect();
            let site = Site { location: location.to_owned(), capacity_bytes: Some(1 << 20), options };
            open(name, &site).err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert_eq!(refusal("memory", "", &[]), "");
        assert_eq!(refusal("direct", "", &[]), "direct: no directory is given");
        assert_eq!(refusal("memory", "/tmp", &[]), "memory takes no location, not \"/tmp\"");
        assert_eq!(
            refusal("memory", "", &[("blok", "4096")]),
            "memory has no option \"blok\"\nhint: known: block, backed"
        );
        assert!(
            refusal("direkt", "", &[]).starts_with("unknown backend \"direkt\"\nhint: known: buffered, ")
        );
    }
}
