//! The recorder with a scribe of numbers: what is noted is in the file or counted as missing.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use wavetank_model::{KeyFamily, Nanos, ObjectKey, Recorded, StorageCall};

use super::*;
use crate::Input;
use crate::calls::CallReader;
use crate::calls::lct::{FRAME_LIMIT, Header, LctOptions, Reader};

/// A number is a key at that time. Holds the pen until it is told to go on, if there is someone to tell it.
struct Numbers {
    begun: u64,
    held: Option<Receiver<()>>,
}

impl Scribe<u64> for Numbers {
    fn begin(&mut self, keys: &mut KeyTable) {
        assert!(keys.is_empty());
        self.begun += 1;
    }

    fn write(&mut self, note: u64, page: &mut Page<'_>) {
        if let Some(held) = self.held.take() {
            held.recv().unwrap();
        }
        let family = KeyFamily { model_name: "m", kv_rank: 1, object_group_id: 0, cache_salt: "" };
        let key = page.keys.key_id(ObjectKey { chunk_hash: &note.to_be_bytes(), family });
        page.record(&Recorded::plain(Nanos(note), StorageCall::FinishWrite { keys: [key].into() }));
    }
}

fn start(path: &Path, held: Option<Receiver<()>>, room: usize, options: LctOptions) -> Recordist<u64> {
    let recording = Recording::buffered(path, Header::storage(0.0, String::new()), options).unwrap();
    Recordist::start(recording, Numbers { begun: 0, held }, room).unwrap()
}

/// Numbers and gaps in the order of the file.
fn read(path: &Path) -> Vec<Result<u64, u64>> {
    let mut reader = Reader::open(&Input::File(path.to_owned()), FRAME_LIMIT).unwrap();
    let mut found = Vec::new();
    while let Some(recorded) = reader.advance().unwrap() {
        found.push(match recorded.call {
            StorageCall::FinishWrite { keys } => {
                let hash = reader.keys().key(keys[0]).chunk_hash.try_into().unwrap();
                Ok(u64::from_be_bytes(hash))
            }
            StorageCall::Gap { lost } => Err(lost),
            other => panic!("{other:?}"),
        });
    }
    let survey = reader.survey();
    assert!(survey.cut.is_none() && survey.damaged.reasons.is_empty());
    found
}

/// Several threads note; each one's notes are in the file in its order, and a table that is forgotten on the
/// way changes nothing. Broken by: a batch left behind at the end, keys numbered across pages.
#[test]
fn every_note_is_in_the_file_once() {
    const EACH: u64 = 100_000;
    let folder = tempfile::tempdir().unwrap();
    for name in ["all.lct", "all.lct.zst"] {
        let path = folder.path().join(name);
        let recordist = start(&path, None, 1 << 20, LctOptions::default());
        thread::scope(|scope| {
            for thread in 0..2 {
                let recorder = recordist.recorder();
                scope.spawn(move || (0..EACH).for_each(|n| recorder.note(|| thread * EACH + n)));
            }
        });
        let late = recordist.recorder();
        let kept = recordist.finish().unwrap();
        late.note(|| unreachable!("it is closed"));
        assert_eq!((kept.written.calls, kept.lost(), &kept.failure), (2 * EACH, 0, &None));
        let found: Vec<u64> = read(&path).into_iter().map(Result::unwrap).collect();
        for thread in 0..2 {
            let of_thread = found.iter().filter(|n| **n / EACH == thread).copied();
            assert!(of_thread.eq(thread * EACH..(thread + 1) * EACH), "{name}: {thread}");
        }
    }
}

/// Broken by: a mark elsewhere than behind the last note that was kept, a note that waits, a wrong count.
#[test]
fn what_finds_the_queue_full_is_counted_where_it_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.lct");
    let (go_on, held) = channel();
    let recordist = start(&path, Some(held), 4, LctOptions::default());
    let recorder = recordist.recorder();
    // The writer takes the first one and is held; the queue takes four more.
    recorder.note(|| 0);
    while recordist.queue.waiting() > 0 {
        thread::yield_now();
    }
    (1..8).for_each(|n| recorder.note(|| n));
    go_on.send(()).unwrap();
    while recordist.queue.waiting() > 0 {
        thread::yield_now();
    }
    recorder.note(|| 9);
    let kept = recordist.finish().unwrap();
    assert_eq!(read(&path), [Ok(0), Ok(1), Ok(2), Ok(3), Ok(4), Err(3), Ok(9)]);
    assert_eq!((kept.written.calls, kept.overrun, kept.lost()), (6, 3, 3));
}

