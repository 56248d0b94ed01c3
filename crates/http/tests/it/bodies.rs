//! Bodies that come, whole or not.

use std::io::Write;
use std::time::Duration;

use hyper::Response;
use wavetank_http::{Fault, Inflow};

use crate::server::{Feed, Server, asking, patient, rest};

const MOST: usize = 100_000;

/// Says what has come of a body.
fn echo(patience: Duration) -> Server {
    Server::of(patient(), move |request| async move {
        let told = match Inflow::of(request.into_body(), patience).whole(MOST).await {
            Ok(whole) => format!("{} bytes", whole.len()),
            Err(Fault::Slow) => "slow".to_owned(),
            Err(Fault::Broken(_)) => "broken".to_owned(),
            Err(Fault::Long(most)) => format!("more than {most}"),
        };
        Response::new(Feed::of(told + "\n"))
    })
}

/// The lines before a body whose length is said, or is not.
fn head(length: Option<usize>) -> String {
    let length =
        length.map_or("transfer-encoding: chunked".to_owned(), |length| format!("content-length: {length}"));
    format!("POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{length}\r\n\r\n")
}

/// Broken by: a limit that only counts what a client says it will send, or only what has come, or that is off
/// by one.
#[test]
fn a_whole_body_has_a_limit() {
    let server = echo(Duration::from_secs(3600));
    let chunk = |length: usize| format!("{length:x}\r\n{}\r\n", "x".repeat(length));
    let rows = [
        (head(Some(0)), "\n0 bytes\n"),
        (head(Some(MOST)) + &"x".repeat(MOST), "\n100000 bytes\n"),
        (head(Some(MOST + 1)), "\nmore than 100000\n"),
        (head(None) + &chunk(MOST / 2) + &chunk(MOST / 2) + "0\r\n\r\n", "\n100000 bytes\n"),
        (head(None) + &chunk(MOST / 2) + &chunk(MOST / 2 + 1), "\nmore than 100000\n"),
        (head(None) + "no number\r\n", "\nbroken\n"),
    ];
    for (asked, wanted) in rows {
        let told = rest(asking(server.at, &asked));
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
}

/// Broken by: a client that sends a byte now and then and is waited for.
#[test]
fn a_body_that_trickles_is_given_up() {
    let server = echo(Duration::from_millis(200));
    let mut client = asking(server.at, &head(Some(MOST)));
    let told = std::thread::spawn({
        let client = client.try_clone().expect("a socket");
        move || rest(client)
    });
    while !told.is_finished() {
        // It may have refused by now.
        let _ = client.write_all(b"x");
        std::thread::sleep(Duration::from_millis(20));
    }
    let told = told.join().expect("it was told");
    assert!(told.contains("\nslow\n"), "{told}");
}
