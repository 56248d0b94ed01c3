//! The same commands to `redis-server` and to us: replies are equal, byte for byte.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use wavetank_serve::Secret;
use wavetank_serve::resp::Settings;

use crate::client::Client;
use crate::peer::Peer;
use crate::server::{Server, settings};

/// Both, with the same password.
fn both(password: Option<&str>) -> Option<(Server, Peer)> {
    let more: Vec<&str> = password.map_or(Vec::new(), |word| vec!["--requirepass", word]);
    let peer = Peer::start(&more)?;
    let password = password.map(Secret::of);
    let ours = Server::with(Settings { password, is_flush_enabled: true, ..settings() });
    Some((ours, peer))
}

/// Asks both; `_` in a word is a blank.
fn compare(ours: &mut Client, theirs: &mut Client, lines: &[&str]) {
    for line in lines {
        let args: Vec<String> = line.split(' ').map(|word| word.replace('_', " ")).collect();
        let reply = |client: &mut Client| String::from_utf8_lossy(&client.ask(&args)).into_owned();
        assert_eq!(reply(ours), reply(theirs), "{line}");
    }
}

const COMMANDS: &[&str] = &[
    "PING",
    "ping",
    "PING hello",
    "PING a b",
    "ECHO hi",
    "ECHO",
    "ECHO a b",
    "SELECT 0",
    "SELECT 1",
    "SELECT x",
    "SELECT",
    "SELECT 01",
    "SELECT -1",
    "GET",
    "GET a",
    "SET a",
    "SET a 1",
    "GET a",
    "GET a b",
    "SET a 2 NX",
    "GET a",
    "SET b 2 XX",
    "GET b",
    "SET b 2 NX",
    "SET b 3 XX",
    "GET b",
    "SET a 9 GET",
    "SET c 9 GET",
    "SET a 8 NX GET",
    "SET d 8 NX GET",
    "SET e 8 XX GET",
    "GET e",
    "GET d",
    "SET a 7 XX GET",
    "SET a 1 NX XX",
    "SET a 1 XX NX",
    "SET a 1 foo",
    "SET a 1 EX",
    "SET a 1 EX 0",
    "SET a 1 EX -1",
    "SET a 1 EX x",
    "SET a 1 PX 1.5",
    "SET a 1 EX 10 PX 10",
    "SET a 1 EX 9223372036854775807",
    "SET a 1 PX 9223372036854775807",
    "SET a 1 EX 9223372036854775808",
    "SET a 1 EX 100 GET NX",
    "SET a 1 EX 100",
    "SET a 1 PX 100000 nx",
    "SET a 1 nx nx",
    "SET a 1 ex +5",
    "SET a 1 GET GET",
    "GET a",
    "EXISTS a",
    "EXISTS a a b zz",
    "EXISTS",
    "EXISTS zz",
    "STRLEN a",
    "STRLEN zz",
    "STRLEN",
    "STRLEN a b",
    "TTL a",
    "PTTL a",
    "TTL zz",
    "PTTL zz",
    "TTL",
    "PTTL a b",
    "SET t 1 EX 100",
    "TTL t",
    "SET t 1 PX 100400",
    "TTL t",
    "SET t 1 PX 100900",
    "TTL t",
    "SET t 2",
    "TTL t",
    "DEL t",
    "SET r Hello_World",
    "GETRANGE r 0 4",
    "GETRANGE r -5 -1",
    "GETRANGE r 0 -1",
    "GETRANGE r 5 2",
    "GETRANGE r -1 -5",
    "GETRANGE r 100 200",
    "GETRANGE r 0 200",
    "GETRANGE r -200 2",
    "GETRANGE r x 2",
    "GETRANGE r 0 2.5",
    "GETRANGE zz 0 -1",
    "GETRANGE r 0",
    "GETRANGE r -9223372036854775808 9223372036854775807",
    "GETRANGE r 0 9223372036854775808",
    "MSET k1 v1 k2 v2",
    "MSET k1",
    "MSET k1 v1 k2",
    "MSET k1 a k1 b",
    "MGET k1 k2 zz k1",
    "MGET",
    "GET k1",
    "DBSIZE",
    "DBSIZE x",
    "DEL k1 k1 zz",
    "DEL",
    "UNLINK k2 zz",
    "UNLINK",
    "MGET k1 k2",
    "CLIENT SETNAME me",
    "CLIENT GETNAME",
    "CLIENT SETNAME a_b",
    "CLIENT SETNAME",
    "CLIENT GETNAME x",
    "CLIENT NO-EVICT on",
    "CLIENT NO-EVICT maybe",
    "CLIENT",
    "CLIENT foo",
    "CLIENT ID x",
    "CONFIG GET save",
    "CONFIG GET appendonly",
    "CONFIG GET databases",
    "CONFIG GET timeout",
    "CONFIG GET nothing",
    "CONFIG GET",
    "CONFIG",
    "CONFIG foo",
    "COMMAND COUNT x",
    "COMMAND foo",
    "COMMAND INFO nothing",
    "COMMAND DOCS nothing",
    "foo",
    "foo bar",
    "FOO bar baz quux",
    "foo a_b",
    "AUTH x",
    "AUTH default x",
    "AUTH nobody x",
    "AUTH",
    "AUTH a b c",
    "HELLO 4",
    "HELLO x",
    "HELLO 2 foo",
    "HELLO 2 AUTH a",
    "HELLO 2 SETNAME",
    "HELLO 2 SETNAME a_b",
    "HELLO 2 AUTH nobody x",
    "RESET x",
    "SET empty ",
    "GET empty",
    "STRLEN empty",
    "GETRANGE empty 0 -1",
    "EXISTS empty",
    "SET  x",
    "GET ",
    "FLUSHALL foo",
    "FLUSHALL ASYNC SYNC",
    "FLUSHDB ASYNC",
    "DBSIZE",
    "SET a 1",
    "FLUSHALL",
    "GET a",
    "CLIENT SETNAME x",
    "RESET",
    "CLIENT GETNAME",
];

