//! The HTTP door: status, metrics, a page for people, and the native API. It has a runtime of a few threads
//! of its own; HTTP/1.1 and HTTP/2 are told apart by what the client sends first.

mod activity;
mod answer;
mod api;
mod config;
mod desk;
mod frame;
mod grid;
mod health;
mod inflow;
mod login;
mod metrics;
mod origin;
mod page;
mod route;
mod session;
mod socket;
pub(crate) mod status;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{interval, sleep, timeout};
use wavetank_model::{Error, ErrorKind, Result};

use activity::{Activity, Patience};
pub(crate) use config::{told as without_secrets, without_login};
pub(crate) use desk::{Desk, duration};
use socket::Watched;

/// Bytes of the first line and headers of a request.
const MOST_HEAD: usize = 64 << 10;
/// Requests that one HTTP/2 connection may have open.
const STREAMS: u32 = 128;

/// The door while it is open.
pub(crate) struct Door {
    runtime: Runtime,
    address: SocketAddr,
    desk: Arc<Desk>,
    stop: watch::Sender<bool>,
    places: Arc<Semaphore>,
}

impl Door {
    /// Takes the port; clients that connect wait until it is opened.
    pub(crate) fn listen(address: SocketAddr) -> Result<StdListener> {
        let taken = StdListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        taken.map_err(|error| cannot(address, "cannot listen", error))
    }

    /// Opens it to who comes to `listener`; `desk` is what connections work with.
    pub(crate) fn open(listener: StdListener, desk: Arc<Desk>) -> Result<Self> {
        let plan = &desk.plan;
        let at = |what: &str, error: std::io::Error| cannot(plan.http, what, error);
        let address = listener.local_addr().map_err(|error| at("cannot listen", error))?;
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        // As many again, for those that long work takes away.
        builder.worker_threads(plan.http_threads).max_blocking_threads(plan.http_threads + 1);
        builder.thread_name("http").enable_all();
        let runtime = builder.build().map_err(|error| at("cannot start threads", error))?;
        let (stop, stopped) = watch::channel(false);
        let places = Arc::new(Semaphore::new(plan.limits.http_connections));
        let guard = runtime.enter();
        let listener = TcpListener::from_std(listener).map_err(|error| at("cannot listen", error))?;
        drop(guard);
        runtime.spawn(accept(listener, Arc::clone(&desk), Arc::clone(&places), stopped.clone()));
        runtime.spawn(watch_over(Arc::clone(&desk), stopped));
        Ok(Self { runtime, address, desk, stop, places })
    }

    /// Where clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections and lets those that are there finish, for at most `patience`.
    pub(crate) fn drain(self, patience: Duration) {
        self.stop.send_replace(true);
        let all = u32::try_from(self.desk.plan.limits.http_connections).unwrap_or(u32::MAX);
        let empty = async { timeout(patience, self.places.acquire_many(all)).await.is_ok() };
        self.runtime.block_on(empty);
        self.desk.sessions.clear();
        self.runtime.shutdown_timeout(Duration::from_millis(100));
    }
}

fn cannot(address: SocketAddr, what: &str, error: std::io::Error) -> Error {
    let place = format!("--http-port {}", address.port());
    Error::new(ErrorKind::Io, format!("{what}: {error}")).at(place).source(error)
}

/// Takes connections while it may.
async fn accept(
    listener: TcpListener,
    desk: Arc<Desk>,
    places: Arc<Semaphore>,
    mut stopped: watch::Receiver<bool>,
) {
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
                tokio::spawn(serve(stream, Arc::clone(&desk), place, stopped.clone()));
            }
            Err(_) => {
                desk.counts.http_connections_refused.add(1);
                let _ = stream.try_write(FULL);
            }
        }
    }
}

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves one connection to its end.
async fn serve(
    stream: TcpStream,
    desk: Arc<Desk>,
    place: OwnedSemaphorePermit,
    mut stopped: watch::Receiver<bool>,
) {
    desk.counts.http_connections_opened.add(1);
    let _ = stream.set_nodelay(true);
    let limits = desk.plan.limits;
    let mut builder = Builder::new(TokioExecutor::new());
    let client = duration(limits.client_timeout);
    let patience = Patience { client, idle: duration(limits.idle_timeout) };
    let activity = Arc::new(Activity::new(patience, Instant::now()));
    // The socket's own clock waits for heads: hyper's would end pauses between requests too.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(MOST_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(MOST_HEAD as u32)
        .keep_alive_interval(client)
        .keep_alive_timeout(client);
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
    let answering = Arc::clone(&desk);
    let service = service_fn(move |request| {
        let (desk, open) = (Arc::clone(&answering), activity.open());
        async move {
            let mut answer = route::serve(desk, request).await;
            answer.body_mut().open = Some(open.answer(Instant::now()));
            Ok::<_, Infallible>(answer)
        }
    });
    let mut connection = pin!(builder.serve_connection(io, service));
    let is_over = matches!(select(connection.as_mut(), pin!(stop(&mut stopped))).await, Either::Left(_));
    if !is_over {
        connection.as_mut().graceful_shutdown();
        // How a connection ends is the client's business.
        let _ = connection.await;
    }
    desk.counts.http_connections_closed.add(1);
    drop(place);
}

/// Counts every second, and ends requests that are silent.
async fn watch_over(desk: Arc<Desk>, mut stopped: watch::Receiver<bool>) {
    let sampling = async {
        let mut seconds = interval(Duration::from_secs(status::INTERVAL_S));
        loop {
            seconds.tick().await;
            status::sample(&desk);
        }
    };
    let sweeping = async {
        loop {
            sleep(desk.sessions.pause()).await;
            desk.sessions.sweep();
        }
    };
    select(select(pin!(sampling), pin!(sweeping)), pin!(stop(&mut stopped))).await;
}

/// Waits until the server ends.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    // An error is that nobody can say it any more.
    let _ = stopped.wait_for(|stop| *stop).await;
}
