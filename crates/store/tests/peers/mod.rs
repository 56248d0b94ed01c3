//! A lane that drives a backend's port by hand, for tests against real servers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod server;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wavetank_store::backend::{Backend, Completion, Found, Held, NewEntry, Piece, Port, Recovery, Seal};
use wavetank_store::backends::{self, Site};
use wavetank_store::buffer::{Mover, PIECE, Region};
use wavetank_store::{Key, Payload, checksum};

/// The sizes every backend has to bring back: around one piece, and several parts of an upload.
pub(crate) const SIZES: [u64; 6] = [0, 1, 4096, PIECE as u64, PIECE as u64 + 1, 20 * PIECE as u64 + 13];

/// How many pieces are under way at once.
const DEPTH: usize = 4;

/// One thread's way into a backend.
pub(crate) struct Lane {
    port: Box<dyn Port>,
    region: Arc<Region>,
}

impl Lane {
    pub(crate) fn new(backend: &Arc<dyn Backend>) -> Self {
        let region = Region::new(DEPTH).unwrap();
        Self { port: Arc::clone(backend).port(&region, DEPTH).unwrap(), region }
    }

    pub(crate) fn create(&mut self, key: &Key, bytes: u64) -> io::Result<Arc<dyn Held>> {
        self.port.create(&NewEntry { key, bytes, recipe: None, birth: Default::default() })
    }

    /// Writes all of an entry, its pieces in a mixed-up order, and commits it.
    pub(crate) fn put(&mut self, key: &Key, payload: &Payload) -> io::Result<Arc<dyn Held>> {
        let held = self.create(key, payload.bytes())?;
        match self.write(&held, payload) {
            Ok(()) => self.port.commit(held),
            Err(e) => {
                let _ = self.port.remove(held);
                Err(e)
            }
        }
    }

    /// Writes an entry's pieces, and waits for all of them.
    pub(crate) fn write(&mut self, held: &Arc<dyn Held>, payload: &Payload) -> io::Result<()> {
        let seal = Seal { checksum: checksum::of(&all(payload)) };
        let mut order = pieces(payload.bytes());
        // A stride that is prime to the count visits each piece once, neighbours far apart.
        let count = order.len();
        let stride = [7, 5, 3, 1].into_iter().find(|stride| !count.is_multiple_of(*stride)).unwrap_or(1);
        order = (0..count).map(|n| order[(n * stride + count / 2) % count]).collect();
        self.each(&order, |port, buffer, piece, last| {
            let mut buffer = buffer;
            payload.fill(piece.offset, &mut buffer.payload_mut()[..piece.len]);
            port.write(held, piece, buffer, last.then_some(seal));
        })
        .map(|_| ())
    }

    pub(crate) fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        self.port.commit(held)
    }

    pub(crate) fn remove(&mut self, held: Arc<dyn Held>) -> io::Result<()> {
        self.port.remove(held)
    }

    /// Reads all of an entry.
    pub(crate) fn read(&mut self, held: &Arc<dyn Held>, bytes: u64) -> io::Result<Vec<u8>> {
        let open = self.port.open(held)?;
        let order = pieces(bytes);
        let done = self.each(&order, |port, buffer, piece, _| port.read(&open, piece, buffer))?;
        let mut out = vec![0; bytes as usize];
        for completion in done {
            let piece = order[completion.token as usize];
            out[piece.offset as usize..][..piece.len].copy_from_slice(&completion);
        }
        Ok(out)
    }

    /// Queues every piece as buffers come free, and gives what each buffer held when it was done.
    fn each(
        &mut self,
        order: &[Piece],
        mut queue: impl FnMut(&mut dyn Port, wavetank_store::buffer::Buffer, Piece, bool),
    ) -> io::Result<Vec<Done>> {
        let (mut next, mut done, mut problem) = (0, Vec::new(), None);
        while next < order.len() || self.port.in_flight() > 0 {
            if next < order.len()
                && let Some(buffer) = self.region.take(Mover::Device)
            {
                let piece = order[next];
                next += 1;
                queue(&mut *self.port, buffer, piece, next == order.len());
                continue;
            }
            self.port.submit()?;
            let mut finished: Vec<Completion> = Vec::new();
            self.port.reap(Some(Instant::now() + Duration::from_secs(60)), &mut finished)?;
            for completion in finished {
                problem = problem.or(completion.result.err());
                let len = order.iter().find(|piece| piece.token == completion.token).map_or(0, |p| p.len);
                let bytes = completion.buffer.payload()[..len].to_vec();
                done.push(Done { token: completion.token, bytes });
            }
        }
        problem.map_or(Ok(done), Err)
    }
}

struct Done {
    token: u64,
    bytes: Vec<u8>,
}

