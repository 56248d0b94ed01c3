//! `--live`: a view of live workers in the terminal, drawn by a thread of its own from what gauges show, so
//! that the run never waits for it. `course` is what was seen, `draw` the picture, `screen` the terminal.

mod course;
mod draw;
mod replay;
mod screen;

use std::io::{self, IsTerminal, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use wavetank::gauges::Gauges;

use self::course::Course;
use self::draw::{View, draw};
pub(crate) use self::replay::ReplayView;
pub(crate) use self::screen::give_back;
use self::screen::{Drawn, Screen};
use crate::output;

/// Between two pictures.
const FRAME: Duration = Duration::from_millis(100);

/// What is shown.
pub(crate) struct Show {
    /// Above everything.
    pub(crate) title: String,
    /// What the workers do.
    pub(crate) gauges: Gauges,
    /// Requests of the whole run, where that is known.
    pub(crate) expected: Option<u64>,
}

/// Whether a view can be shown; a note says why not.
pub(crate) fn is_possible() -> bool {
    let is_terminal = stdout().is_terminal();
    if !is_terminal {
        output::complain("note: --live is left out: standard output is no terminal");
    }
    is_terminal
}

/// A view that is shown until it is dropped, or whoever looks at it has had enough.
pub(crate) struct LiveView {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LiveView {
    /// Takes the terminal. `end` is called when someone presses `q` or Ctrl-C, which is no signal while the
    /// terminal is taken; it has been given back by then. Nothing is shown where that is not possible.
    pub(crate) fn start(show: Show, end: impl FnOnce() + Send + 'static) -> Option<Self> {
        let screen = Screen::take();
        let complain = |error: &io::Error| output::complain(&format!("note: --live is left out: {error}"));
        let screen = screen.inspect_err(complain).ok()?;
        let is_over = Arc::<AtomicBool>::default();
        let watched = Arc::clone(&is_over);
        let work = move || {
            let closed = Viewer { screen, show, is_over: watched, scrolled: 0 }.run();
            give_back();
            if closed == Closed::ByKey {
                end();
            }
        };
        let thread = thread::Builder::new().name("view".to_owned()).spawn(work);
        let thread = thread.inspect_err(|_| give_back()).inspect_err(complain).ok()?;
        Some(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // One that has panicked has said so.
        let _ = self.thread.take().map(JoinHandle::join);
        give_back();
    }
}

/// Why a view is not shown any more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    ByKey,
    Otherwise,
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    End,
    Up,
    Down,
}

struct Viewer {
    screen: Screen,
    show: Show,
    is_over: Arc<AtomicBool>,
    scrolled: usize,
}

impl Viewer {
    fn run(mut self) -> Closed {
        let (start, mut course) = (Instant::now(), Course::default());
        while !self.is_over.load(Ordering::Relaxed) {
            let next = Instant::now() + FRAME;
            course.see(start.elapsed(), self.show.gauges.snapshot());
            let Show { title, expected, .. } = &self.show;
            let view = View { title, expected: *expected, course: &course, scrolled: self.scrolled };
            // A terminal that cannot be drawn on is none; the run goes on without.
            let Ok(Drawn::Shown) = self.screen.draw(|area, buffer| draw(&view, area, buffer)) else { break };
            if self.heed_keys(next, course.counts().workers.len()) == Some(Wish::End) {
                return Closed::ByKey;
            }
        }
        Closed::Otherwise
    }

    /// Does what keys ask for until it is time for the next picture, or to end.
    fn heed_keys(&mut self, next: Instant, workers: usize) -> Option<Wish> {
        while let Some(wish) = wish_before(next) {
            match wish {
                Wish::End => return Some(Wish::End),
                Wish::Up => self.scrolled = self.scrolled.saturating_sub(1),
                Wish::Down => self.scrolled = (self.scrolled + 1).min(workers.saturating_sub(1)),
            }
        }
        None
    }
}

/// The next wish that is uttered before `next`.
fn wish_before(next: Instant) -> Option<Wish> {
    loop {
        let left = next.saturating_duration_since(Instant::now());
        match event::poll(left).and_then(|is_there| if is_there { event::read().map(Some) } else { Ok(None) })
        {
            Ok(Some(Event::Key(key))) if wish(key).is_some() => return wish(key),
            Ok(Some(_)) => {}
            Ok(None) => return None,
            // Nobody can press a key; signals still come.
            Err(_) => {
                thread::sleep(left);
                return None;
            }
        }
    }
}

fn wish(key: KeyEvent) -> Option<Wish> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Wish::End),
        KeyCode::Char('q' | 'Q') => Some(Wish::End),
        KeyCode::Up => Some(Wish::Up),
        KeyCode::Down => Some(Wish::Down),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a `c` that ends the run, or a Ctrl-C that does not.
    #[test]
    fn keys_are_understood() {
        let wish = |code, modifiers| wish(KeyEvent::new(code, modifiers));
        assert_eq!(wish(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Wish::End));
        assert_eq!(wish(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(wish(KeyCode::Char('q'), KeyModifiers::NONE), Some(Wish::End));
        assert_eq!(wish(KeyCode::Down, KeyModifiers::NONE), Some(Wish::Down));
    }
}
