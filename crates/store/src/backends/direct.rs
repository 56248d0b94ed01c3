//! `direct`: one file per entry, past the page cache (O_DIRECT), through one io_uring per thread.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use wavetank_model::Result;

use super::{Entry, Site};
use crate::backend::{Backend, Caps, Found, Location, Port, Recovery};
use crate::buffer::Region;
use crate::files::Files;
use crate::folder::{Folder, Manner};
use crate::recover::recover;
use crate::ring::{Buffers, RingPort};
use crate::threads::ThreadPort;

pub(super) const ENTRY: Entry = Entry {
    name: "direct",
    about: "files past the page cache: O_DIRECT through io_uring",
    caps: Caps { keeps_bytes: true, survives: true, inline: false, location: Location::Directory },
    options: &[
        ("buffers", "registered with the kernel, or plain; registered where the limit allows unless given"),
        ("durable", "true: an entry is written when it would survive a power cut; false unless given"),
        ("engine", "io_uring, or threads for pread and pwrite; io_uring where it works unless given"),
    ],
    open,
};

struct Direct {
    folder: Arc<Folder>,
    engine: Engine,
    buffers: Buffers,
    notes: Mutex<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    Ring,
    Threads,
}

fn open(site: &Site) -> Result<Arc<dyn Backend>> {
    let engine =
        site.options.choice("engine", &[("io_uring", Engine::Ring), ("threads", Engine::Threads)])?;
    let known = [("registered", Buffers::Registered), ("plain", Buffers::Plain)];
    let buffers = site.options.choice("buffers", &known)?;
    let manner = Manner { direct: true, durable: site.option("durable", false)? };
    let folder = Folder::open(Path::new(&site.location), manner, site.capacity_bytes)?;
    folder.check_direct()?;
    Ok(Arc::new(Direct { folder, engine, buffers, notes: Mutex::default() }))
}

impl Direct {
    fn note(&self, note: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    fn threads(&self, depth: usize) -> io::Result<Box<dyn Port>> {
        let files = Files { folder: Arc::clone(&self.folder), forget: false };
        Ok(Box::new(ThreadPort::new(Arc::new(files), depth)?))
    }
}

impl Backend for Direct {
    fn port(self: Arc<Self>, region: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>> {
        if self.engine == Engine::Threads {
            return self.threads(depth);
        }
        match RingPort::new(Arc::clone(&self.folder), region, depth, self.buffers) {
            Ok((port, buffers)) => {
                if buffers != self.buffers {
                    self.note(
                        "direct: buffers are not registered (memory-lock limit): more CPU per byte".into(),
                    );
                }
                Ok(Box::new(port))
            }
            Err(e) => {
                self.note(format!(
                    "direct: io_uring is refused ({e}): threads with pread and pwrite instead"
                ));
                self.threads(depth)
            }
        }
    }

    fn recover(self: Arc<Self>, found: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
        recover(&self.folder, found)
    }

    fn trim(&self) -> io::Result<()> {
        self.folder.delete_spares()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        notes.extend(self.folder.notes());
        notes
    }
}
