//! `cuda`: entries in the memory of an NVIDIA GPU, through the driver API, found at run time.
//!
//! The capacity is allocated at once and handed out in blocks. Buffers are pinned, so that pieces go between
//! them and the device without passing through the driver's own.

#![allow(unsafe_code)]

mod driver;
mod port;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use wavetank_model::{Error, Result};

use self::driver::{Context, Memory};
use self::port::CudaPort;
use super::{Entry, Site};
use crate::backend::{Backend, Caps, Location, Port};
use crate::blocks::Blocks;
use crate::buffer::Region;

pub(super) const ENTRY: Entry = Entry {
    name: "cuda",
    about: "the memory of an NVIDIA GPU",
    caps: Caps { keeps_bytes: true, survives: false, inline: false, location: Location::Device },
    options: &[("block", "bytes of one block of device memory, 4096 unless given")],
    open,
};

/// Entries are a few hundred kilobytes to gigabytes: little is lost in the last block.
const BLOCK_BYTES: usize = 4096;
/// `cuMemAlloc` aligns to 256 bytes; copies between aligned addresses are the fast ones.
const BLOCK_ALIGN: usize = 256;

fn open(site: &Site) -> Result<Arc<dyn Backend>> {
    let number = match site.location.as_str() {
        "" => 0,
        text => text.parse().map_err(|_| {
            Error::usage(format!("cuda: \"{text}\" is not a device")).hint("give its number: 0, 1, …")
        })?,
    };
    let block = site.option("block", BLOCK_BYTES)?;
    if block == 0 || !block.is_multiple_of(BLOCK_ALIGN) {
        return Err(Error::usage(format!("option block: must be a multiple of {BLOCK_ALIGN} above 0")));
    }
    let Some(capacity) = site.capacity_bytes else {
        return Err(Error::usage("cuda: no capacity is given")
            .hint("device memory is allocated at once: say how much of it"));
    };
    let many = || Error::usage("cuda: too many blocks").hint("give a larger block or a smaller capacity");
    let blocks = Blocks::new(capacity, capacity, block).ok_or_else(many)?;
    let context = Context::open(number)?;
    let memory = Memory::new(&context, blocks.bytes())?;
    Ok(Arc::new(Cuda { memory, context, blocks, notes: Mutex::default() }))
}

/// How much memory a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// What nobody uses.
    pub free_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
}

/// The memory of NVIDIA device `number`; an error says what is missing.
pub fn device_memory(number: u32) -> Result<DeviceMemory> {
    let number = i32::try_from(number).map_err(|_| Error::usage("cuda: no such device"))?;
    let (free_bytes, total_bytes) = Context::open(number)?.memory()?;
    Ok(DeviceMemory { free_bytes, total_bytes })
}

/// The memory of every NVIDIA device that can be used; an error says what is missing.
pub fn devices() -> Result<Vec<DeviceMemory>> {
    let count = driver::device_count()?;
    (0..count.unsigned_abs()).map(device_memory).collect()
}

struct Cuda {
    memory: Memory,
    context: Arc<Context>,
    blocks: Arc<Blocks>,
    notes: Mutex<Vec<String>>,
}

impl Backend for Cuda {
    fn port(self: Arc<Self>, region: &Arc<Region>, _: usize) -> io::Result<Box<dyn Port>> {
        let (port, unpinned) = CudaPort::new(Arc::clone(&self), region)?;
        if let Some(why) = unpinned {
            let note = format!("{why}: buffers are not pinned, copies are slower");
            let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        Ok(Box::new(port))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use wavetank_model::ErrorKind;

    use super::*;
    use crate::backend::{Completion, NewEntry, Piece};
    use crate::buffer::{Mover, PIECE};
    use crate::{Key, payload};

    fn site(location: &str, capacity: Option<u64>) -> Site {
        Site { location: location.to_owned(), capacity_bytes: capacity, ..Site::default() }
    }

    fn refusal(site: &Site) -> Error {
        open(site).err().expect("it is refused")
    }

    #[test]
    fn what_cannot_be_is_said_before_the_driver_is_asked() {
        assert!(refusal(&site("first", Some(1))).to_string().starts_with("cuda: \"first\" is not a device"));
        assert!(refusal(&site("", None)).to_string().starts_with("cuda: no capacity is given"));
        assert!(refusal(&site("", Some(u64::MAX))).to_string().starts_with("cuda: too many blocks"));
        let mut odd = site("", Some(1));
        odd.options = [("block", "1000")].into_iter().collect();
        assert!(refusal(&odd).to_string().starts_with("option block: must be a multiple of 256"));
    }

    #[test]
    fn a_device_says_how_much_it_has_or_what_is_missing() {
        match device_memory(0) {
            Ok(memory) => {
                assert!(memory.free_bytes <= memory.total_bytes && memory.total_bytes > 0);
                assert_eq!(devices().unwrap()[0].total_bytes, memory.total_bytes);
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Unsupported);
                assert_eq!(devices().unwrap_err().to_string(), e.to_string());
            }
        }
    }

    /// Without a driver the error, with one the bytes.
    #[test]
    fn entries_come_back_or_the_driver_is_missing() {
        let cuda = match open(&site("", Some(64 << 20))) {
            Ok(cuda) => cuda,
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Unsupported);
                assert!(e.to_string().contains("NVIDIA") && e.to_string().contains("gpu_sim"), "{e}");
                return;
            }
        };
        assert!(refusal(&site("4711", Some(1))).to_string().starts_with("cuda: there is no device 4711"));
        assert!(refusal(&site("", Some(1 << 45))).to_string().contains("bytes are free"));
        let region = Region::new(4).unwrap();
        let mut port = Arc::clone(&cuda).port(&region, 4).unwrap();
        assert_eq!(cuda.notes(), [""; 0]);
        let sizes = [PIECE, PIECE, 1000];
        let bytes = sizes.iter().sum::<usize>() as u64;
        let entry = NewEntry { key: &Key::from("k"), bytes, recipe: None, birth: Default::default() };
        let held = port.create(&entry).unwrap();
        let offsets = [0, PIECE, 2 * PIECE].map(|offset| offset as u64);
        let pieces = [0, 1, 2].map(|i| Piece { token: i as u64, offset: offsets[i], len: sizes[i] });
        for piece in pieces {
            let mut buffer = region.take(Mover::Device).unwrap();
            payload::fill(5, piece.offset, &mut buffer.payload_mut()[..piece.len]);
            port.write(&held, piece, buffer, None);
        }
        drop(finished(&mut *port));
        let held = port.commit(held).unwrap();
        for piece in pieces {
            let mut buffer = region.take(Mover::Device).unwrap();
            buffer.payload_mut().fill(0);
            port.read(&held, piece, buffer);
        }
        let mut expected = vec![0; PIECE];
        for done in finished(&mut *port) {
            let piece = pieces[done.token as usize];
            payload::fill(5, piece.offset, &mut expected[..piece.len]);
            assert!(done.result.is_ok() && done.buffer.payload()[..piece.len] == expected[..piece.len]);
        }
        port.read(&held, pieces[0], region.take(Mover::Device).unwrap());
        drop(port);
        let buffers: Vec<_> = std::iter::from_fn(|| region.take(Mover::Device)).collect();
        assert_eq!(buffers.len(), 4, "the port gave back what was on its way");
    }

    fn finished(port: &mut dyn Port) -> Vec<Completion> {
        let mut done = Vec::new();
        while port.in_flight() > 0 {
            port.reap(Some(Instant::now() + Duration::from_secs(5)), &mut done).unwrap();
        }
        done
    }
}