impl std::ops::Deref for Done {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The pieces of an entry in order; one without bytes has one too, for the seal.
fn pieces(bytes: u64) -> Vec<Piece> {
    let count = bytes.div_ceil(PIECE as u64).max(1);
    (0..count)
        .map(|token| {
            let offset = token * PIECE as u64;
            Piece { token, offset, len: (bytes - offset).min(PIECE as u64) as usize }
        })
        .collect()
}

/// All of a payload.
pub(crate) fn all(payload: &Payload) -> Vec<u8> {
    let mut bytes = vec![0; payload.bytes() as usize];
    payload.fill(0, &mut bytes);
    bytes
}

/// A payload of this length; another seed, other bytes.
pub(crate) fn seeded(seed: u64, bytes: u64) -> Payload {
    Payload::Seeded { seed, bytes }
}

pub(crate) fn open(name: &str, site: &Site) -> Arc<dyn Backend> {
    backends::open(name, site).unwrap_or_else(|e| panic!("{e}"))
}

/// Why a backend does not open.
pub(crate) fn refusal(name: &str, site: &Site) -> String {
    match backends::open(name, site) {
        Ok(_) => panic!("it opened"),
        Err(e) => e.to_string(),
    }
}

pub(crate) fn recovered(backend: &Arc<dyn Backend>) -> (Vec<Found>, Recovery) {
    let mut found = Vec::new();
    let counts = Arc::clone(backend).recover(&mut |entry| found.push(entry)).unwrap();
    (found, counts)
}

/// Keys that no name may be made of.
pub(crate) fn weird_keys() -> Vec<Key> {
    let long = vec![b'/'; 10_000];
    let bytes: [&[u8]; 6] = [b"", b"../x", b"a\0b\r\n*", "käse/\u{202e}".as_bytes(), &[0xff, 0xfe], &long];
    bytes.into_iter().map(Key::new).collect()
}

/// What each of them has to do against its server: sizes, weird keys, overwriting, a second process.
pub(crate) fn check_life(name: &str, site: &Site, foreign: u64) {
    let backend = open(name, site);
    let mut lane = Lane::new(&backend);
    let mut written = Vec::new();
    for (seed, bytes) in SIZES.into_iter().enumerate() {
        let (key, payload) = (Key::from(format!("size {bytes}").as_str()), seeded(seed as u64, bytes));
        let held = lane.put(&key, &payload).unwrap();
        assert!(lane.read(&held, bytes).unwrap() == all(&payload), "{bytes} bytes");
        written.push((key, payload, held));
    }
    for (seed, key) in weird_keys().into_iter().enumerate() {
        let payload = seeded(100 + seed as u64, 5000);
        let held = lane.put(&key, &payload).unwrap();
        written.push((key, payload, held));
    }
    let (key, payload, held) = written.pop().unwrap();
    let newer = seeded(200, 3 * PIECE as u64);
    let again = lane.put(&key, &newer).unwrap();
    assert!(lane.read(&held, payload.bytes()).unwrap() == all(&payload), "the older is there until removed");
    lane.remove(held).unwrap();
    written.push((key, newer, again));
    let gone = lane.put(&Key::from("gone"), &seeded(0, 10)).unwrap();
    lane.remove(gone).unwrap();
    let stopped = lane.create(&Key::from("never committed"), 9 * PIECE as u64).unwrap();
    lane.write(&stopped, &seeded(0, 9 * PIECE as u64)).unwrap();
    drop(stopped);
    assert_eq!(backend.notes(), [""; 0]);
    let expected: Vec<(Key, Payload)> = written.into_iter().map(|(key, payload, _)| (key, payload)).collect();
    drop((lane, backend));
    check_second_process(name, site, &expected, foreign);
}

fn check_second_process(name: &str, site: &Site, expected: &[(Key, Payload)], foreign: u64) {
    let backend = open(name, site);
    let (found, counts) = recovered(&backend);
    assert_eq!(counts, Recovery { foreign, torn: 0, spare: 0 });
    assert_eq!(found.len(), expected.len());
    let mut lane = Lane::new(&backend);
    for (key, payload) in expected {
        let entry = found.iter().find(|entry| entry.key == *key).unwrap_or_else(|| panic!("{key:?}"));
        let bytes = all(payload);
        assert_eq!((entry.bytes, entry.checksum), (payload.bytes(), checksum::of(&bytes)), "{key:?}");
        assert!(lane.read(&entry.held, entry.bytes).unwrap() == bytes, "{key:?}");
    }
    // A later version of an entry that was found, with both left behind: the later one is served.
    let latest = found.iter().map(|entry| entry.version).max().unwrap();
    let (key, payload) = (expected[0].0.clone(), seeded(300, 77));
    drop(lane.put(&key, &payload).unwrap());
    let backend = open(name, site);
    let (again, counts) = recovered(&backend);
    assert_eq!(counts, Recovery { foreign, torn: 0, spare: 1 });
    assert_eq!(again.len(), expected.len());
    let entry = again.iter().find(|entry| entry.key == key).unwrap();
    assert!(entry.version > latest && entry.bytes == 77);
    let mut lane = Lane::new(&backend);
    assert!(lane.read(&entry.held, 77).unwrap() == all(&payload));
    for entry in again {
        lane.remove(entry.held).unwrap();
    }
    assert_eq!(recovered(&backend).0.len(), 0);
}
