//! What clients may not: too many, too much, too slow; and what they may not lose.

use std::io::Write;
use std::thread;
use std::time::Duration;

use wavetank_serve::resp::Settings;

use crate::client::{Client, command};
use crate::server::{Server, cache, eventually, settings};

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

/// Broken by: a limit that counts those who left, or does not say why.
#[test]
fn no_more_clients_than_may_be() {
    let server = Server::with(Settings { connections: 3, ..settings() });
    let mut clients: Vec<Client> = (0..3).map(|_| server.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.say("PING"), "+PONG\r\n"));
    assert_eq!(server.client().rest(), b"-ERR max number of clients reached\r\n");
    clients.pop();
    eventually("one is gone", || server.door.status().connections == 2);
    assert_eq!(server.client().say("PING"), "+PONG\r\n");
    assert_eq!(server.cache.counters.connections_refused.total(), 1);
}

/// Broken by: a thousand clients that share less than a thousand places, or one that is forgotten.
#[test]
fn a_thousand_clients_are_served() {
    let server = Server::usual();
    let mut clients: Vec<Client> = (0..1000).map(|_| server.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&command(&["SET", &number.to_string(), &number.to_string()]));
    }
    for client in &mut clients {
        assert_eq!(client.reply().unwrap(), b"+OK\r\n");
    }
    assert_eq!(server.door.status().connections, 1000);
    for (number, client) in clients.iter_mut().enumerate() {
        let text = number.to_string();
        assert_eq!(client.say(&format!("GET {number}")), format!("${}\r\n{text}\r\n", text.len()));
    }
    drop(clients);
    eventually("all are gone", || server.door.status().connections == 0);
}

/// Broken by: a large argument that is kept though no command wants it, or an error that leaves its bytes to
/// be read as commands.
#[test]
fn large_arguments_that_are_no_values_are_refused_without_being_kept() {
    let server = Server::usual();
    let mut client = server.client();
    let large = "x".repeat(100 << 20);
    let refused = "-ERR an argument that is not a value is too large\r\n";
    for args in
        [vec!["ECHO", &large], vec!["GET", &large], vec!["SET", &large, "1"], vec!["SET", "a", "1", &large]]
    {
        assert_eq!(client.ask(&args), refused.as_bytes(), "{}", args[0]);
        assert_eq!(client.say("PING"), "+PONG\r\n");
    }
    assert_eq!(client.ask(&[&large]), b"-ERR unknown command '', with args beginning with: \r\n");
    let key = "k".repeat(16_000);
    assert!(client.say(&format!("GET {key}")).starts_with("-ERR the key has more than "));
    assert!(client.say(&format!("SET {key} 1")).starts_with("-ERR the key has more than "));
    assert!(client.say(&format!("MSET a 1 {key} 1")).starts_with("-ERR the key has more than "));
    assert_eq!(client.say("EXISTS a"), ":0\r\n", "all or nothing");
}

