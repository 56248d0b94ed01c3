//! The door: a port, a runtime of a few threads, and a place for each connection. HTTP/1.1 and HTTP/2 are
//! told apart by what the client sends first.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{Either, select};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder as RuntimeBuilder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use wavetank_model::{Error, ErrorKind, Result};

use crate::activity::{Activity, Patience};
use crate::answering::Answering;
use crate::socket::Watched;
use crate::tally::Tally;

/// Bytes of the first line and headers of a request.
const MOST_HEAD: usize = 64 << 10;
/// What is sent to who finds no place.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// What a door is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Threads that serve; as many again stand in for those that block.
    pub threads: usize,
    /// Connections at a time.
    pub connections: usize,
    /// How long a client may take in the middle of something.
    pub client_timeout: Duration,
    /// How long it may be silent between requests.
    pub idle_timeout: Duration,
    /// Requests that one HTTP/2 connection may have open.
    pub streams_per_connection: u32,
}

/// A door while it is open.
pub struct Door {
    runtime: Runtime,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    places: Arc<Semaphore>,
    connections: usize,
}

impl Door {
    /// Takes the port; clients that connect wait until it is opened.
    pub fn listen(address: SocketAddr) -> Result<StdListener> {
        let taken = StdListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        taken.map_err(|error| cannot("listen", error))
    }

    /// Opens it to who comes to `listener`. What `answer` does is dropped in the middle when its client goes
    /// away, and so is a body; [`Pace`](crate::Pace) in the extensions says whether a client has to hurry.
    pub fn open<A, F, B>(
        listener: StdListener,
        settings: Settings,
        tally: Arc<Tally>,
        answer: A,
    ) -> Result<Self>
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + Unpin + 'static,
    {
        let address = listener.local_addr().map_err(|error| cannot("listen", error))?;
        let mut builder = RuntimeBuilder::new_multi_thread();
        builder.worker_threads(settings.threads).max_blocking_threads(settings.threads + 1);
        builder.thread_name("http").enable_all();
        let runtime = builder.build().map_err(|error| cannot("start threads", error))?;
        let (stop, stopped) = watch::channel(false);
        let connections = settings.connections;
        let places = Arc::new(Semaphore::new(connections));
        let guard = runtime.enter();
        let listener = TcpListener::from_std(listener).map_err(|error| cannot("listen", error))?;
        drop(guard);
        let entrance = Entrance { settings, tally, stopped, answer };
        runtime.spawn(accept(listener, Arc::clone(&places), entrance));
        Ok(Self { runtime, address, stop, places, connections })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Does `work` on the door's threads, for as long as it has them: also while it is drained.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(work);
    }

    /// Waits until the door is drained.
    pub fn draining(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopped = self.stop.subscribe();
        async move { stop(&mut stopped).await }
    }

    /// Takes no more connections and lets those that are there finish, for at most `patience`; what is not
    /// over then is dropped.
    pub fn drain(self, patience: Duration) {
        self.stop.send_replace(true);
        let all = u32::try_from(self.connections).unwrap_or(u32::MAX);
        let empty = async { timeout(patience, self.places.acquire_many(all)).await.is_ok() };
        self.runtime.block_on(empty);
        self.runtime.shutdown_timeout(Duration::from_millis(100));
    }
}

fn cannot(what: &str, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot {what}: {error}")).source(error)
}

/// What every connection is given.
#[derive(Clone)]
struct Entrance<A> {
    settings: Settings,
    tally: Arc<Tally>,
    stopped: watch::Receiver<bool>,
    answer: A,
}

/// Takes connections while it may.
async fn accept<A, F, B>(listener: TcpListener, places: Arc<Semaphore>, entrance: Entrance<A>)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + Unpin + 'static,
{
    let mut stopped = entrance.stopped.clone();
    loop {
        let taken = {
            match select(pin!(listener.accept()), pin!(stop(&mut stopped))).await {
                Either::Left((taken, _)) => taken,
                Either::Right(_) => return,
            }
        };
        let Ok((stream, _)) = taken else {
            // Out of descriptors: they come back when clients leave.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                tokio::spawn(entrance.clone().stay(stream, place));
            }
            Err(_) => {
                entrance.tally.refuse();
                let _ = stream.try_write(FULL);
            }
        }
    }
}

impl<A, F, B> Entrance<A>
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + Unpin + 'static,
{
    /// Keeps `place` until the connection is over and nothing is left of it.
    async fn stay(self, stream: TcpStream, place: OwnedSemaphorePermit) {
        let tally = Arc::clone(&self.tally);
        tally.open();
        self.serve(stream).await;
        tally.close();
        drop(place);
    }

    /// Serves one connection to its end.
    async fn serve(mut self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let patience = Patience { client: self.settings.client_timeout, idle: self.settings.idle_timeout };
        let activity = Arc::new(Activity::new(patience, Instant::now()));
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
        let answer = self.answer;
        let service = service_fn(move |request| {
            let (open, answer) = (activity.open(), answer(request));
            async move { Ok::<_, Infallible>(Answering::of(answer.await, open)) }
        });
        let builder = protocol(&self.settings);
        let mut connection = pin!(builder.serve_connection(io, service));
        let stopping = pin!(stop(&mut self.stopped));
        let is_over = matches!(select(connection.as_mut(), stopping).await, Either::Left(_));
        if !is_over {
            connection.as_mut().graceful_shutdown();
            // How a connection ends is the client's business.
            let _ = connection.await;
        }
    }
}

fn protocol(settings: &Settings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // The socket's own clock waits for heads: hyper's would end pauses between requests too.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(MOST_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.streams_per_connection)
        .max_header_list_size(MOST_HEAD as u32)
        .keep_alive_interval(settings.client_timeout)
        .keep_alive_timeout(settings.client_timeout);
    builder
}

/// Waits until the door is drained.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    // An error is that nobody can say it any more.
    let _ = stopped.wait_for(|stop| *stop).await;
}