/// Broken by: any reply that is worded, counted or ended differently.
#[test]
fn replies_are_those_of_redis() {
    let Some((ours, theirs)) = both(None) else { return };
    for version in ["2", "3"] {
        let (mut ours, mut theirs) = (ours.client(), theirs.client());
        let hello = |client: &mut Client| masked(&client.say(&format!("HELLO {version}")));
        assert_eq!(hello(&mut ours), hello(&mut theirs));
        compare(&mut ours, &mut theirs, COMMANDS);
    }
}

/// What a person may type: words, quotes of both kinds, escapes, some of them wrong.
fn typed() -> impl Strategy<Value = String> {
    let parts = [
        "a", "\"", "\"", "'", " ", " ", "\\n", "\\x4", "\\x41", "\\\"", "\\'", "\\", "\t", "é", "\x0b",
        "\\a\\b", "x",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..9).prop_map(|parts| parts.concat())
}

/// Broken by: an escape, a quote or a blank that is read otherwise, or an error that is worded differently.
#[test]
fn lines_that_people_type_are_read_as_redis_reads_them() {
    let Some((ours, theirs)) = both(None) else { return };
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut understood, mut refused) = (0, 0);
    for _ in 0..800 {
        let line = format!("set k {}\r\nget k\r\nquit\r\n", typed().new_tree(&mut runner).unwrap().current());
        let told = |mut client: Client| {
            client.send(line.as_bytes());
            String::from_utf8_lossy(&client.rest()).into_owned()
        };
        let (us, them) = (told(ours.client()), told(theirs.client()));
        assert_eq!(us, them, "{}", line.escape_debug());
        understood += usize::from(us.starts_with("+OK"));
        refused += usize::from(us.contains("unbalanced quotes in request"));
    }
    assert!(understood > 50 && refused > 50, "{understood} understood, {refused} refused");
}

/// The number of a connection is its own.
fn masked(hello: &str) -> String {
    let (before, after) = hello.split_once("id\r\n:").unwrap();
    format!("{before}id\r\n:N{}", &after[after.find('\r').unwrap()..])
}

/// Broken by: a command that strangers may use, or a password that does not let in.
#[test]
fn strangers_are_told_what_redis_tells_them() {
    let Some((ours, theirs)) = both(Some("secret")) else { return };
    let (mut us, mut them) = (ours.client(), theirs.client());
    compare(
        &mut us,
        &mut them,
        &[
            "GET a",
            "PING",
            "foo",
            "GET",
            "SET a 1",
            "MSET a",
            "ECHO x",
            "COMMAND COUNT",
            "HELLO",
            "HELLO 3",
            "AUTH wrong",
            "AUTH default wrong",
            "AUTH other secret",
            "GET a",
            "AUTH secret",
            "GET a",
            "RESET",
            "GET a",
            "AUTH default secret",
            "SET a 1",
            "GET a",
            "AUTH wrong",
            "GET a",
            "HELLO 3 AUTH default wrong",
            "GET zz",
        ],
    );
    let (mut us, mut them) = (ours.client(), theirs.client());
    let hello = "HELLO 3 AUTH default secret SETNAME x";
    assert_eq!(masked(&us.say(hello)), masked(&them.say(hello)));
    compare(&mut us, &mut them, &["GET zz", "CLIENT GETNAME", "QUIT"]);
    for bytes in ["*11\r\n", "*2\r\n$4\r\nAUTH\r\n$16385\r\n"] {
        let end = |mut client: Client| {
            client.send(bytes.as_bytes());
            String::from_utf8(client.rest()).unwrap()
        };
        assert_eq!(end(ours.client()), end(theirs.client()), "{bytes}");
    }
}

