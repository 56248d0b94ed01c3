//! Keys that clients of a server write, each its own, and what each of them may hold: the last value, and
//! after a kill one that was on its way.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::draw::{Draw, mixed};
use super::redis::Redis;
use super::round::ensure;
use super::server::Server;

/// What a key may hold. A version is a number from 1 on, 0 is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct May {
    /// The last version that was sent.
    sent: u32,
    /// What it holds for who asks now.
    now: u32,
    /// What had reached the tier behind memory when all had.
    settled: u32,
    /// What was sent since, removals too.
    since: Vec<u32>,
}

/// By number of the key.
pub(super) type Keys = BTreeMap<u32, May>;

/// What a server that has not been killed may say of a key that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// It is there.
    Kept,
    /// It is there, or gone: memory is small, or devices fail.
    KeptOrGone,
}

/// How clients load a server.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) clients: u32,
    pub(super) keys: u32,
    pub(super) promise: Promise,
    /// The longest usual value.
    pub(super) bytes: u64,
    /// Of so many writes one has a deadline, more than a day away.
    pub(super) deadlines: Option<u64>,
}

impl Load {
    pub(super) fn keys(&self) -> Keys {
        (0..self.clients * self.keys).map(|key| (key, May::default())).collect()
    }

    /// Bytes that no other key and no other version of it has; one in sixteen is far longer.
    fn content(&self, key: u32, version: u32) -> Vec<u8> {
        let seed = u64::from(key) << 32 | u64::from(version);
        let most = if mixed(seed ^ 1).is_multiple_of(16) { 20 * self.bytes } else { self.bytes };
        let words = mixed(seed) % (most / 8 + 1);
        [seed]
            .into_iter()
            .chain((0..words).map(|at| mixed(seed ^ at << 20)))
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    /// The version that these bytes are; an error if they are of none.
    fn version_of(&self, key: u32, bytes: &[u8]) -> Result<u32, String> {
        let version = bytes.first_chunk().map(|first| u64::from_le_bytes(*first) as u32);
        let version = version.filter(|version| self.content(key, *version) == bytes);
        version.ok_or_else(|| format!("key {key}: {} bytes that nobody wrote", bytes.len()))
    }
}

fn name(key: u32) -> Vec<u8> {
    format!("m@01000100@0@{key:08x}").into_bytes()
}

/// How a client's work ended.
enum End {
    /// It was told to.
    Told,
    /// The server was gone.
    Gone,
}

/// One client and what it knows.
struct Client {
    redis: Redis,
    draw: Draw,
    keys: Keys,
    load: Load,
}

impl Client {
    /// Works until it is told to stop, or the server is gone.
    fn work(mut self, stop: &AtomicBool) -> Result<(Keys, End, u64), String> {
        let mut done = 0;
        while !stop.load(Ordering::Relaxed) {
            match self.step()? {
                Ok(()) => done += 1,
                Err(_) => return Ok((self.keys, End::Gone, done)),
            }
        }
        Ok((self.keys, End::Told, done))
    }

    /// One command. The outer error is a broken promise, the inner one a server that is gone.
    fn step(&mut self) -> Result<io::Result<()>, String> {
        let at = self.draw.place(self.keys.len());
        let key = *self.keys.keys().nth(at).expect("a place within");
        match self.draw.below(8) {
            0 => Ok(self.remove(key)),
            1..=3 => self.look(key),
            _ => self.write(key),
        }
    }

    fn write(&mut self, key: u32) -> Result<io::Result<()>, String> {
        let may = self.keys.get_mut(&key).expect("its own key");
        may.sent += 1;
        may.since.push(may.sent);
        let (name, content) = (name(key), self.load.content(key, may.sent));
        let words: [&[u8]; 5] = [b"SET", &name, &content, b"EX", b"100000"];
        let is_lasting = self.load.deadlines.is_none_or(|of| !self.draw.chance(1, of));
        let words = if is_lasting { &words[..3] } else { &words[..] };
        match self.redis.ask(words) {
            Ok(Some(told)) if told == b"OK" => {
                may.now = may.sent;
                Ok(Ok(()))
            }
            // A write that finds no room leaves what was there.
            Err(refused) if refused.kind() == io::ErrorKind::Other => {
                ensure(self.load.promise == Promise::KeptOrGone, || {
                    format!("key {key} is refused: {refused}")
                })?;
                Ok(Ok(()))
            }
            Err(gone) => Ok(Err(gone)),
            Ok(other) => Err(format!("SET of key {key} is answered {other:?}")),
        }
    }

