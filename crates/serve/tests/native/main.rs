//! The HTTP door as clients of HTTP/2 see it: many requests at a time over one connection.
#![forbid(unsafe_code)]

mod abuse;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use wavetank_serve::{Addresses, Args, Listener, Plan, run};

/// A server in this process; it ends with this.
struct Server {
    http: SocketAddr,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start() -> Self {
        Self::of(Args::default())
    }

    fn of(args: Args) -> Self {
        let args = Args { l1_size_gb: Some(0.05), port: Some(0), http_port: Some(0), ..args };
        let plan = Plan::of(&args, None).expect("a plan");
        let (stop, stopped) = channel();
        let (say, said) = mpsc::channel();
        let ready = Box::new(move |addresses: &Addresses| say.send(addresses.http).expect("a test"));
        let thread = thread::spawn(move || {
            let listener = Listener { ready, tell: Arc::new(|words| panic!("{words}")) };
            run(&plan, &stopped, listener).expect("it serves");
        });
        Self { http: said.recv().expect("it starts"), stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

/// A body of one piece.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

async fn whole(answer: Response<Incoming>) -> Vec<u8> {
    let (mut body, mut all) = (pin!(answer.into_body()), Vec::new());
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        if let Ok(data) = frame.expect("it comes").into_data() {
            all.extend_from_slice(&data);
        }
    }
    all
}

async fn ask(client: &mut SendRequest<Whole>, method: Method, path: &str, body: Vec<u8>) -> Vec<u8> {
    client.ready().await.expect("it is there");
    let uri = format!("http://localhost{path}");
    let request =
        Request::builder().method(method).uri(uri).body(Whole(Some(body.into()))).expect("a request");
    let answer = client.send_request(request).await.expect("an answer");
    assert_eq!(answer.version(), hyper::Version::HTTP_2);
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    whole(answer).await
}

fn frame(index: u32, bytes: &[u8]) -> Vec<u8> {
    [&index.to_le_bytes()[..], &(bytes.len() as u64).to_le_bytes(), bytes].concat()
}

/// What one request of many does.
async fn life(mut client: SendRequest<Whole>, number: u32) {
    let id = format!("r{number}");
    // Two requests share each object: whoever comes first stores it.
    let hash = format!("{:08x}", number / 2);
    let object = vec![(number / 2) as u8; 100_000];
    let path = format!("/v1/store?request_id={id}&model=m&chunk_hashes={hash}");
    let stored = ask(&mut client, Method::PUT, &path, frame(0, &object)).await;
    let stored: Value = serde_json::from_slice(&stored).expect("JSON");
    assert!(stored["stored"] == 1 && stored["exists"] == 0 || stored["stored"] == 0 && stored["exists"] == 1);
    let words = json!({ "request_id": id, "model": "m", "chunk_hashes": [hash] }).to_string();
    let found = ask(&mut client, Method::POST, "/v1/lookup", words.into()).await;
    let found: Value = serde_json::from_slice(&found).expect("JSON");
    assert_eq!(found["found_chunks"], 1);
    let words = json!({ "request_id": id }).to_string();
    let all = ask(&mut client, Method::POST, "/v1/retrieve", words.clone().into()).await;
    assert!(all == frame(0, &object), "request {number}");
    ask(&mut client, Method::POST, "/v1/end", words.into()).await;
}

/// Broken by: a door that does not speak HTTP/2, streams that wait for each other, an object that one request
/// sees half written by another, or counts that do not add up.
#[test]
fn many_requests_share_one_connection() {
    const REQUESTS: u32 = 60;
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = TcpStream::connect(server.http).await.unwrap();
        let (mut client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let lives: Vec<_> = (0..REQUESTS).map(|number| tokio::spawn(life(client.clone(), number))).collect();
        for life in lives {
            life.await.unwrap();
        }
        let status = ask(&mut client, Method::GET, "/status", Vec::new()).await;
        let status: Value = serde_json::from_slice(&status).unwrap();
        let count = |name: &str| status["counters"][name].as_u64().unwrap();
        assert_eq!((count("l1_hits"), count("misses"), count("lookups")), (60, 0, 60));
        assert_eq!((count("stores"), count("bytes_out")), (30, 60 * 100_000));
        assert_eq!((count("stores_submitted"), count("stores_finished")), (60, 60));
        assert_eq!((count("retrieves_submitted"), count("retrieves_finished")), (60, 60));
        assert_eq!(status["requests"]["open"], 0);
        assert_eq!(status["http"]["connections"], 1);
    });
}
