//! What the backend needs of the CUDA driver, each thing with an owner that gives it back.
//!
//! `cudarc` looks libcuda up at run time and panics where it is absent, so [`device_count`] asks first,
//! [`Context::open`] asks that, and everything else hangs on a context. Every function used here exists since
//! CUDA 11.0.
//! Reference: the CUDA driver API, <https://docs.nvidia.com/cuda/cuda-driver-api/>.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use wavetank_model::{Error, Result};

use crate::buffer::Region;

/// `cuDevicePrimaryCtxRelease_v2`, the newest of what we call, came with it.
const CUDA_NEEDED: i32 = 11_000;
const WITHOUT: &str = "the gpu_sim backend models a GPU on any machine";

/// The primary context of one device: shared with every other user of the device in this process.
pub(super) struct Context {
    device: sys::CUdevice,
    raw: sys::CUcontext,
}

// SAFETY: a context is a handle that any thread may make current; the driver locks it itself.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The context of device `number`, or what is missing.
    pub(super) fn open(number: i32) -> Result<Arc<Self>> {
        let count = device_count()?;
        if !(0..count).contains(&number) {
            return Err(Error::usage(format!("cuda: there is no device {number}"))
                .hint(format!("devices here are numbered from 0, there are {count}")));
        }
        let device = result::device::get(number).map_err(refused)?;
        // SAFETY: the device is one the driver just gave; released once, in `drop`.
        let raw = unsafe { result::primary_ctx::retain(device) }.map_err(refused)?;
        Ok(Arc::new(Self { device, raw }))
    }

    /// Free bytes of the device, and all of them.
    pub(super) fn memory(&self) -> Result<(u64, u64)> {
        let refused = |why: String| Error::unsupported(format!("cuda: no NVIDIA device can be used: {why}"));
        self.enter().map_err(|e| refused(e.to_string()))?;
        let (free, total) = result::mem_get_info().map_err(|e| refused(text(e)))?;
        Ok((free as u64, total as u64))
    }

    /// Makes this the calling thread's context: another device's backend may have been there in between.
    pub(super) fn enter(&self) -> io::Result<()> {
        // SAFETY: the context is retained as long as `self` lives.
        unsafe { result::ctx::set_current(self.raw) }.map_err(failed)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once in `open`; whatever lives in the context holds it.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// How many devices the driver, which is started, has; an error says what is missing.
pub(super) fn device_count() -> Result<i32> {
    // SAFETY: loads and unloads a library whose initialisers do not depend on ours.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::unsupported("cuda: no NVIDIA driver: libcuda.so.1 is not found").hint(WITHOUT));
    }
    let version = driver_version().map_err(|e| refused(e).hint(WITHOUT))?;
    if version < CUDA_NEEDED {
        let has = format!("{}.{}", version / 1000, version % 1000 / 10);
        return Err(Error::unsupported(format!("cuda: the NVIDIA driver only knows CUDA {has}"))
            .hint(format!("a driver for CUDA 11.0 or later is needed; {WITHOUT}")));
    }
    result::init().map_err(|e| refused(e).hint(WITHOUT))?;
    result::device::get_count().map_err(|e| refused(e).hint(WITHOUT))
}

fn refused(error: DriverError) -> Error {
    Error::unsupported(format!("cuda: no NVIDIA device can be used: {}", text(error)))
}

fn driver_version() -> std::result::Result<i32, DriverError> {
    let mut version = 0;
    // SAFETY: writes one number; may be called before anything else.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
    Ok(version)
}

fn text(error: DriverError) -> String {
    match error.error_string() {
        Ok(words) => format!("{} ({:?})", words.to_string_lossy(), error.0),
        Err(_) => format!("{:?}", error.0),
    }
}

fn failed(error: DriverError) -> io::Error {
    io::Error::other(format!("cuda: {}", text(error)))
}

/// Memory of a device.
pub(super) struct Memory {
    base: sys::CUdeviceptr,
    context: Arc<Context>,
}

