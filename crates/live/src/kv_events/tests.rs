//! Subscribers that are slow, and what is asked for again, with limits that are met soon.

use tokio::runtime::Runtime;
use zeromq::{DealerSocket, SubSocket};
use zeromq::{Socket, SocketRecv, SocketSend, ZmqMessage};

use super::*;

const LIMITS: Limits = Limits { queued: 64, waiting_bytes: 4 << 20, kept_bytes: 1 << 20 };

fn plan(buffer: usize) -> KvEventsPlan {
    let free = "tcp://127.0.0.1:0".to_owned();
    let args = KvEventsArgs {
        endpoint: free.clone(),
        topic: "kv".to_owned(),
        replay: Some(free),
        buffer: Some(buffer),
        encoding: None,
    };
    KvEventsPlan::of(&args, 1).unwrap()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn subscriber(endpoint: &str, topic: &str) -> SubSocket {
    let mut socket = SubSocket::new();
    socket.connect(endpoint).await.unwrap();
    socket.subscribe(topic).await.unwrap();
    socket
}

fn sequence(message: &ZmqMessage) -> u64 {
    u64::from_be_bytes(message.get(1).unwrap()[..].try_into().unwrap())
}

/// Publishes until something is dropped because a subscriber does not take it; how many there were then.
fn publish_until_full(publisher: &mut Publisher) -> u64 {
    for _ in 0..10_000 {
        publisher.publish(0, vec![7; 64 << 10]);
        assert!(publisher.used() <= LIMITS.waiting_bytes + LIMITS.kept_bytes);
        if publisher.counts().dropped() > 0 {
            assert!(publisher.used() > LIMITS.waiting_bytes / 2);
            return publisher.counts().published() + publisher.counts().dropped();
        }
        while publisher.queued() > 0 {
            std::thread::yield_now();
        }
    }
    panic!("{} published, nothing is full", publisher.counts().published());
}

/// Broken by: a publisher that waits for a subscriber, memory without a limit, a sequence number used again.
#[test]
fn a_subscriber_that_takes_nothing_costs_batches_and_no_memory() {
    let runtime = runtime();
    let (mut publisher, endpoints) = Publisher::start(&plan(100), 1, LIMITS).unwrap();
    let stuck = runtime.block_on(subscriber(&endpoints.events[0], ""));
    let all = publish_until_full(&mut publisher);
    drop(stuck);
    // Another one gets what comes as soon as nobody is waited for, and sees that batches are missing.
    let seen = runtime.block_on(async {
        let mut live = subscriber(&endpoints.events[0], "kv").await;
        loop {
            publisher.publish(0, vec![8; 100]);
            let soon = tokio::time::timeout(std::time::Duration::from_millis(20), live.recv());
            if let Ok(message) = soon.await {
                return message.unwrap();
            }
        }
    });
    assert_eq!((&seen.get(0).unwrap()[..], seen.get(2).unwrap().len()), (&b"kv"[..], 100));
    assert!(sequence(&seen) >= all, "every batch had its own number");
    publisher.end();
}

async fn ask(socket: &mut DealerSocket, first: u64) -> Vec<u64> {
    let mut question = ZmqMessage::from(Vec::new());
    question.push_back(first.to_be_bytes().to_vec().into());
    socket.send(question).await.unwrap();
    let mut got = Vec::new();
    loop {
        let answer = socket.recv().await.unwrap().into_vec();
        let [nothing, topic, number, payload] = <[_; 4]>::try_from(answer).unwrap();
        assert!(nothing.is_empty());
        if payload.is_empty() {
            assert_eq!((&topic[..], &number[..]), (&b""[..], &[0xff; 8][..]));
            return got;
        }
        let number = u64::from_be_bytes(number[..].try_into().unwrap());
        assert_eq!((&topic[..], &payload[..]), (&b"kv"[..], &[number as u8; 5][..]));
        got.push(number);
    }
}

/// Broken by: an end that is not marked, batches beyond the limit, a number that does not fit its batch, or a
/// question of another form that ends the answers.
#[test]
fn the_last_batches_are_sent_again() {
    let (mut publisher, endpoints) = Publisher::start(&plan(10), 1, LIMITS).unwrap();
    (0..25u8).for_each(|number| publisher.publish(0, vec![number; 5]));
    runtime().block_on(async {
        let mut socket = DealerSocket::new();
        socket.connect(&endpoints.replay[0]).await.unwrap();
        while ask(&mut socket, 24).await.is_empty() {}
        socket.send(ZmqMessage::from("what?")).await.unwrap();
        assert_eq!(ask(&mut socket, 0).await, (15..25).collect::<Vec<_>>());
        assert_eq!(ask(&mut socket, 22).await, [22, 23, 24]);
        assert!(ask(&mut socket, 25).await.is_empty());
    });
    publisher.end();
}

/// Broken by: a port that is taken being found out by nobody.
#[test]
fn a_port_that_is_taken_is_said() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", taken.local_addr().unwrap());
    let args = KvEventsArgs { endpoint, ..KvEventsArgs::default() };
    let error = Publisher::start(&KvEventsPlan::of(&args, 1).unwrap(), 1, LIMITS).unwrap_err();
    assert_eq!(error.place(), Some("--kv-events"));
}