/// Broken by: a number in the table of commands that is not Redis'.
#[test]
fn commands_are_described_as_redis_does() {
    let Some((ours, theirs)) = both(None) else { return };
    let (mut us, mut them) = (ours.client(), theirs.client());
    let names = us.say("COMMAND LIST");
    let names: Vec<&str> = names.split("\r\n").filter(|line| !line.starts_with(['*', '$'])).collect();
    assert!(names.len() > 20);
    for name in names.iter().filter(|name| !name.is_empty()) {
        // Name, arity, flags and where keys are; what follows is of no use to clients.
        let head = |client: &mut Client| {
            let reply = client.say(&format!("COMMAND INFO {name}"));
            let lines: Vec<&str> = reply.split("\r\n").collect();
            let keys = lines.iter().rposition(|line| line.starts_with(':')).unwrap();
            let keys = lines[..=keys].iter().position(|line| *line == lines[4]).map(|_| lines).unwrap();
            let mut seen: Vec<String> = keys.iter().map(|line| (*line).to_owned()).collect();
            let places = seen.iter().skip(5).position(|line| line.starts_with(':')).unwrap() + 8;
            seen.truncate(places);
            let flags: BTreeSet<String> = seen.drain(6..places - 3).collect();
            (seen, flags)
        };
        assert_eq!(head(&mut us), head(&mut them), "{name}");
    }
}

/// Broken by: a field that monitors read and that is called something else here.
#[test]
fn fields_of_info_are_those_of_redis() {
    let Some((ours, theirs)) = both(None) else { return };
    let fields = |client: &mut Client| -> BTreeSet<String> {
        client.say("SET a 1");
        client.say("GET a");
        let text = client.say("INFO everything");
        text.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.to_owned()).collect()
    };
    let (ours, theirs) = (fields(&mut ours.client()), fields(&mut theirs.client()));
    let more: Vec<&String> = ours.difference(&theirs).filter(|name| !name.starts_with("wavetank_")).collect();
    assert_eq!(more, ["server_name"]);
    assert!(ours.len() > 40, "{ours:?}");
}

/// Broken by: keys or those that end counted otherwise; Redis guesses the mean of their times.
#[test]
fn keys_are_counted_as_redis_counts_them() {
    let Some((ours, theirs)) = both(None) else { return };
    let keyspace = |client: &mut Client| {
        client.say("MSET a 1 b 2 c 3");
        client.say("SET b 1 EX 1000");
        client.say("SET d 1 PX 1000000");
        let text = client.say("INFO keyspace");
        text.split_once(",avg_ttl=").unwrap().0.split_once("# Keyspace").unwrap().1.to_owned()
    };
    let (ours, theirs) = (keyspace(&mut ours.client()), keyspace(&mut theirs.client()));
    assert_eq!(ours, "\r\ndb0:keys=4,expires=2");
    assert_eq!(ours, theirs);
}

fn word() -> impl Strategy<Value = String> {
    let words = ["a", "b", "c", "1", "-1", "0", "5", "100", "NX", "XX", "GET", "EX", "PX", "", "x y", "9x"];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}

fn asked() -> impl Strategy<Value = Vec<String>> {
    let names =
        ["GET", "SET", "MGET", "MSET", "DEL", "EXISTS", "STRLEN", "GETRANGE", "DBSIZE", "UNLINK", "PING"];
    (prop::sample::select(names.to_vec()), prop::collection::vec(word(), 0..6))
        .prop_map(|(name, words)| [name.to_owned()].into_iter().chain(words).collect())
}

/// Broken by: any combination of arguments that is taken here and refused there, or the other way round.
#[test]
fn commands_at_random_have_the_replies_of_redis() {
    let Some((ours, theirs)) = both(None) else { return };
    let (mut ours, mut theirs) = (ours.client(), theirs.client());
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..4000 {
        let args = asked().new_tree(&mut runner).unwrap().current();
        let (us, them) = (ours.ask(&args), theirs.ask(&args));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&us), text(&them), "{args:?}");
    }
}