    fn remove(&mut self, key: u32) -> io::Result<()> {
        let may = self.keys.get_mut(&key).expect("its own key");
        may.since.push(0);
        self.redis.ask(&[b"DEL", &name(key)])?;
        may.now = 0;
        Ok(())
    }

    fn look(&mut self, key: u32) -> Result<io::Result<()>, String> {
        let found = match self.redis.ask(&[b"GET", &name(key)]) {
            Ok(found) => found,
            Err(refused) if refused.kind() == io::ErrorKind::Other => {
                return Err(format!("GET of key {key} is refused: {refused}"));
            }
            Err(gone) => return Ok(Err(gone)),
        };
        let may = &self.keys[&key];
        let version = found.map_or(Ok(0), |bytes| self.load.version_of(key, &bytes))?;
        let is_kept = version == may.now || (version == 0 && self.load.promise == Promise::KeptOrGone);
        ensure(is_kept, || format!("key {key} has version {version}, and should have {may:?}"))?;
        Ok(Ok(()))
    }
}

/// Clients work, each on its own keys, while `meanwhile` runs and until it is over; gives the commands that
/// were answered.
pub(super) fn work<T>(
    server: &mut Server,
    (load, draw): (Load, &mut Draw),
    keys: &mut Keys,
    meanwhile: impl FnOnce(&mut Server) -> Result<T, String>,
) -> Result<(T, u64), String> {
    let stop = AtomicBool::new(false);
    let mut clients = Vec::new();
    for number in 0..load.clients {
        let own = keys.iter().filter(|(key, _)| **key / load.keys == number);
        let own = own.map(|(key, may)| (*key, may.clone())).collect();
        let draw = Draw::of(draw.next(), "client");
        clients.push(Client { redis: server.redis()?, draw, keys: own, load });
    }
    let (seen, ended) = thread::scope(|scope| {
        let threads: Vec<_> = clients.into_iter().map(|it| scope.spawn(|| it.work(&stop))).collect();
        let seen = meanwhile(server);
        stop.store(true, Ordering::Relaxed);
        let join = |it: thread::ScopedJoinHandle<'_, _>| it.join().map_err(|_| "a client broke".to_owned());
        (seen, threads.into_iter().map(join).collect::<Result<Vec<_>, String>>())
    });
    let (mut done, is_killed) = (0, server.running.has_ended()?);
    for ended in ended? {
        let (own, end, answered) = ended?;
        ensure(is_killed || matches!(end, End::Told), || "a client lost a server that runs".to_owned())?;
        keys.extend(own);
        done += answered;
    }
    Ok((seen?, done))
}

/// All that clients know of has reached the tier behind memory.
pub(super) fn settled(keys: &mut Keys) {
    for may in keys.values_mut() {
        may.settled = may.now;
        may.since.clear();
    }
}

/// Asks a server that was started again for every key: what had settled and was left alone is there, and
/// nothing that was not sent since. What is found is what a key holds from here on.
pub(super) fn check_after_kill(server: &Server, load: Load, keys: &mut Keys) -> Result<u64, String> {
    let mut redis = server.redis()?;
    for (key, may) in keys.iter_mut() {
        let found = redis.ask(&[b"GET", &name(*key)]).map_err(|e| format!("GET of key {key}: {e}"))?;
        let version = found.map_or(Ok(0), |bytes| load.version_of(*key, &bytes))?;
        let is_absent_rightly =
            version == 0 && (!may.since.is_empty() || load.promise == Promise::KeptOrGone);
        let is_right = version == may.settled || may.since.contains(&version) || is_absent_rightly;
        ensure(is_right, || {
            format!("after a kill key {key} has version {version}, and should have {may:?}")
        })?;
        may.now = version;
    }
    settled(keys);
    Ok(keys.len() as u64)
}

/// Asks a server that was ended in order and started again: every key holds what was acknowledged.
pub(super) fn check_after_end(server: &Server, load: Load, keys: &Keys) -> Result<u64, String> {
    let mut redis = server.redis()?;
    for (key, may) in keys {
        let found = redis.ask(&[b"GET", &name(*key)]).map_err(|e| format!("GET of key {key}: {e}"))?;
        let version = found.map_or(Ok(0), |bytes| load.version_of(*key, &bytes))?;
        let is_right = version == may.now || (version == 0 && load.promise == Promise::KeptOrGone);
        ensure(is_right, || {
            format!("after an end key {key} has version {version}, and should have {may:?}")
        })?;
    }
    Ok(keys.len() as u64)
}
