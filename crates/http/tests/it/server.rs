//! A door in this process, bodies that are fed piece by piece, and clients.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::{Request, Response};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use wavetank_http::{Door, Pace, Settings, Tally};

/// What takes longer hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);
/// Longer than any test.
const ENDLESS: Duration = Duration::from_secs(3600);

/// A door that waits for its clients for as long as they like.
pub(crate) fn patient() -> Settings {
    Settings {
        threads: 2,
        connections: 16,
        client_timeout: ENDLESS,
        idle_timeout: ENDLESS,
        streams_per_connection: 16,
    }
}

/// One that waits for so long for clients in the middle of something.
pub(crate) fn impatient(client_timeout: Duration) -> Settings {
    Settings { client_timeout, ..patient() }
}

/// A door, and what it counts.
pub(crate) struct Server {
    pub(crate) door: Door,
    pub(crate) at: SocketAddr,
    pub(crate) tally: Arc<Tally>,
}

impl Server {
    /// Answers every request with what `answer` makes of it.
    pub(crate) fn of<F>(
        settings: Settings,
        answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Feed>> + Send + 'static,
    {
        let listener = Door::listen(([127, 0, 0, 1], 0).into()).expect("a port");
        let tally = Arc::new(Tally::default());
        let door = Door::open(listener, settings, Arc::clone(&tally), answer).expect("a door");
        Self { at: door.address(), door, tally }
    }

    /// Answers every request with a stream, whose other end `answers` gets.
    pub(crate) fn streaming(settings: Settings, answers: Sender<Sender<Bytes>>) -> Self {
        Self::of(settings, move |_| {
            let answers = answers.clone();
            async move {
                let (pieces, body) = Feed::new();
                answers.send(pieces).await.expect("a test");
                let mut answer = Response::new(body);
                answer.extensions_mut().insert(Pace::Server);
                answer
            }
        })
    }
}

/// A body whose pieces come from elsewhere, which sees when it is dropped.
pub(crate) struct Feed(Receiver<Bytes>);

impl Feed {
    pub(crate) fn new() -> (Sender<Bytes>, Self) {
        let (pieces, body) = channel(1);
        (pieces, Self(body))
    }

    /// A body of one piece.
    pub(crate) fn of(bytes: impl Into<Bytes>) -> Self {
        let (pieces, body) = Self::new();
        pieces.try_send(bytes.into()).expect("there is room for one");
        body
    }
}

impl Body for Feed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Waits until `is_so`, which has to happen.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A plain client.
pub(crate) fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket");
    stream
}

/// A plain client that has asked in HTTP/1.1.
pub(crate) fn asking(at: SocketAddr, head: &str) -> TcpStream {
    let mut stream = connect(at);
    stream.write_all(head.as_bytes()).expect("it takes a request");
    stream
}

/// Reads until `wanted` has come.
pub(crate) fn read_to(stream: &mut TcpStream, wanted: &str) -> String {
    let mut all = Vec::new();
    while !all.ends_with(wanted.as_bytes()) {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("more comes");
        all.push(byte[0]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// All that comes until the connection ends.
pub(crate) fn rest(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    // Who was refused before all was sent may see the connection reset after the answer.
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}
