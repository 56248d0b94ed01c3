//! `interop [PEER]`: tools that people use work with what we write and serve. They are gigabytes of PyPI, so
//! this is no step of `ci`. One line per check; a new peer is one file and one row of [`PEERS`].

mod aiperf;
mod lmcache;
mod ray;

use crate::Failure;

/// A tool that others made.
struct Peer {
    name: &'static str,
    /// Installs it and checks; the words after its name are its own.
    check: fn(&[String]) -> Result<(), Failure>,
}

const PEERS: [Peer; 3] = [
    // The user's benchmark of model servers on our mock.
    Peer { name: "aiperf", check: aiperf::check },
    // Our recordings and our cache server; `lmcache [DIR]`, where it is or will be.
    Peer { name: "lmcache", check: lmcache::check },
    // Sweeps of our Python package as its tasks.
    Peer { name: "ray", check: ray::check },
];

/// The chore: one of them, or all.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let Some((name, rest)) = args.split_first() else {
        return PEERS.iter().try_for_each(|peer| (peer.check)(&[]));
    };
    let peer = PEERS.iter().find(|peer| peer.name == name).ok_or_else(|| {
        let known = PEERS.map(|peer| peer.name).join(", ");
        Failure::Usage(format!("unknown peer `{name}`; known: {known}"))
    })?;
    (peer.check)(rest)
}
