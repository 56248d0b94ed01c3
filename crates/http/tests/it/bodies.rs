//! Bodies that come, whole or not.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use hyper::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wavetank_http::{Fault, Inflow, Room, give_back};

use crate::server::{Feed, Server, asking, patient, rest, until};

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

/// Room for a body and a half, and what one of them has of it.
struct Narrow {
    room: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl Room for Narrow {
    type Refusal = Fault;

    async fn take(&mut self, bytes: u64) -> Result<(), Fault> {
        let taken = Arc::clone(&self.room).acquire_many_owned(bytes as u32).await;
        self.held = Some(taken.expect("it is open"));
        Ok(())
    }

    fn keep(&mut self, bytes: u64) {
        self.held.iter_mut().for_each(|held| give_back(held, bytes as usize));
    }
}

/// Broken by: bodies that hold room and wait for more of it, which none of them gives back; room that stays
/// taken for what has not come.
#[test]
fn bodies_without_a_length_do_not_wait_for_each_other() {
    let room = Arc::new(Semaphore::new(MOST + MOST / 2));
    let free = Arc::clone(&room);
    let server = Server::of(patient(), move |request| {
        let mut narrow = Narrow { room: Arc::clone(&room), held: None };
        async move {
            let mut inflow = Inflow::of(request.into_body(), Duration::from_secs(3600));
            let whole = inflow.whole_in(MOST, &mut narrow).await.expect("a body");
            let held = narrow.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            Response::new(Feed::of(format!("{} bytes, {held} held\n", whole.len())))
        }
    });
    let chunk = |length: usize| format!("{length:x}\r\n{}\r\n", "x".repeat(length));
    let mut clients = [(); 2].map(|()| asking(server.at, &(head(None) + &chunk(MOST - 10))));
    until("one of them has its room, and the other waits", || free.available_permits() == 0);
    for client in &mut clients {
        client.write_all((chunk(5) + "0\r\n\r\n").as_bytes()).expect("it takes more");
    }
    for client in clients {
        let told = rest(client);
        assert!(told.contains("\n99995 bytes, 99995 held\n"), "{told}");
    }
    assert_eq!(free.available_permits(), MOST + MOST / 2);
}
