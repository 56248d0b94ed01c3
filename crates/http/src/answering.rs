//! An answer on its way: its body, and the request that is over with it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body, Frame, SizeHint};

use crate::activity::{Open, Pace};

/// The body of an answer, which tells the connection how it gets on.
pub(crate) struct Answering<B> {
    body: B,
    open: Open,
}

impl<B> Answering<B> {
    /// What answers the request `open`.
    pub(crate) fn of(mut answer: Response<B>, open: Open) -> Response<Self> {
        let pace = answer.extensions_mut().remove::<Pace>().unwrap_or_default();
        let open = open.answer(pace, Instant::now());
        answer.map(|body| Self { body, open })
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answering<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.open.ask(Instant::now());
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(Some(_))) {
            self.open.give(Instant::now());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
