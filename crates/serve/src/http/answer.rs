//! Answers: JSON, text, or objects that are sent from where they are.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use wavetank_http::Fault;
use wavetank_model::Error;

/// A body of pieces that are where they are; nothing is copied into it.
#[derive(Default)]
pub(crate) struct Pieces {
    queue: VecDeque<Bytes>,
    left: u64,
    /// Told when it was sent, or never will be: how many bytes were not.
    ended: Option<Box<dyn FnOnce(u64) + Send>>,
}

impl Pieces {
    pub(super) fn push(&mut self, piece: Bytes) {
        self.left += piece.len() as u64;
        self.queue.push_back(piece);
    }

    /// Tells `then`, once, how many bytes were not sent when it is over.
    pub(super) fn at_end(&mut self, then: impl FnOnce(u64) + Send + 'static) {
        self.ended = Some(Box::new(then));
    }
}

impl From<Bytes> for Pieces {
    fn from(bytes: Bytes) -> Self {
        let mut pieces = Self::default();
        pieces.push(bytes);
        pieces
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.queue.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.queue.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            ended(self.left);
        }
    }
}

/// What is sent.
pub(crate) type Answer = Response<Pieces>;

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Pieces>) -> Answer {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

pub(super) fn json(value: &impl Serialize) -> Answer {
    with_status(StatusCode::OK, value)
}

pub(super) fn with_status(status: StatusCode, value: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(value).expect("what is told has names for keys");
    answer(status, "application/json", Bytes::from(text))
}

pub(super) fn text(kind: &'static str, text: impl Into<Bytes>) -> Answer {
    answer(StatusCode::OK, kind, text.into())
}

pub(super) fn binary(body: Pieces) -> Answer {
    answer(StatusCode::OK, "application/octet-stream", body)
}

/// Adds a header.
pub(super) fn with(mut answer: Answer, name: &'static str, value: impl ToString) -> Answer {
    if let Ok(value) = HeaderValue::from_str(&value.to_string()) {
        answer.headers_mut().insert(HeaderName::from_static(name), value);
    }
    answer
}

/// Why there is no other answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: String,
    hint: String,
    /// Methods that would do.
    allowed: Option<String>,
}

impl Refusal {
    pub(super) fn of(status: StatusCode, error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status, error: error.into(), hint: hint.into(), allowed: None }
    }

    pub(super) fn bad(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::of(StatusCode::BAD_REQUEST, error, hint)
    }

    /// Methods that would do, as a header says them.
    pub(super) fn allowing(self, methods: String) -> Self {
        Self { allowed: Some(methods), ..self }
    }

    pub(super) fn error(&self) -> &str {
        &self.error
    }

    pub(super) fn answer(&self) -> Answer {
        let refused = with_status(self.status, &json!({ "error": self.error, "hint": self.hint }));
        match self.status {
            StatusCode::UNAUTHORIZED => with(refused, "www-authenticate", "Basic realm=\"wavetank\""),
            StatusCode::SERVICE_UNAVAILABLE => with(refused, "retry-after", 1),
            StatusCode::METHOD_NOT_ALLOWED => {
                with(refused, "allow", self.allowed.as_deref().unwrap_or_default())
            }
            _ => refused,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::bad(error.to_string(), "docs/serve.md has every field")
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Slow => Self::of(StatusCode::REQUEST_TIMEOUT, "the body does not come", "send it faster"),
            Fault::Broken(error) => Self::bad(format!("the body broke off: {error}"), "send it again"),
            Fault::Long(most) => {
                let error = format!("the body is longer than {most} bytes");
                Self::of(StatusCode::PAYLOAD_TOO_LARGE, error, "objects go to /v1/store")
            }
        }
    }
}
