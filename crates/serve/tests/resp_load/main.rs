//! A thousand clients that write, read, die half-way and hang up half-open, in a process of its own: what it
//! holds is counted. 3 s, or what `WAVETANK_TEST_LOAD_SECONDS` says.

#[path = "../resp/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../resp/server.rs"]
#[allow(dead_code)]
mod server;

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use client::{Client, command};
use rand::RngExt;
use server::{Server, eventually};
use wavetank_model::{Draw, seeded};

const THREADS: usize = 8;
const CLIENTS: usize = 125;
const KEYS: usize = 40;
const SIZES: [usize; 5] = [10, 900, 5_000, 40_000, 300_000];

/// A value that says by itself whether it is whole.
fn value(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len.max(8)];
    for (at, word) in bytes.chunks_mut(8).enumerate() {
        word.copy_from_slice(&((at as u64).wrapping_mul(seed | 1) ^ seed).to_le_bytes()[..word.len()]);
    }
    bytes
}

fn is_whole(bytes: &[u8]) -> bool {
    let seed = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    value(seed, bytes.len()) == bytes
}

/// What a thread knows of its keys, and what it did.
struct Caller {
    address: SocketAddr,
    number: usize,
    draw: Draw,
    clients: Vec<Client>,
    /// What was acknowledged last: a seed and a length.
    known: Vec<Option<(u64, usize)>>,
    acknowledged: u64,
    unanswered: u64,
}

impl Caller {
    fn new(address: SocketAddr, number: usize) -> Self {
        let clients = (0..CLIENTS).map(|_| Client::connect(address)).collect();
        let draw = seeded(7, &format!("load {number}"));
        Self { address, number, draw, clients, known: vec![None; KEYS], acknowledged: 0, unanswered: 0 }
    }

    fn key(&self, key: usize) -> String {
        format!("known-{}-{key}", self.number)
    }

    fn run(mut self, until: Instant) -> Self {
        while Instant::now() < until {
            let (client, key) = (self.draw.random_range(0..CLIENTS), self.draw.random_range(0..KEYS));
            match self.draw.random_range(0..100) {
                0..40 => self.write(client, key),
                40..75 => self.read(client, key),
                75..82 => self.remove(client, key),
                82..88 => self.ask_several(client),
                88..92 => self.die_half_way(client),
                92..96 => self.die_unanswered(client),
                96..99 => self.hang_up(client, key),
                _ => self.babble(client),
            }
        }
        self
    }

    fn drawn(&mut self) -> (u64, usize) {
        (self.draw.random(), SIZES[self.draw.random_range(0..SIZES.len())])
    }

    fn write(&mut self, client: usize, key: usize) {
        let (seed, len) = self.drawn();
        let name = self.key(key);
        let reply = self.clients[client].ask(&[b"SET", name.as_bytes(), &value(seed, len)]);
        assert_eq!(reply, b"+OK\r\n");
        self.known[key] = Some((seed, len));
        self.acknowledged += 1;
    }

    fn read(&mut self, client: usize, key: usize) {
        let name = self.key(key);
        let reply = self.clients[client].ask(&["GET", &name]);
        self.check(key, &reply);
        self.acknowledged += 1;
    }

    fn check(&self, key: usize, reply: &[u8]) {
        let expected = self.known[key]
            .map_or_else(|| b"$-1\r\n".to_vec(), |(seed, len)| command(&[value(seed, len)]).split_off(4));
        assert!(reply == expected, "{} was acknowledged and is lost", self.key(key));
    }

    fn remove(&mut self, client: usize, key: usize) {
        let name = self.key(key);
        let expected = format!(":{}\r\n", u8::from(self.known[key].is_some()));
        assert_eq!(self.clients[client].say(&format!("DEL {name}")), expected);
        self.known[key] = None;
        self.acknowledged += 1;
    }

    fn ask_several(&mut self, client: usize) {
        let keys: Vec<usize> = (0..5).map(|_| self.draw.random_range(0..KEYS)).collect();
        let names: Vec<String> = keys.iter().map(|key| self.key(*key)).collect();
        let there = keys.iter().filter(|key| self.known[**key].is_some()).count();
        let words = |name: &str| [name.to_owned()].into_iter().chain(names.clone()).collect::<Vec<_>>();
        let client = &mut self.clients[client];
        client.send(&[command(&words("EXISTS")), command(&words("MGET"))].concat());
        assert_eq!(client.reply().unwrap(), format!(":{there}\r\n").into_bytes());
        let reply = client.reply().unwrap();
        let expected: usize = keys.iter().filter_map(|key| self.known[*key]).map(|(_, len)| len.max(8)).sum();
        assert!(reply.len() > expected && reply.starts_with(b"*5\r\n"));
        self.acknowledged += 2;
    }

