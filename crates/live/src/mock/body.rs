//! What goes back to a client: all at once or as it comes.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::counts::{Counts, OpenStream};
use super::front::Places;
use super::stream::Stream;

/// The body of an answer, which counts what goes out.
#[derive(Debug)]
pub(super) struct Reply {
    counts: Arc<Counts>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Whole(Option<Bytes>),
    Stream { stream: Box<Stream>, _open: OpenStream, _places: Places },
}

impl Reply {
    /// All at once.
    pub(super) fn whole(counts: &Arc<Counts>, bytes: impl Into<Bytes>) -> Self {
        let bytes = Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty());
        Self { counts: Arc::clone(counts), content: Content::Whole(bytes) }
    }

    /// As it comes; its places are free again when it ends.
    pub(super) fn stream(counts: &Arc<Counts>, stream: Stream, places: Places) -> Self {
        let content =
            Content::Stream { stream: Box::new(stream), _open: counts.open_stream(), _places: places };
        Self { counts: Arc::clone(counts), content }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match &mut self.content {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Stream { stream, .. } => Pin::new(stream.as_mut()).poll_frame(context),
        };
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            self.counts.sent(frame.data_ref().map_or(0, Bytes::len));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Stream { .. } => SizeHint::default(),
        }
    }
}
