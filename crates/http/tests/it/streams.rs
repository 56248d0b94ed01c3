//! Answers that trickle: the server may pause, the client may not stop reading, and who leaves is noticed.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use hyper::body::{Body, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use crate::server::{Feed, LIMIT, Server, asking, impatient, patient, read_to, until};

const ASK: &str = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
/// How long clients may take that are given up.
const SOON: Duration = Duration::from_millis(100);

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread")
}

/// The way to the next answer.
async fn next(answers: &mut Receiver<Sender<Bytes>>) -> Sender<Bytes> {
    tokio::time::timeout(LIMIT, answers.recv()).await.expect("a request comes").expect("a door")
}

/// Asks as a client that `JoinHandle` keeps connected.
async fn ask(at: SocketAddr, version: Version) -> (Incoming, JoinHandle<()>) {
    let io = TokioIo::new(TcpStream::connect(at).await.expect("it listens"));
    let request = Request::get("http://localhost/").body(Feed::new().1).expect("a request");
    match version {
        Version::Http1 => {
            let (mut client, connection) = http1::handshake(io).await.expect("a connection");
            let connected = tokio::spawn(async { drop(connection.await) });
            (client.send_request(request).await.expect("an answer").into_body(), connected)
        }
        Version::Http2 => {
            let (mut client, connection) =
                http2::handshake(TokioExecutor::new(), io).await.expect("a connection");
            let connected = tokio::spawn(async { drop(connection.await) });
            (client.send_request(request).await.expect("an answer").into_body(), connected)
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Version {
    Http1,
    Http2,
}

/// The next piece; none at a good end.
async fn piece(body: &mut Incoming) -> Option<Bytes> {
    let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
    frame.expect("it goes on").into_data().ok()
}

/// Broken by: a server that takes its own time and is taken for a slow client.
#[test]
fn a_server_may_pause() {
    let (say, mut answers) = channel(9);
    let server = Server::streaming(impatient(SOON), say);
    runtime().block_on(async {
        for version in [Version::Http1, Version::Http2] {
            let asked = tokio::spawn(ask(server.at, version));
            let pieces = next(&mut answers).await;
            let (mut body, _connected) = asked.await.unwrap();
            for number in 0..3 {
                tokio::time::sleep(5 * SOON).await;
                pieces.send(format!("{number}").into()).await.unwrap();
                assert_eq!(piece(&mut body).await.unwrap(), format!("{number}"), "{version:?}");
            }
            drop(pieces);
            let end = piece(&mut body).await;
            assert!(end.is_none_or(|end| end.is_empty()), "{version:?}");
        }
    });
    server.door.drain(LIMIT);
}

/// Broken by: an answer that the server may take its time for, and the client too.
#[test]
fn a_reader_that_stops_is_given_up() {
    let (say, mut answers) = channel(9);
    let server = Server::streaming(impatient(SOON), say);
    runtime().block_on(async {
        for version in [Version::Http1, Version::Http2] {
            let asked = tokio::spawn(ask(server.at, version));
            let pieces = next(&mut answers).await;
            let (_unread, _connected) = asked.await.unwrap();
            let endless = async { while pieces.send(Bytes::from(vec![b'x'; 64 << 10])).await.is_ok() {} };
            let given_up = tokio::time::timeout(LIMIT, endless).await;
            assert!(given_up.is_ok(), "it is waited for, {version:?}");
        }
    });
    until("connections end", || server.tally.connections() == 0);
}

/// Broken by: a connection that nobody reads from while the answer pauses, be it that the next request has
/// come, or a body that nobody wanted.
#[test]
fn who_leaves_in_the_middle_of_an_answer_is_noticed() {
    let long = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\n\r\nthe start of a body";
    let (say, mut answers) = channel(9);
    let server = Server::streaming(patient(), say);
    let runtime = runtime();
    for asked in [ASK.to_owned(), ASK.repeat(2), format!("{ASK}\r\n"), long.to_owned()] {
        let mut client = asking(server.at, &asked);
        let pieces = runtime.block_on(next(&mut answers));
        runtime.block_on(pieces.send("first".into())).unwrap();
        read_to(&mut client, "first\r\n");
        assert!(!pieces.is_closed());
        drop(client);
        until(&format!("nobody notices after {asked}"), || pieces.is_closed());
    }
    let pieces = runtime.block_on(async {
        let asked = tokio::spawn(ask(server.at, Version::Http2));
        let pieces = next(&mut answers).await;
        let (_body, connected) = asked.await.unwrap();
        connected.abort();
        pieces
    });
    until("nobody notices in HTTP/2", || pieces.is_closed());
    until("connections end", || server.tally.connections() == 0);
}

/// Broken by: bytes that were read to see whether the client is there, and are lost for the next request.
#[test]
fn the_next_request_may_come_before_the_end_of_an_answer() {
    let (say, mut answers) = channel(9);
    let server = Server::streaming(patient(), say);
    let runtime = runtime();
    let mut client = asking(server.at, &ASK[..1]);
    let mut send = |text: &str| std::io::Write::write_all(&mut client, text.as_bytes()).unwrap();
    send(&ASK[1..]);
    let mut pieces = runtime.block_on(next(&mut answers));
    for number in 0..3 {
        // In parts, each of which is there before the next is sent.
        for part in [&ASK[..9], &ASK[9..20], &ASK[20..]] {
            send(part);
            std::thread::sleep(Duration::from_millis(20));
        }
        runtime.block_on(pieces.send(format!("answer {number}").into())).unwrap();
        drop(pieces);
        pieces = runtime.block_on(next(&mut answers));
    }
    drop(pieces);
    for number in 0..3 {
        read_to(&mut client, &format!("answer {number}\r\n0\r\n\r\n"));
    }
}
