//! An entry written and read as a storage tier does it, in a folder of its own that goes again.

use std::path::Path;

use wavetank_cache::{Rules, eviction};
use wavetank_model::{Error, Result};
use wavetank_store::backends::{self, Site};
use wavetank_store::{Done, Existing, Key, Lane, Outcome, Payload, Put, Store, Tier, Want};

/// What is written: as much as one request of the kernel takes.
const BYTES: u64 = 1 << 20;
const SEED: u64 = 1;
/// What everything of ours is in.
const PREFIX: &str = "wavetank-doctor-";

/// Writes an entry in `directory` past the page cache, reads it, and removes all of it. What the file system
/// does not do comes back; an error says what does not work at all.
pub(super) fn direct(directory: &Path) -> Result<Vec<String>> {
    let refused = |error: std::io::Error| Error::usage(format!("cannot write here: {error}"));
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(directory).map_err(refused)?;
    let location = folder.path().to_str().ok_or_else(|| Error::usage("the directory's name is not UTF-8"))?;
    // Whether there is io_uring is another question.
    let options = [("engine", "threads")].into_iter().collect();
    let site = Site { location: location.to_owned(), capacity_bytes: None, options };
    let notes = written_and_read(&site)?;
    folder.close().map_err(|error| Error::usage(format!("what was written cannot be removed: {error}")))?;
    Ok(notes)
}

fn written_and_read(site: &Site) -> Result<Vec<String>> {
    let tier = Tier {
        backend: backends::open("direct", site)?,
        capacity_bytes: None,
        eviction: (eviction::policy("lru")?.build)(&eviction::Settings::default())?,
    };
    let store = Store::open(vec![tier], Rules::default())?;
    let failed = |error: std::io::Error| Error::usage(format!("an entry cannot be moved: {error}"));
    let mut lane = store.lane(1).map_err(failed)?;
    let key = Key::from("doctor");
    let payload = Payload::Seeded { seed: SEED, bytes: BYTES };
    lane.put(Put { key: key.clone(), payload, tenant: 0, existing: Existing::Keep });
    ended(&mut lane)?;
    lane.get(key, Want::Bytes);
    let read = ended(&mut lane)?.data.unwrap_or_default();
    let mut written = vec![0; BYTES as usize];
    wavetank_store::payload::fill(SEED, 0, &mut written);
    if read != written {
        return Err(Error::usage("other bytes were read than had been written")
            .hint("look into the kernel's log (dmesg) and at the drive (smartctl -a)"));
    }
    Ok(store.notes())
}

/// The operation that is pending, once it went well.
fn ended(lane: &mut Lane) -> Result<Done> {
    let done = lane.wait().ok_or_else(|| Error::usage("an entry was asked for and never came"))?;
    match done.outcome {
        Outcome::Stored(_) | Outcome::Hit(_) => Ok(done),
        Outcome::Failed(error) => Err(Error::usage(format!("an entry cannot be moved: {error}"))),
        other => Err(Error::usage(format!("an entry was not kept: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a file or folder of ours that stays.
    #[test]
    fn nothing_stays_where_it_was_tried() {
        let folder = tempfile::tempdir().unwrap();
        // A temporary directory may be on a file system that has no O_DIRECT.
        match direct(folder.path()) {
            Ok(notes) => assert!(notes.iter().all(|note| !note.contains("io_uring")), "{notes:?}"),
            Err(refused) => assert!(refused.to_string().contains("O_DIRECT"), "{refused}"),
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn where_nobody_may_write_is_said() {
        let refused = direct(Path::new("/proc")).unwrap_err();
        assert!(refused.to_string().starts_with("cannot write here: "), "{refused}");
    }
}
