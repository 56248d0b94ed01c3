//! A router's side: it follows one worker's events, asks for those it missed, and knows what is cached.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeromq::{DealerSocket, Socket, SocketRecv, SocketSend, SubSocket, ZmqMessage};

use super::message_pack::Value;

/// What is known of a worker.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) rank: u64,
    /// The blocks it has, each with all tokens from the start; what it had last before all were cleared.
    pub(crate) held: HashMap<u64, Vec<u64>>,
    pub(crate) removed: u64,
}

pub(crate) struct Subscriber {
    events: SubSocket,
    replay: DealerSocket,
    next: u64,
    seen: Seen,
    is_over: bool,
}

impl Subscriber {
    pub(crate) async fn connect(events: &str, replay: &str) -> Self {
        let (mut live, mut missed) = (SubSocket::new(), DealerSocket::new());
        live.connect(events).await.unwrap();
        live.subscribe("kv-").await.unwrap();
        missed.connect(replay).await.unwrap();
        Self { events: live, replay: missed, next: 0, seen: Seen::default(), is_over: false }
    }

    /// Follows until all blocks are cleared; says so when it has heard of any.
    pub(crate) async fn follow(mut self, heard: Arc<AtomicUsize>) -> Seen {
        while !self.is_over {
            let message = self.events.recv().await.unwrap().into_vec();
            heard.fetch_add(usize::from(self.next == 0), Ordering::Relaxed);
            let [topic, sequence, payload] = <[_; 3]>::try_from(message).unwrap();
            assert_eq!(topic, "kv-events");
            let sequence = u64::from_be_bytes(sequence[..].try_into().unwrap());
            if sequence > self.next {
                self.catch_up().await;
            }
            // Those asked for may be newer than this one.
            if sequence == self.next {
                self.take(&payload);
            }
        }
        self.seen
    }

    /// Takes everything from the one that is missing on.
    async fn catch_up(&mut self) {
        let mut question = ZmqMessage::from(Vec::new());
        question.push_back(self.next.to_be_bytes().to_vec().into());
        self.replay.send(question).await.unwrap();
        loop {
            let answer = self.replay.recv().await.unwrap().into_vec();
            let [_, _, sequence, payload] = <[_; 4]>::try_from(answer).unwrap();
            if payload.is_empty() {
                return;
            }
            assert_eq!(sequence[..], self.next.to_be_bytes());
            self.take(&payload);
        }
    }

    fn take(&mut self, payload: &[u8]) {
        self.next += 1;
        let batch = Value::of(payload);
        let [Value::Float(at), events, rank] = batch.list() else { panic!("{batch:?}") };
        assert!(*at > 1.7e9, "seconds since 1970");
        self.seen.rank = rank.natural();
        for event in events.list() {
            self.apply(event);
        }
    }

    fn apply(&mut self, event: &Value) {
        assert!(!self.is_over);
        let field = |name: &str, place: usize| match event {
            Value::Map(_) => event.field(name).clone(),
            _ => event.list()[place].clone(),
        };
        match field("type", 0).text() {
            "BlockStored" => {
                let (hashes, size) = (field("block_hashes", 1).naturals(), field("block_size", 4).natural());
                let tokens = field("token_ids", 3).naturals();
                assert_eq!(tokens.len() as u64, hashes.len() as u64 * size);
                let mut before = match field("parent_block_hash", 2) {
                    Value::Nil => Vec::new(),
                    parent => self.seen.held[&parent.natural()].clone(),
                };
                for (hash, tokens) in hashes.into_iter().zip(tokens.chunks(size as usize)) {
                    before.extend_from_slice(tokens);
                    assert!(self.seen.held.insert(hash, before.clone()).is_none(), "it was there");
                }
                assert_eq!(field("medium", 6).text(), "GPU");
            }
            "BlockRemoved" => {
                for hash in field("block_hashes", 1).naturals() {
                    assert!(self.seen.held.remove(&hash).is_some(), "it was not there");
                    self.seen.removed += 1;
                }
            }
            "AllBlocksCleared" => self.is_over = true,
            other => panic!("what is {other:?}?"),
        }
    }
}
