//! What one request has got so far. Tokens are counted, not kept: a reader that is slow costs nothing.

use std::future::poll_fn;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use wavetank_model::{RejectReason, RequestId};

use super::control::Word;

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With all its tokens.
    Completed,
    /// The engine cannot serve it.
    Rejected(RejectReason),
    /// The workers have stopped.
    Stopped,
}

/// What has come since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More {
    /// Tokens.
    pub tokens: u32,
    /// Whether these are the last, and why.
    pub end: Option<End>,
}

/// The answer to a request while it comes. Who drops it before its end does not want it any more.
#[derive(Debug)]
pub struct Answer {
    request: RequestId,
    progress: Arc<Progress>,
    taken: u32,
    has_ended: bool,
    words: Sender<Word>,
}

impl Answer {
    pub(super) fn new(request: RequestId, progress: Arc<Progress>, words: Sender<Word>) -> Self {
        Self { request, progress, taken: 0, has_ended: false, words }
    }

    /// What has come since the last look, as soon as there is any.
    pub(crate) fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<More> {
        let mut state = self.progress.state();
        let (tokens, end) = (state.tokens - self.taken, state.end);
        if tokens == 0 && end.is_none() {
            state.waker.get_or_insert_with(|| context.waker().clone()).clone_from(context.waker());
            return Poll::Pending;
        }
        self.taken = state.tokens;
        self.has_ended = end.is_some();
        Poll::Ready(More { tokens, end })
    }

    /// The same, to wait for.
    pub async fn more(&mut self) -> More {
        poll_fn(|context| self.poll_more(context)).await
    }

    /// Tokens of the prompt that were in a cache when a worker began with it.
    pub fn reused_tokens(&self) -> u32 {
        self.progress.state().reused_tokens.unwrap_or(0)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.has_ended {
            // A control that is gone has let go of everything.
            let _ = self.words.send(Word::Gone(self.request));
        }
    }
}

/// The same as the control sees it.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    tokens: u32,
    /// As it was first admitted.
    reused_tokens: Option<u32>,
    end: Option<End>,
    /// Who waits.
    waker: Option<Waker>,
}

impl Progress {
    pub(super) fn admitted(&self, reused_tokens: u32) {
        self.state().reused_tokens.get_or_insert(reused_tokens);
    }

    pub(super) fn emitted(&self, tokens: u32) {
        self.change(|state| state.tokens += tokens);
    }

    pub(super) fn ended(&self, end: End) {
        self.change(|state| state.end = Some(end));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        waker.iter().for_each(Waker::wake_by_ref);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