impl Memory {
    /// `bytes` of it, all at once: the plain API has no memory that is backed as it is touched.
    pub(super) fn new(context: &Arc<Context>, bytes: u64) -> Result<Self> {
        let refused = |why: String| Error::usage(format!("cuda: cannot allocate {bytes} bytes: {why}"));
        context.enter().map_err(|e| refused(e.to_string()))?;
        let (free, total) = result::mem_get_info().map_err(|e| refused(text(e)))?;
        let room = format!("{free} of the device's {total} bytes are free");
        if bytes > free as u64 {
            return Err(refused(room).hint("give a smaller capacity"));
        }
        // SAFETY: nothing reads the memory before it is written; freed once, in `drop`.
        let base = unsafe { result::malloc_sync(bytes as usize) };
        let base =
            base.map_err(|e| refused(format!("{}; {room}", text(e))).hint("give a smaller capacity"))?;
        Ok(Self { base, context: Arc::clone(context) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: allocated in `new`; every port and entry that uses it holds it.
            let _ = unsafe { result::free_sync(self.base) };
        }
    }
}

/// A queue of copies, done in order. Its users have entered its context.
pub(super) struct Stream {
    raw: sys::CUstream,
    _context: Arc<Context>,
}

impl Stream {
    pub(super) fn new(context: &Arc<Context>) -> io::Result<Self> {
        let raw = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(failed)?;
        Ok(Self { raw, _context: Arc::clone(context) })
    }

    /// Queues a copy of `from` to `place` in `memory`.
    ///
    /// # Safety
    /// Both stay, and nobody else writes to either, until the stream is past the copy.
    pub(super) unsafe fn copy_in(&self, memory: &Memory, place: u64, from: &[u8]) -> io::Result<()> {
        // SAFETY: the caller's promise; the stream lives.
        unsafe { result::memcpy_htod_async(memory.base + place, from, self.raw) }.map_err(failed)
    }

    /// Queues a copy from `place` in `memory` into `to`.
    ///
    /// # Safety
    /// Until the stream is past the copy both stay, nobody else touches `to` or writes to that place.
    pub(super) unsafe fn copy_out(&self, memory: &Memory, place: u64, to: &mut [u8]) -> io::Result<()> {
        // SAFETY: the caller's promise; the stream lives.
        unsafe { result::memcpy_dtoh_async(to, memory.base + place, self.raw) }.map_err(failed)
    }

    /// Marks what was queued so far.
    pub(super) fn mark(&self, event: &Event) -> io::Result<()> {
        // SAFETY: both live.
        unsafe { result::event::record(event.raw, self.raw) }.map_err(failed)
    }

    /// Waits for all that was queued. After an error nothing of it runs any more.
    pub(super) fn drain(&self) -> io::Result<()> {
        // SAFETY: the stream lives.
        unsafe { result::stream::synchronize(self.raw) }.map_err(failed)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once.
        let _ = unsafe { result::stream::destroy(self.raw) };
    }
}

/// A mark in a stream, to be used again and again.
pub(super) struct Event {
    raw: sys::CUevent,
    _context: Arc<Context>,
}

impl Event {
    pub(super) fn new(context: &Arc<Context>) -> io::Result<Self> {
        // An event that keeps no time costs the device nothing to write.
        let raw = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(failed)?;
        Ok(Self { raw, _context: Arc::clone(context) })
    }

    /// Whether the stream is past it; nothing while it is not.
    pub(super) fn passed(&self) -> Option<io::Result<()>> {
        // SAFETY: the event lives.
        match unsafe { result::event::query(self.raw) } {
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => None,
            outcome => Some(outcome.map_err(failed)),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once.
        let _ = unsafe { result::event::destroy(self.raw) };
    }
}

/// A lane's buffers, locked in RAM for the copy engines of all devices.
pub(super) struct Pinned {
    region: Arc<Region>,
    _context: Arc<Context>,
}

/// Where pinned regions begin, and how many ports use each: memory can be registered only once.
static PINNED: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

impl Pinned {
    pub(super) fn new(context: &Arc<Context>, region: &Arc<Region>) -> io::Result<Self> {
        let (base, len) = region.span();
        let mut pinned = PINNED.lock().unwrap_or_else(PoisonError::into_inner);
        match pinned.iter_mut().find(|(start, _)| *start == base as usize) {
            Some((_, users)) => *users += 1,
            None => {
                let flags = sys::CU_MEMHOSTREGISTER_PORTABLE;
                // SAFETY: the region's own memory, kept until it is unregistered in `drop`.
                unsafe { sys::cuMemHostRegister_v2(base.cast(), len, flags) }.result().map_err(failed)?;
                pinned.push((base as usize, 1));
            }
        }
        Ok(Self { region: Arc::clone(region), _context: Arc::clone(context) })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let (base, _) = self.region.span();
        let mut pinned = PINNED.lock().unwrap_or_else(PoisonError::into_inner);
        let index = pinned.iter().position(|(start, _)| *start == base as usize).expect("pinned in `new`");
        pinned[index].1 -= 1;
        if pinned[index].1 == 0 {
            pinned.swap_remove(index);
            // SAFETY: registered in `new`, and no port that copies from or to it is left.
            let _ = unsafe { sys::cuMemHostUnregister(base.cast()) };
        }
    }
}