/// Others read what was noted while nobody ends the recording. Broken by: a buffer that is kept until then.
#[test]
fn what_was_noted_is_soon_readable() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["soon.lct", "soon.lct.zst"] {
        let path = folder.path().join(name);
        let recordist = start(&path, None, ROOM, LctOptions::default());
        let recorder = recordist.recorder();
        recorder.note(|| 7);
        let found = || {
            let mut reader = Reader::open(&Input::File(path.clone()), FRAME_LIMIT).ok()?;
            reader.advance().ok()?
        };
        while found().is_none() {
            thread::yield_now();
        }
    }
}

/// Broken by: counts that are told only at the end, or that lack what is lost while nothing is written.
#[test]
fn what_was_written_is_told_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("meanwhile.lct");
    let options = LctOptions { cap_bytes: Some(4096), ..LctOptions::default() };
    let recordist = start(&path, None, ROOM, options);
    let recorder = recordist.recorder();
    let begun = recorder.so_far();
    assert_eq!(
        (begun.written.files.as_slice(), begun.written.calls, begun.end()),
        ([path.clone()].as_slice(), 0, None)
    );
    recorder.note(|| 7);
    while recorder.so_far().written.calls == 0 {
        thread::yield_now();
    }
    let first = recorder.so_far();
    assert_eq!((first.written.bytes, first.end()), (std::fs::metadata(&path).unwrap().len(), None));
    (0..1000).for_each(|n| recorder.note(|| n));
    while recorder.so_far().written.calls + recorder.so_far().lost() < 1001 {
        thread::yield_now();
    }
    let (told, kept) = (recorder.so_far(), recordist.finish().unwrap());
    assert_eq!((told.written.calls, told.lost()), (kept.written.calls, kept.lost()));
    assert_eq!(told.end(), Some("its largest size was reached"));
}

/// Broken by: a full disk that ends the process, blocks who notes, or is not told.
#[test]
fn a_file_that_cannot_be_written_ends_the_recording_alone() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    // Its header is written with the first batch.
    let recording = Recording::unflushed(full, Header::storage(0.0, String::new()), LctOptions::default());
    let recordist = Recordist::start(recording.unwrap(), Numbers { begun: 0, held: None }, 16).unwrap();
    let recorder = recordist.recorder();
    (0..100).for_each(|n| recorder.note(|| n));
    while recorder.so_far().lost() < 100 {
        thread::yield_now();
    }
    assert!(recorder.so_far().end().is_some_and(|why| why.contains("cannot write")));
    let kept = recordist.finish().unwrap();
    assert!(kept.failure.is_some_and(|why| why.contains("cannot write")));
    assert_eq!((kept.written.calls, kept.overrun), (0, 100));
}

/// Broken by: a batch that is counted as lost though the beginning of it is in the file.
#[test]
fn what_is_in_the_file_of_a_batch_that_failed_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.lct");
    let (go_on, held) = channel();
    let options = LctOptions { rotate_bytes: Some(3 << 20), ..LctOptions::default() };
    let recordist = start(&path, Some(held), ROOM, options);
    let recorder = recordist.recorder();
    (0..40_000).for_each(|n| recorder.note(|| n));
    // Somebody else has the name under which it would go on.
    std::fs::write(folder.path().join("broken.2.lct"), "mine").unwrap();
    go_on.send(()).unwrap();
    while recorder.so_far().end().is_none() {
        thread::yield_now();
    }
    let kept = recordist.finish().unwrap();
    assert!(kept.written.calls > 1000 && kept.failure.is_some(), "{kept:?}");
    assert_eq!(kept.written.calls + kept.lost(), 40_000);
    assert!(read(&path).len() as u64 >= kept.written.calls);
}

/// Broken by: a call above the largest size that is not among those lost.
#[test]
fn what_is_above_the_largest_size_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capped.lct");
    let options = LctOptions { cap_bytes: Some(4096), ..LctOptions::default() };
    let recordist = start(&path, None, 64, options);
    let recorder = recordist.recorder();
    (0..1000).for_each(|n| recorder.note(|| n));
    let kept = recordist.finish().unwrap();
    assert_eq!(kept.written.calls + kept.lost(), 1000);
    let marked: u64 = read(&path).into_iter().filter_map(Result::err).sum();
    assert_eq!(marked, kept.lost());
}
