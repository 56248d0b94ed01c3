//! `crash`: a cache server with a directory behind its memory is killed under the load of clients and
//! started again, over and over. What had arrived in the directory is there, nothing else than was written is
//! ever served, and an orderly end loses nothing (docs/serve.md, "What to know").

use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::Entry;
use crate::torture::keys::{self, Keys, Load, Promise};
use crate::torture::round::{LIMIT, Round, words};
use crate::torture::server::Server;

pub(super) const ENTRY: Entry =
    Entry { name: "crash", about: "a cache server is killed under load and started again", run };

/// Directories of a round.
const CASES: u64 = 2;
/// Kills of a directory.
const KILLS: u64 = 3;

fn run(round: &mut Round) -> Result<(), String> {
    (0..CASES).try_for_each(|_| survive(round))
}

/// Some server, its directory to be `kv`.
fn flags(round: &mut Round) -> Vec<String> {
    let draw = &mut round.draw;
    let medium = draw.pick(&["direct", "buffered"]);
    let (store, prefetch) = (draw.pick(&["default", "skip_l1"]), draw.pick(&["retain", "default"]));
    let threads = draw.within(1, 3);
    words(&format!(
        "--l1-size-gb 1 --l2 {medium}:kv:2GiB --l2-store-policy {store} --l2-prefetch-policy {prefetch} \
         --resp-threads {threads} --l2-timeout-ms 30000 --drain-seconds 30"
    ))
}

fn survive(round: &mut Round) -> Result<(), String> {
    round.remove(&["kv"]);
    let flags = flags(round);
    let bytes = round.draw.one(&[500, 5_000, 50_000]);
    let load = Load { clients: 3, keys: 30, promise: Promise::Kept, bytes, deadlines: Some(4) };
    let mut keys = load.keys();
    let mut server = Server::start(round, &flags)?;
    for _ in 0..KILLS {
        if round.draw.chance(2, 3) {
            calm(round, &mut server, load, &mut keys)?;
        }
        let moment = Duration::from_millis(round.draw.magnitude(400));
        let kill = |server: &mut Server| {
            thread::sleep(moment);
            server.running.signal(Signal::SIGKILL)?;
            server.running.wait(LIMIT).map(drop)
        };
        let ((), done) = keys::work(&mut server, (load, &mut round.draw), &mut keys, kill)?;
        server.kill()?;
        server = Server::start(round, &flags)?;
        round.cases += done + keys::check_after_kill(&server, load, &mut keys)?;
    }
    end(round, server, (load, &flags), &mut keys)
}

/// Load for a while, then nothing until all has reached the tier behind memory.
fn calm(round: &mut Round, server: &mut Server, load: Load, keys: &mut Keys) -> Result<(), String> {
    let moment = Duration::from_millis(round.draw.within(20, 150));
    let wait = |_: &mut Server| {
        thread::sleep(moment);
        Ok(())
    };
    let ((), done) = keys::work(server, (load, &mut round.draw), keys, wait)?;
    server.settle()?;
    keys::settled(keys);
    round.cases += done;
    Ok(())
}

/// Load, an orderly end without any pause, and a start.
fn end(
    round: &mut Round,
    mut server: Server,
    (load, flags): (Load, &[String]),
    keys: &mut Keys,
) -> Result<(), String> {
    let wait = |_: &mut Server| {
        thread::sleep(Duration::from_millis(100));
        Ok(())
    };
    let ((), done) = keys::work(&mut server, (load, &mut round.draw), keys, wait)?;
    server.end()?;
    let server = Server::start(round, flags)?;
    round.cases += done + keys::check_after_end(&server, load, keys)?;
    server.end()?;
    Ok(())
}
