//! What goes on on a connection, and by when something has to happen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A client that takes so much is not slow.
const MOVED_BYTES: u64 = 64 << 10;
/// How HTTP/2 begins.
const PREFACE: &[u8] = b"PRI";

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// In the middle of something.
    pub(crate) client: Duration,
    /// Between requests.
    pub(crate) idle: Duration,
}

/// Who sets the pace of an answer: a value among the extensions of its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Its client, which has to take so much in its time: all of the answer is there, or soon.
    #[default]
    Client,
    /// The server, which may pause for as long as it likes; its client has to take what there is.
    Server,
}

/// What goes on, as the socket and the requests on it see it.
#[derive(Debug)]
pub(crate) struct Activity {
    patience: Patience,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Requests that have come and are not answered to their end.
    open: u32,
    /// Of them those whose answer goes as fast as the client takes it, since when, and bytes that went since.
    answering: u32,
    answering_since: Instant,
    sent: u64,
    /// Those whose answer goes as fast as the server makes it.
    trickling: u32,
    /// Of them those with a piece that the connection had no room for, and since when it took none.
    held: u32,
    held_since: Instant,
    /// Since when there is no request.
    idle_since: Instant,
    /// Since when the head of one comes.
    head_since: Option<Instant>,
    /// Since when the socket takes nothing.
    stuck_since: Option<Instant>,
    /// The first bytes of all.
    start: Vec<u8>,
}

impl Activity {
    /// Of a client that has just connected.
    pub(crate) fn new(patience: Patience, now: Instant) -> Self {
        let state = State {
            open: 0,
            answering: 0,
            answering_since: now,
            sent: 0,
            trickling: 0,
            held: 0,
            held_since: now,
            idle_since: now,
            head_since: None,
            stuck_since: None,
            start: Vec::new(),
        };
        Self { patience, state: Mutex::new(state) }
    }

    /// These bytes came.
    pub(crate) fn came(&self, bytes: &[u8], now: Instant) {
        let mut state = self.state();
        let missing = PREFACE.len() - state.start.len();
        state.start.extend(bytes.iter().take(missing));
        if state.start == PREFACE {
            // Bytes of HTTP/2 need not be of a request: pings are no reason to stay.
            state.head_since = None;
        } else if state.open == 0 && !bytes.is_empty() {
            state.head_since.get_or_insert(now);
        }
    }

    /// So many bytes went.
    pub(crate) fn went(&self, bytes: u64) {
        let mut state = self.state();
        state.sent += bytes;
        state.stuck_since = None;
    }

    /// The socket takes no more.
    pub(crate) fn stuck(&self, now: Instant) {
        self.state().stuck_since.get_or_insert(now);
    }

    /// A request has come.
    pub(crate) fn open(self: &Arc<Self>) -> Open {
        let mut state = self.state();
        state.open += 1;
        state.head_since = None;
        Open { activity: Arc::clone(self), stage: Stage::Asked }
    }