/// Broken by: values on their way in that count for nobody.
#[test]
fn values_on_their_way_in_are_bounded_together() {
    const MIB: usize = 1 << 20;
    let server = Server::with(Settings { memory_bytes: 10 * MIB as u64, ..settings() });
    let begin = |bytes: usize| {
        let mut client = server.client();
        client.send(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${bytes}\r\n").as_bytes());
        client
    };
    let mut first = begin(6 * MIB);
    eventually("it has room", || server.door.status().memory_bytes == 6 * MIB as u64);
    let mut second = begin(5 * MIB);
    let rest = |client: &mut Client, bytes: usize| {
        client.send(&vec![b'x'; bytes]);
        client.send(b"\r\n");
        String::from_utf8(client.reply().unwrap()).unwrap()
    };
    assert_eq!(rest(&mut second, 5 * MIB), OOM);
    assert_eq!(rest(&mut first, 6 * MIB), "+OK\r\n");
    assert_eq!(second.ask(&["SET", "k", &"y".repeat(5 * MIB)]), b"+OK\r\n", "when there is room again");
    assert_eq!(server.cache.counters.refused_stores.total(), 1);
    eventually("nothing is kept", || server.door.status().memory_bytes == 0);
}

/// Broken by: room of a value whose client went away half-way that is not given back.
#[test]
fn clients_that_die_leave_no_room_behind() {
    const BYTES: u64 = 24 << 20;
    let server = Server::over(cache(64 << 20, Vec::new(), Duration::from_secs(1)), settings());
    for round in 0..20 {
        let mut client = server.client();
        client.send(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${BYTES}\r\n").as_bytes());
        client.send(&vec![b'x'; (BYTES / 2) as usize + round]);
        drop(client);
    }
    eventually("all are gone", || server.door.status().connections == 0);
    eventually("their memory is free", || server.door.status().memory_bytes == 0);
    eventually("their room is free", || server.cache.storage.status().staged_bytes == 0);
    let mut client = server.client();
    assert_eq!(client.say("EXISTS k"), ":0\r\n", "half a value is none");
    let value = "v".repeat(BYTES as usize);
    assert_eq!(client.ask(&["MSET", "a", &value, "b", &value]), b"+OK\r\n");
}

/// Broken by: commands that are carried out though nobody takes their replies.
#[test]
fn replies_that_nobody_takes_stop_the_commands() {
    const VALUE: usize = 1 << 20;
    let server = Server::with(Settings { connection_bytes: 4 << 20, ..settings() });
    let mut client = server.client();
    client.ask(&["SET", "k", &"v".repeat(VALUE)]);
    let asked = 200;
    client.send(&command(&["GET", "k"]).repeat(asked));
    thread::sleep(Duration::from_millis(100));
    let done = server.cache.counters.l1_hits.total();
    assert!(done < asked as u64 / 2, "{done} were carried out");
    assert!(server.door.status().memory_bytes <= 5 << 20, "{:?}", server.door.status());
    for _ in 0..asked {
        assert_eq!(client.reply().unwrap().len(), VALUE + 12);
    }
}

/// Broken by: replies of all clients that nobody bounds, or clients that are not served again afterwards.
#[test]
fn replies_that_nobody_takes_are_bounded_together() {
    const VALUE: usize = 4 << 20;
    let server = Server::with(Settings { memory_bytes: 8 << 20, ..settings() });
    let mut clients: Vec<Client> = (0..10).map(|_| server.client()).collect();
    clients[0].ask(&["SET", "k", &"v".repeat(VALUE)]);
    for client in &mut clients {
        client.send(&command(&["GET", "k"]).repeat(10));
    }
    thread::sleep(Duration::from_millis(100));
    // The kernel has some of it, each client the reply of one command.
    let most = (8 << 20) + clients.len() * VALUE;
    assert!(server.door.status().memory_bytes <= most as u64, "{:?}", server.door.status());
    for client in &mut clients {
        for _ in 0..10 {
            assert_eq!(client.reply().unwrap().len(), VALUE + 12);
        }
    }
}

/// Broken by: a slow client that stays, or a quiet one that must go though it did nothing wrong.
#[test]
fn slow_clients_are_cut_off_and_quiet_ones_are_not() {
    let slow_timeout = Duration::from_millis(400);
    let server = Server::with(Settings { slow_timeout, ..settings() });
    let mut quiet = server.client();
    quiet.ask(&["SET", "k", &"v".repeat(64 << 20)]);
    let mut half = server.client();
    half.send(b"*2\r\n$3\r\nGET\r\n$1");
    let mut value = server.client();
    value.send(b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1000000\r\nabc");
    let mut deaf = server.client();
    deaf.send(&command(&["GET", "k"]));
    let timed_out = || server.cache.counters.connections_timed_out.total();
    eventually("the slow ones are gone", || (server.door.status().connections, timed_out()) == (1, 3));
    assert_eq!((half.rest(), value.rest()), (Vec::new(), Vec::new()));
    assert_eq!(quiet.say("EXISTS x"), ":0\r\n");
    drop(deaf);
}

/// Broken by: a timeout of quiet clients that is never looked at.
#[test]
fn quiet_clients_are_cut_off_where_that_is_wanted() {
    let server = Server::with(Settings { idle_timeout: Some(Duration::from_millis(300)), ..settings() });
    let mut client = server.client();
    assert_eq!(client.say("PING"), "+PONG\r\n");
    assert_eq!(client.rest(), b"");
    eventually("it is counted", || server.cache.counters.connections_timed_out.total() == 1);
}

/// A client that sends its last command and says so has its replies.
/// Broken by: closing when the other side has nothing more to say.
#[test]
fn half_closed_connections_have_their_replies() {
    let server = Server::usual();
    let mut client = server.client();
    let value = "v".repeat(8 << 20);
    client.ask(&["SET", "k", &value]);
    client.send(&command(&["GET", "k"]).repeat(5));
    client.finish();
    assert_eq!(client.rest().len(), 5 * (value.len() + 12));
    eventually("it is gone", || server.door.status().connections == 0);
}

#[test]
fn not_everybody_may_remove_everything() {
    let server = Server::usual();
    let mut client = server.client();
    client.say("SET a 1");
    for name in ["FLUSHALL", "FLUSHDB"] {
        let told = client.say(name);
        assert!(told.starts_with(&format!("-ERR {name} is not enabled")), "{told}");
    }
    assert_eq!(client.say("EXISTS a"), ":1\r\n");
}

/// Broken by: leases that are not counted, not bounded, not ended by reading, or never too old.
#[test]
fn keys_that_were_seen_are_leased_within_bounds() {
    let server = Server::with(Settings {
        l1_bytes: Some(1000),
        lease_share: 0.5,
        lease: Duration::from_millis(300),
        ..settings()
    });
    let (mut first, mut second) = (server.client(), server.client());
    for name in ["a", "b", "c"] {
        first.ask(&["SET", name, &"v".repeat(200)]);
    }
    let leased = || server.door.status().leased_bytes;
    let counted = || {
        let counters = &server.cache.counters;
        [&counters.leases, &counters.leases_refused, &counters.leases_expired].map(|it| it.total())
    };
    assert_eq!(first.say("EXISTS a b"), ":2\r\n");
    assert_eq!(first.say("EXISTS c"), ":1\r\n", "there, leased or not");
    assert_eq!(first.say("EXISTS a"), ":1\r\n");
    eventually("two fit", || (leased(), counted()) == (400, [2, 1, 0]));
    second.say("GET a");
    assert_eq!(leased(), 400, "somebody else's reading ends no lease");
    first.say("GET a");
    assert_eq!(leased(), 200);
    first.say("EXISTS c");
    eventually("there is room for another", || (leased(), counted()) == (400, [3, 1, 0]));
    drop(first);
    eventually("they are too old", || (leased(), counted()) == (0, [3, 1, 2]));
}

/// Broken by: a door that cuts off replies, takes more clients, or never closes.
#[test]
fn a_drained_door_answers_what_was_read() {
    let server = Server::usual();
    let mut client = server.client();
    let value = "v".repeat(32 << 20);
    client.ask(&["SET", "k", &value]);
    let mut idle = server.client();
    assert_eq!(idle.say("PING"), "+PONG\r\n");
    client.send(&command(&["GET", "k"]));
    eventually("it was read", || server.cache.counters.l1_hits.total() == 1);
    let address = server.address();
    let door = server.door;
    let draining = thread::spawn(move || door.drain(Duration::from_secs(20)));
    assert_eq!(client.reply().unwrap().len(), value.len() + 13);
    assert_eq!((client.rest().len(), idle.rest().len()), (0, 0));
    draining.join().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
    let counters = &server.cache.counters;
    assert_eq!(counters.connections_opened.total(), counters.connections_closed.total());
}

/// Broken by: a door that waits for a client that takes nothing.
#[test]
fn a_drained_door_does_not_wait_for_ever() {
    let server = Server::usual();
    let mut client = server.client();
    client.ask(&["SET", "k", &"v".repeat(64 << 20)]);
    client.send(&command(&["GET", "k"]));
    let _ = client.stream.flush();
    eventually("it was read", || server.cache.counters.l1_hits.total() == 1);
    let Server { door, .. } = server;
    door.drain(Duration::from_millis(50));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let refused = |settings: Settings| settings.check().unwrap_err().to_string();
    assert!(refused(Settings { threads: 0, ..settings() }).contains("threads"));
    assert!(refused(Settings { user: Some("u".to_owned()), ..settings() }).contains("password"));
    assert!(refused(Settings { lease_share: 1.5, ..settings() }).contains("lease_share"));
    assert!(refused(Settings { key_bytes: 1 << 20, ..settings() }).contains("key_bytes"));
    assert!(refused(Settings { connection_bytes: 1, ..settings() }).contains("connection_bytes"));
}

/// Broken by: values on their way out that count as if they were written again.
#[test]
fn who_takes_nothing_keeps_nobody_from_writing() {
    let server = Server::with(Settings { memory_bytes: 8 << 20, ..settings() });
    let mut greedy = server.client();
    greedy.ask(&["SET", "k", &"v".repeat(1 << 20)]);
    let keys = vec!["k"; 500];
    greedy.send(&command(&[&["MGET"][..], &keys].concat()));
    eventually("much is under way", || server.door.status().memory_bytes > 300 << 20);
    assert_eq!(server.client().ask(&["SET", "x", &"v".repeat(100_000)]), b"+OK\r\n");
}

/// Broken by: a reply of which every small value is copied, however many there are.
#[test]
fn a_reply_that_would_be_too_large_is_refused() {
    let server = Server::with(Settings { connection_bytes: 1 << 20, ..settings() });
    let mut client = server.client();
    client.ask(&["SET", "k", &"v".repeat(1000)]);
    let many = vec!["k"; 2000];
    assert!(client.ask(&[&["MGET"][..], &many].concat()).starts_with(b"-ERR the reply is too large"));
    assert!(client.ask(&["MGET", "k", "k"]).starts_with(b"*2\r\n"));
}

/// Broken by: a lease that is renewed and goes on holding what was there before.
#[test]
fn a_lease_holds_what_is_there_when_it_is_renewed() {
    let lease = Duration::from_secs(100);
    let seen = Settings { lease, l1_bytes: Some(1 << 20), lease_share: 1.0, ..settings() };
    let server = Server::over(cache(1 << 20, Vec::new(), Duration::from_secs(1)), seen);
    let (mut reader, mut writer) = (server.client(), server.client());
    for value in ["first", "second"] {
        writer.ask(&["SET", "k", value]);
        assert_eq!(reader.say("EXISTS k"), ":1\r\n");
    }
    for number in 0..200 {
        writer.ask(&["SET", &number.to_string(), &"v".repeat(20_000)]);
    }
    assert_eq!(reader.say("GET k"), "$6\r\nsecond\r\n");
}