    /// Its value never becomes one.
    fn die_half_way(&mut self, client: usize) {
        let (seed, len) = self.drawn();
        let key = self.draw.random_range(0..KEYS);
        let sent = command(&[b"SET", self.key(key).as_bytes(), &value(seed, len)]);
        let cut = self.draw.random_range(1..sent.len());
        self.clients[client].send(&sent[..cut]);
        self.clients[client] = Client::connect(self.address);
    }

    /// Whether its value becomes one nobody knows; if so, a whole one.
    fn die_unanswered(&mut self, client: usize) {
        let (seed, len) = self.drawn();
        let name = format!("unknown-{}", self.draw.random_range(0..KEYS));
        self.clients[client].send(&command(&[b"SET", name.as_bytes(), &value(seed, len)]));
        self.clients[client] = Client::connect(self.address);
        self.unanswered += 1;
    }

    fn hang_up(&mut self, client: usize, key: usize) {
        let name = self.key(key);
        let client = &mut self.clients[client];
        client.send(&command(&["GET", &name]));
        client.finish();
        let reply = client.rest();
        *client = Client::connect(self.address);
        self.check(key, &reply);
        self.acknowledged += 1;
    }

    fn babble(&mut self, client: usize) {
        let client = &mut self.clients[client];
        client.send(b"*1\r\n:nonsense\r\n");
        assert_eq!(client.rest(), b"-ERR Protocol error: expected '$', got ':'\r\n");
        *client = Client::connect(self.address);
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4096
}

/// Broken by: a write that is acknowledged and not there, half a value, a descriptor or memory that stays, a
/// count that is made twice or not at all.
#[test]
fn a_thousand_clients_in_trouble_lose_nothing_and_leave_nothing() {
    let seconds = std::env::var("WAVETANK_TEST_LOAD_SECONDS").map_or(3, |text| text.parse().unwrap());
    let server = Server::usual();
    let before = descriptors();
    let address = server.address();
    let mut callers: Vec<Caller> = (0..THREADS).map(|number| Caller::new(address, number)).collect();
    let mut sizes = Vec::new();
    // In two halves: what grows with time grows in the second one too.
    for _ in 0..2 {
        let until = Instant::now() + Duration::from_millis(seconds * 500);
        let running: Vec<_> =
            callers.into_iter().map(|caller| thread::spawn(move || caller.run(until))).collect();
        callers = running.into_iter().map(|thread| thread.join().unwrap()).collect();
        sizes.push(resident_bytes());
    }
    assert!(sizes[1] < sizes[0] + sizes[0] / 2 + (64 << 20), "memory grows: {sizes:?}");

    let mut client = server.client();
    for caller in &callers {
        for key in 0..KEYS {
            let name = caller.key(key);
            caller.check(key, &client.ask(&["GET", &name]));
        }
    }
    for key in 0..KEYS {
        let reply = client.ask(&["GET", &format!("unknown-{key}")]);
        let at = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        assert!(reply == b"$-1\r\n" || is_whole(&reply[at..reply.len() - 2]), "half a value");
    }
    let acknowledged: u64 = callers.iter().map(|caller| caller.acknowledged).sum();
    let unanswered: u64 = callers.iter().map(|caller| caller.unanswered).sum();
    drop((callers, client));
    eventually("all are gone", || server.door.status().connections == 0);
    assert_eq!((descriptors(), server.door.status().memory_bytes), (before, 0));

    let counters = &server.cache.counters;
    assert_eq!(counters.connections_opened.total(), counters.connections_closed.total());
    let hits = counters.l1_hits.total() + counters.l2_hits.total();
    assert_eq!(counters.lookups.total(), hits + counters.misses.total());
    let asked = acknowledged + ((THREADS + 1) * KEYS) as u64;
    let commands = counters.commands.total();
    assert!((asked..=asked + unanswered).contains(&commands), "{commands} of {asked} and {unanswered}");
    assert_eq!(counters.command_errors.total(), 0);
    println!("{commands} commands, {} connections", counters.connections_opened.total());
}
