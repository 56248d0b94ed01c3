//! A socket that gives up on a client that takes too long.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::activity::Activity;

/// Bytes of requests that are read before they are asked for.
const AHEAD: usize = 16 << 10;

/// A socket with a clock that goes by what happens on it.
pub(crate) struct Watched {
    stream: TcpStream,
    activity: Arc<Activity>,
    clock: Pin<Box<Sleep>>,
    /// What was read before it was asked for.
    ahead: BytesMut,
}

impl Watched {
    pub(crate) fn new(stream: TcpStream, activity: Arc<Activity>) -> Self {
        let clock = Box::pin(sleep(activity.pause()));
        Self { stream, activity, clock, ahead: BytesMut::new() }
    }

    /// Waits no longer than it should.
    fn wait<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        loop {
            let now = Instant::now();
            let due = self.activity.due(now).unwrap_or_else(|| now + self.activity.pause());
            if due <= now {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            // What is due may come nearer without a word to this socket: it is asked again before long.
            let next = due.min(now + self.activity.pause());
            self.clock.as_mut().reset(next.into());
            if self.clock.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Finds out whether the client is still there, where nobody else may: hyper reads nothing in the middle
    /// of an answer once bytes of the next request have come, and one that trickles would go on for nobody.
    fn look_ahead(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let mut piece = [0; 1024];
        while self.ahead.len() < AHEAD {
            let mut buffer = ReadBuf::new(&mut piece);
            if Pin::new(&mut self.stream).poll_read(context, &mut buffer)?.is_pending() {
                return Ok(());
            }
            if buffer.filled().is_empty() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            self.ahead.extend_from_slice(buffer.filled());
            // Whoever does wait for bytes was told that there are none.
            context.waker().wake_by_ref();
        }
        Ok(())
    }

    fn wrote(
        &mut self,
        polled: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Ok(bytes)) => {
                self.activity.went(bytes as u64);
                polled
            }
            Poll::Ready(Err(_)) => polled,
            Poll::Pending => {
                self.activity.stuck(Instant::now());
                self.wait(context)
            }
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let length = self.ahead.len().min(buffer.remaining());
            let bytes = self.ahead.split_to(length);
            buffer.put_slice(&bytes);
            self.activity.came(&bytes, Instant::now());
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            self.activity.came(&buffer.filled()[before..], Instant::now());
            return polled;
        }
        self.wait(context)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.wrote(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.activity.is_trickling() {
            self.look_ahead(context)?;
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
