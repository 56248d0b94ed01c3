//! Places, requests that are given up, and the end of a door.

use std::future::pending;
use std::io::Write;
use std::time::Duration;

use hyper::Response;
use tokio::sync::mpsc::{Sender, channel};

use crate::server::{Feed, LIMIT, Server, asking, connect, patient, read_to, rest, until};

const ASK: &str = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Broken by: a client beyond the last place that waits, or is not told; a place that is not given back;
/// counts that do not add up.
#[test]
fn there_are_so_many_places() {
    let settings = wavetank_http::Settings { connections: 2, ..patient() };
    let server = Server::of(settings, |_| async { Response::new(Feed::of("here\n")) });
    let mut inside = [asking(server.at, ASK), asking(server.at, ASK)];
    for client in &mut inside {
        read_to(client, "here\n\r\n0\r\n\r\n");
    }
    assert!(rest(connect(server.at)).starts_with("HTTP/1.1 503 "));
    assert_eq!((server.tally.opened(), server.tally.refused(), server.tally.connections()), (2, 1, 2));
    let [leaving, mut staying] = inside;
    drop(leaving);
    until("a place is free", || server.tally.closed() == 1);
    staying.write_all(ASK.as_bytes()).unwrap();
    read_to(&mut staying, "here\n\r\n0\r\n\r\n");
    // The place is given back after it was counted.
    until("it is taken again", || {
        rest(asking(server.at, "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
            .starts_with("HTTP/1.1 200 ")
    });
}

/// Broken by: work for a client that has left, which goes on.
#[test]
fn who_leaves_before_the_answer_is_noticed() {
    let (say, mut asked) = channel::<Sender<()>>(9);
    let server = Server::of(patient(), move |_| {
        let say = say.clone();
        async move {
            let (working, _until_dropped) = channel(1);
            say.send(working).await.expect("a test");
            pending().await
        }
    });
    let client = asking(server.at, ASK);
    let working = asked.blocking_recv().expect("a door");
    assert!(!working.is_closed());
    drop(client);
    until("it goes on", || working.is_closed());
}

/// Broken by: answers under way that are cut off at once or waited for without end, a door that still opens,
/// or the owner's work that ends before the answers which need it.
#[test]
fn a_door_ends_with_the_answers_under_way() {
    let (say, mut answers) = channel(9);
    let server = Server::streaming(patient(), say);
    let (mut client, mut silent) = (asking(server.at, ASK), asking(server.at, ASK));
    let pieces = [answers.blocking_recv().expect("a door"), answers.blocking_recv().expect("a door")];
    for pieces in &pieces {
        pieces.blocking_send("first".into()).unwrap();
    }
    read_to(&mut client, "first\r\n");
    read_to(&mut silent, "first\r\n");
    let [fed, unfed] = pieces;
    let draining = server.door.draining();
    let (fed_by_owner, unfed_by_owner) = (fed.clone(), unfed.clone());
    server.door.spawn(async move {
        draining.await;
        // Whichever of them it is that reads on: both are told, one of them to its end.
        let _ = fed_by_owner.send("last".into()).await;
        let _ = unfed_by_owner.send("last".into()).await;
    });
    drop(fed);
    server.door.drain(Duration::from_secs(1));
    let ends = [rest(client), rest(silent)];
    assert!(ends.iter().all(|end| end.contains("last")), "{ends:?}");
    assert_eq!(ends.iter().filter(|end| end.ends_with("last\r\n0\r\n\r\n")).count(), 1, "{ends:?}");
    assert!(unfed.is_closed());
    assert!(std::net::TcpStream::connect(server.at).is_err());
}

/// Broken by: a door that waits for its whole patience where nobody is left.
#[test]
fn an_empty_door_ends_at_once() {
    let server = Server::of(patient(), |_| async { Response::new(Feed::of("here\n")) });
    let mut idle = asking(server.at, ASK);
    read_to(&mut idle, "here\n\r\n0\r\n\r\n");
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        server.door.drain(Duration::from_secs(3600));
        done.send(()).expect("a test");
    });
    assert!(is_done.recv_timeout(LIMIT).is_ok(), "it waits for a client that asks nothing");
    assert_eq!(rest(idle), "");
}
