//! The terminal as a screen: taken from the shell, and given back whatever happens.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;

/// Whether the terminal is ours.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// Held while something is drawn, so that nothing of it comes after the terminal was given back.
static DRAWING: Mutex<()> = Mutex::new(());

/// A terminal that is ours.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

/// What became of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawn {
    Shown,
    /// The terminal was given back before.
    TooLate,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Self> {
        give_back_on_panic();
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::Relaxed);
        let entered = execute!(stdout(), EnterAlternateScreen, Hide);
        let terminal = entered.and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        terminal.map(|terminal| Self { terminal }).inspect_err(|_| give_back())
    }

    /// Shows what `picture` draws; its size is what the terminal has now.
    pub(super) fn draw(&mut self, picture: impl FnOnce(Rect, &mut Buffer)) -> io::Result<Drawn> {
        let _drawing = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
        if !IS_TAKEN.load(Ordering::Relaxed) {
            return Ok(Drawn::TooLate);
        }
        self.terminal.draw(|frame| picture(frame.area(), frame.buffer_mut()))?;
        Ok(Drawn::Shown)
    }
}

/// Gives the terminal back, if it was taken: to be called before anything else is written to it.
pub(crate) fn give_back() {
    let _drawing = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
    restore();
}

fn restore() {
    if IS_TAKEN.swap(false, Ordering::Relaxed) {
        // A terminal that is gone needs nothing.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Whoever panics is read on the terminal as it was. It may be who draws, so nobody is waited for.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |why| {
            restore();
            before(why);
        }));
    });
}
