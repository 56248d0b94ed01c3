//! `buffered`: one file per entry through the page cache, synchronised before an entry counts as written.
//!
//! What most tools do, to compare with: the page cache costs two thirds of a drive's read speed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use wavetank_model::Result;

use super::{Entry, Site};
use crate::backend::{Backend, Caps, Found, Location, Port, Recovery};
use crate::buffer::Region;
use crate::files::Files;
use crate::folder::{Folder, Manner};
use crate::recover::recover;
use crate::threads::ThreadPort;

pub(super) const ENTRY: Entry = Entry {
    name: "buffered",
    about: "files through the page cache, with fsync; threads with pread and pwrite",
    caps: Caps { keeps_bytes: true, survives: true, inline: false, location: Location::Directory },
    options: &[
        ("durable", "false: an entry counts as written before it is synchronised; true unless given"),
        ("forget", "true: the page cache drops an entry before it is read; false unless given"),
    ],
    open: |site: &Site| -> Result<Arc<dyn Backend>> {
        let manner = Manner { direct: false, durable: site.option("durable", true)? };
        let folder = Folder::open(Path::new(&site.location), manner, site.capacity_bytes)?;
        let files = Files { folder, forget: site.option("forget", false)? };
        Ok(Arc::new(Buffered { files: Arc::new(files) }))
    },
};

struct Buffered {
    files: Arc<Files>,
}

impl Backend for Buffered {
    fn port(self: Arc<Self>, _: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>> {
        Ok(Box::new(ThreadPort::new(Arc::clone(&self.files), depth)?))
    }

    fn recover(self: Arc<Self>, found: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
        recover(&self.files.folder, found)
    }

    fn trim(&self) -> io::Result<()> {
        self.files.folder.delete_spares()
    }

    fn notes(&self) -> Vec<String> {
        self.files.folder.notes().into_iter().collect()
    }
}