    /// When the client will have taken too long; not at all while only the server works.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        if state.answering > 0 && state.sent >= MOVED_BYTES {
            (state.answering_since, state.sent) = (now, 0);
        }
        let answering = (state.answering > 0).then_some(state.answering_since);
        let held = (state.held > 0).then_some(state.held_since);
        let busy = [state.stuck_since, answering, held, state.head_since].into_iter().flatten();
        let idle = (state.open == 0).then_some(state.idle_since + self.patience.idle);
        busy.map(|since| since + self.patience.client).chain(idle).min()
    }

    /// Whether an answer is on its way that may pause.
    pub(crate) fn is_trickling(&self) -> bool {
        self.state().trickling > 0
    }

    /// How often to ask, where nothing is due.
    pub(crate) fn pause(&self) -> Duration {
        self.patience.client
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request on a connection; dropped when its answer is sent, or never will be.
#[derive(Debug)]
pub(crate) struct Open {
    activity: Arc<Activity>,
    stage: Stage,
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has no answer.
    Asked,
    /// Its answer goes as fast as the client takes it.
    Answered,
    /// Its answer goes as fast as the server makes it.
    Trickling,
    /// A piece of such an answer was given, and the next is not asked for.
    Held,
}

impl Open {
    /// Its answer is on its way.
    pub(crate) fn answer(mut self, pace: Pace, now: Instant) -> Self {
        let mut state = self.activity.state();
        match pace {
            Pace::Client => {
                if state.answering == 0 {
                    (state.answering_since, state.sent) = (now, 0);
                }
                state.answering += 1;
                self.stage = Stage::Answered;
            }
            Pace::Server => {
                state.trickling += 1;
                self.stage = Stage::Trickling;
            }
        }
        drop(state);
        self
    }

    /// A piece of it was given.
    pub(crate) fn give(&mut self, now: Instant) {
        if self.stage == Stage::Trickling {
            self.stage = Stage::Held;
            let mut state = self.activity.state();
            if state.held == 0 {
                state.held_since = now;
            }
            state.held += 1;
        }
    }

    /// The next piece is asked for: there is room for what was given.
    pub(crate) fn ask(&mut self, now: Instant) {
        if self.stage == Stage::Held {
            self.stage = Stage::Trickling;
            let mut state = self.activity.state();
            state.held -= 1;
            state.held_since = now;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let now = Instant::now();
        self.ask(now);
        let mut state = self.activity.state();
        state.open -= 1;
        match self.stage {
            Stage::Asked => {}
            Stage::Answered => state.answering -= 1,
            Stage::Trickling | Stage::Held => state.trickling -= 1,
        }
        state.idle_since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Duration = Duration::from_secs(30);
    const IDLE: Duration = Duration::from_secs(300);

    fn activity(now: Instant) -> Arc<Activity> {
        Arc::new(Activity::new(Patience { client: CLIENT, idle: IDLE }, now))
    }

    /// Broken by: a connection between requests that has only the time of a head, or a head that has the time
    /// between requests, or bytes that begin it anew.
    #[test]
    fn a_head_has_less_time_than_a_pause() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let activity = activity(now);
        assert_eq!(activity.due(now), Some(now + IDLE));
        activity.came(b"G", now + second);
        activity.came(b"ET /", now + 2 * second);
        assert_eq!(activity.due(now + 2 * second), Some(now + second + CLIENT));
        let open = activity.open();
        assert_eq!(activity.due(now), None);
        drop(open.answer(Pace::Client, now));
        let due = activity.due(now).unwrap();
        assert!(due >= now + IDLE && due < now + IDLE + CLIENT);
    }

    /// Broken by: pings that keep a connection without requests.
    #[test]
    fn frames_without_a_request_keep_no_connection() {
        let now = Instant::now();
        let activity = activity(now);
        activity.came(b"PR", now);
        activity.came(b"I * HTTP/2.0", now);
        activity.came(&[0; 17], now + IDLE / 2);
        activity.went(17);
        assert_eq!(activity.due(now + IDLE / 2), Some(now + IDLE));
    }

    /// Broken by: an answer that nobody takes and that waits for the time between requests, or for ever.
    #[test]
    fn an_answer_is_taken_or_given_up() {
        let now = Instant::now();
        let activity = activity(now);
        let open = activity.open().answer(Pace::Client, now);
        assert_eq!(activity.due(now), Some(now + CLIENT));
        // A ping is no answer, and so many bytes are.
        activity.went(17);
        assert_eq!(activity.due(now + CLIENT / 2), Some(now + CLIENT));
        activity.went(MOVED_BYTES);
        assert_eq!(activity.due(now + CLIENT / 2), Some(now + CLIENT / 2 + CLIENT));
        drop(open);
        activity.stuck(now + CLIENT);
        activity.stuck(now + 2 * CLIENT);
        assert_eq!(activity.due(now + 2 * CLIENT), Some(now + 2 * CLIENT));
        activity.went(1);
        assert!(activity.due(now).unwrap() >= now + IDLE);
    }
    /// Broken by: a pause of the server that counts against the client, or a piece that nobody takes and that
    /// does not; or one answer that is not taken where others are.
    #[test]
    fn only_what_there_is_has_to_be_taken() {
        let now = Instant::now();
        let activity = activity(now);
        let mut slow = activity.open().answer(Pace::Server, now);
        slow.ask(now);
        assert_eq!(activity.due(now + 9 * CLIENT), None);
        slow.give(now + IDLE);
        assert_eq!(activity.due(now), Some(now + IDLE + CLIENT));
        let mut other = activity.open().answer(Pace::Server, now);
        other.give(now + IDLE + CLIENT / 2);
        assert_eq!(activity.due(now), Some(now + IDLE + CLIENT));
        other.ask(now + 2 * IDLE);
        assert_eq!(activity.due(now), Some(now + 2 * IDLE + CLIENT));
        slow.ask(now + 2 * IDLE);
        assert_eq!(activity.due(now), None);
        activity.stuck(now);
        assert_eq!(activity.due(now), Some(now + CLIENT));
        activity.went(1);
        drop((slow, other));
        assert!(!activity.is_trickling() && activity.due(now).unwrap() >= now + IDLE);
    }
}
