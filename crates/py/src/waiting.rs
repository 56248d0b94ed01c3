//! Long work beside the interpreter: others run meanwhile, Ctrl-C is heard, and how far it is is told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use pyo3::prelude::*;
use wavetank::{Error, ErrorKind, Result};

use crate::failure::{exception, panicked};

/// Between two looks at signals, or at whether work is to end.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// How long work that was asked to end may take for it. What reads a trace does not hear, and ends when it
/// has read it.
const PATIENCE: Duration = Duration::from_secs(2);

/// What work and who waits for it share.
#[derive(Default)]
pub(crate) struct Course {
    /// Raised to end the work with what it has.
    pub(crate) stop: AtomicBool,
    /// How much is done.
    pub(crate) done: AtomicU64,
    /// Of how much; 0 while that is not known.
    pub(crate) of: AtomicU64,
}

/// Does `work` on a thread of its own. `progress(done, total)` is called now and then from the thread that
/// asked; an exception in it, or Ctrl-C, ends the work and is raised.
pub(crate) fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Course) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let course = Arc::new(Course::default());
    let (tell, mut told) = sync_channel(1);
    let at_work = Arc::clone(&course);
    let thread = std::thread::Builder::new().spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&at_work)));
        // Whoever lost patience is gone.
        let _ = tell.send(result);
    });
    if let Err(error) = thread {
        let refused = Error::new(ErrorKind::Io, format!("cannot start a thread: {error}"));
        return Err(exception(py, &refused));
    }
    let mut shown = (0, 0);
    loop {
        match py.detach(|| receive(&mut told, LOOK)) {
            Some(ended) => {
                look(py, &course, progress, &mut shown)?;
                return unpack(py, ended);
            }
            None => {
                if let Err(wish) = py.check_signals().and_then(|()| look(py, &course, progress, &mut shown)) {
                    course.stop.store(true, Ordering::Relaxed);
                    py.detach(|| receive(&mut told, PATIENCE));
                    return Err(wish);
                }
            }
        }
    }
}

type Ended<T> = std::thread::Result<Result<T>>;

/// What came within `time`.
fn receive<T>(told: &mut Receiver<Ended<T>>, time: Duration) -> Option<Ended<T>> {
    match told.recv_timeout(time) {
        Ok(ended) => Some(ended),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Err(Box::new("its thread is gone"))),
    }
}

fn unpack<T>(py: Python<'_>, ended: Ended<T>) -> PyResult<T> {
    match ended {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(exception(py, &error)),
        Err(what) => Err(panicked(&*what)),
    }
}

/// Tells how far it is, where that has changed.
fn look(
    py: Python<'_>,
    course: &Course,
    progress: Option<&Bound<'_, PyAny>>,
    shown: &mut (u64, u64),
) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let now = (course.done.load(Ordering::Relaxed), course.of.load(Ordering::Relaxed));
    if now == *shown {
        return Ok(());
    }
    *shown = now;
    let (done, of) = now;
    progress.call1((done, if of == 0 { py.None() } else { of.into_pyobject(py)?.into_any().unbind() }))?;
    Ok(())
}
