//! Ctrl-C: what was done so far is not lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use nix::sys::signal::{SigSet, Signal};
use wavetank::{Error, Result};

use crate::{output, watch};

/// The exit code after Ctrl-C, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Ctrl-C: the first ends the run with what it has, the second, or one before there is anything, the process.
pub(crate) struct Interrupt {
    /// Raised by the first one.
    pub(crate) raised: Arc<AtomicBool>,
    /// To be raised once there is something to write.
    pub(crate) loaded: Arc<AtomicBool>,
    bell: Bell,
}

impl Interrupt {
    /// From here on.
    pub(crate) fn watch() -> Result<Self> {
        Self::leaving("what was not written yet is lost")
    }

    /// The same where a second one leaves `behind` something to know about.
    pub(crate) fn leaving(behind: impl Into<String>) -> Result<Self> {
        let (raised, loaded) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let bell =
            Bell { raised: Arc::clone(&raised), loaded: Arc::clone(&loaded), behind: behind.into().into() };
        let rung = bell.clone();
        ctrlc::set_handler(move || rung.ring())
            .map_err(|error| Error::usage(format!("cannot watch for Ctrl-C: {error}")))?;
        Ok(Self { raised, loaded, bell })
    }

    /// What Ctrl-C does, for who hears of it otherwise.
    pub(crate) fn bell(&self) -> Bell {
        self.bell.clone()
    }
}

/// Does what Ctrl-C does.
#[derive(Clone)]
pub(crate) struct Bell {
    raised: Arc<AtomicBool>,
    loaded: Arc<AtomicBool>,
    behind: Arc<str>,
}

impl Bell {
    /// Once more.
    pub(crate) fn ring(&self) {
        let moment = Moment::of(&self.loaded, &self.raised);
        watch::give_back();
        output::complain(&moment.said(&self.behind));
        if moment != Moment::First {
            leave();
        }
    }
}

/// Ctrl-C, or a request to terminate, of something that runs until then: the first asks it to end and says
/// `first`, the second ends the process and says `again`.
pub(crate) fn ask_to_end(first: String, again: &'static str) -> Result<Ending> {
    let (asked, stop) = channel();
    let is_asked = AtomicBool::new(false);
    let ask = move || {
        watch::give_back();
        if is_asked.swap(true, Ordering::Relaxed) {
            output::complain(again);
            leave();
        }
        output::complain(&first);
        // Whoever is not there any more has ended already.
        let _ = asked.send(());
    };
    let ask = Arc::new(ask);
    let asked = Arc::clone(&ask);
    ctrlc::set_handler(move || asked())
        .map_err(|error| Error::usage(format!("cannot watch for Ctrl-C: {error}")))?;
    Ok(Ending { asked: stop, ask })
}

/// How something that runs until it is asked to end is asked.
pub(crate) struct Ending {
    /// By Ctrl-C, or whatever does the same.
    pub(crate) asked: Receiver<()>,
    /// Does the same.
    pub(crate) ask: Arc<dyn Fn() + Send + Sync>,
}

/// Ctrl-C of something that leaves nothing unless it is done: the first raises what is returned and says
/// `first`, the second ends the process and says `again`.
pub(crate) fn stop_flag(first: &'static str, again: &'static str) -> Result<Arc<AtomicBool>> {
    let stop = Arc::<AtomicBool>::default();
    let raise = Arc::clone(&stop);
    let handler = move || {
        if raise.swap(true, Ordering::Relaxed) {
            output::complain(again);
            leave();
        }
        output::complain(first);
    };
    ctrlc::set_handler(handler).map_err(|error| Error::usage(format!("cannot watch for Ctrl-C: {error}")))?;
    Ok(stop)
}

/// Who was started to outlive its terminal does: what watches for Ctrl-C hears of hangups, too. To be called
/// before there are threads, which take over what is blocked.
pub(crate) fn outlive_terminal() {
    if wavetank::outlives_terminal() {
        // A refusal leaves what was before: a hangup is a request to end.
        let _ = SigSet::from(Signal::SIGHUP).thread_block();
    }
}

/// When Ctrl-C comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// There is nothing to write.
    Early,
    /// There is something, and time for it.
    First,
    /// Whoever presses it does not want to wait for that.
    Again,
}

impl Moment {
    /// This one; from now on it is raised.
    fn of(loaded: &AtomicBool, raised: &AtomicBool) -> Self {
        match (loaded.load(Ordering::Relaxed), raised.swap(true, Ordering::Relaxed)) {
            (false, _) => Self::Early,
            (true, false) => Self::First,
            (true, true) => Self::Again,
        }
    }

    fn said(self, behind: &str) -> String {
        match self {
            Self::Early => "interrupted: nothing was written".to_owned(),
            Self::First => "interrupted: writing what there is".to_owned(),
            Self::Again => format!("ended at once: {behind}"),
        }
    }
}

#[expect(clippy::exit, reason = "a blocked read cannot be ended otherwise, and there is nothing to lose")]
fn leave() {
    let _held = wavetank::Draft::abandon_all();
    std::process::exit(INTERRUPTED.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a second one that is said to leave nothing, or a first one that ends the process.
    #[test]
    fn a_second_one_says_what_it_leaves() {
        let (loaded, raised) = (AtomicBool::new(true), AtomicBool::new(false));
        let press = || Moment::of(&loaded, &raised).said("entries may be left");
        assert_eq!(press(), "interrupted: writing what there is");
        assert_eq!(press(), "ended at once: entries may be left");
        loaded.store(false, Ordering::Relaxed);
        assert_eq!(press(), "interrupted: nothing was written");
    }
}
