//! Ctrl-C: what was done so far is not lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wavetank::{Error, Result};

use crate::output;

/// The exit code after Ctrl-C, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Ctrl-C: the first ends the run with what it has, the second, or one before there is anything, the process.
pub(crate) struct Interrupt {
    /// Raised by the first one.
    pub(crate) raised: Arc<AtomicBool>,
    /// To be raised once there is something to write.
    pub(crate) loaded: Arc<AtomicBool>,
}

impl Interrupt {
    /// From here on.
    pub(crate) fn watch() -> Result<Self> {
        let (raised, loaded) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (raise, is_loaded) = (Arc::clone(&raised), Arc::clone(&loaded));
        let handler = move || {
            if raise.swap(true, Ordering::Relaxed) || !is_loaded.load(Ordering::Relaxed) {
                output::complain("interrupted: nothing was written");
                leave();
            }
            output::complain("interrupted: writing what there is");
        };
        ctrlc::set_handler(handler)
            .map_err(|error| Error::usage(format!("cannot watch for Ctrl-C: {error}")))?;
        Ok(Self { raised, loaded })
    }
}

#[expect(clippy::exit, reason = "a blocked read cannot be ended otherwise, and there is nothing to lose")]
fn leave() {
    std::process::exit(INTERRUPTED.into());
}
