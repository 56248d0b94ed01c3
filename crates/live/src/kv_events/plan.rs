//! From what was typed to where events are published. This is the only place that validates.

use std::fmt;
use std::net::IpAddr;

use serde::{Serialize, Serializer};
use wavetank_model::{Error, Result};

use super::Encoding;

/// What was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KvEventsArgs {
    /// `--kv-events`: where the first worker publishes.
    pub endpoint: String,
    /// `--kv-events-topic`.
    pub topic: String,
    /// `--kv-events-replay`: where the first worker is asked for what was missed.
    pub replay: Option<String>,
    /// `--kv-events-buffer`: batches kept for that.
    pub buffer: Option<usize>,
    /// `--kv-events-encoding`.
    pub encoding: Option<String>,
}

/// Where and how events are published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KvEventsPlan {
    /// Where the first worker publishes; each other one on the next port.
    pub endpoint: Endpoint,
    /// The first frame of every message.
    pub topic: String,
    /// Where missed batches of the first worker are asked for, if they are kept.
    pub replay: Option<Endpoint>,
    /// How many batches of each worker are kept.
    pub buffer_steps: usize,
    /// What events are written as.
    pub encoding: Encoding,
}

/// As many batches as vLLM keeps (`buffer_steps` of its `KVEventsConfig`).
const BUFFER_STEPS: usize = 10_000;

impl KvEventsPlan {
    /// The plan for so many workers.
    pub fn of(args: &KvEventsArgs, workers: u32) -> Result<Self> {
        let endpoint = Endpoint::of(&args.endpoint, workers).map_err(|error| error.at("--kv-events"))?;
        let replay = args.replay.as_deref().map(|replay| Endpoint::of(replay, workers)).transpose();
        let replay = replay.map_err(|error| error.at("--kv-events-replay"))?;
        let nearest = replay.iter().map(|replay| replay.port.abs_diff(endpoint.port)).min();
        let is_free = replay.iter().any(|replay| replay.port == 0 || endpoint.port == 0);
        if nearest.is_some_and(|nearest| u32::from(nearest) < workers) && !is_free {
            return Err(Error::usage("events are published where missed ones are asked for")
                .at("--kv-events-replay")
                .hint(format!("every worker takes the next port: leave {workers} ports between the two")));
        }
        Ok(Self {
            endpoint,
            topic: args.topic.clone(),
            replay,
            buffer_steps: buffer_steps(args)?,
            encoding: encoding(args.encoding.as_deref())?,
        })
    }

    /// What whoever wants this should know.
    pub fn warning(&self) -> Option<String> {
        let endpoints = [Some(&self.endpoint), self.replay.as_ref()];
        let open = endpoints.into_iter().flatten().find(|endpoint| !endpoint.is_local())?;
        Some(format!("{open} has no password: who reaches it reads the tokens of prompts"))
    }
}

fn buffer_steps(args: &KvEventsArgs) -> Result<usize> {
    let problem = match (args.buffer, &args.replay) {
        (Some(0), _) => "nothing would be kept",
        (Some(_), None) => "nobody can ask for what is kept",
        (buffer, _) => return Ok(buffer.unwrap_or(BUFFER_STEPS)),
    };
    Err(Error::usage(problem)
        .at("--kv-events-buffer")
        .hint("--kv-events-replay ENDPOINT serves at least one batch"))
}

fn encoding(name: Option<&str>) -> Result<Encoding> {
    let Some(name) = name else { return Ok(Encoding::default()) };
    let found = Encoding::ALL.iter().find(|(known, _)| *known == name);
    let names = Encoding::ALL.map(|(name, _)| name).join(", ");
    let unknown = || Error::usage(format!("no encoding is called {name:?}")).at("--kv-events-encoding");
    found.map(|&(_, encoding)| encoding).ok_or_else(|| unknown().hint(format!("there are {names}")))
}

/// An address of ZeroMQ over TCP, to be listened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    /// Any that is free if 0.
    port: u16,
}

impl Endpoint {
    fn of(text: &str, workers: u32) -> Result<Self> {
        let parts = text.strip_prefix("tcp://").and_then(|rest| rest.rsplit_once(':'));
        let read = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
        let Some((host, port)) = read.filter(|(host, _)| !host.is_empty()) else {
            return Err(Error::usage(format!("{text:?} is not an address of ZeroMQ over TCP"))
                .hint("tcp://127.0.0.1:5557, or tcp://*:5557 for every address of this machine"));
        };
        if port != 0 && u32::from(port) + workers - 1 > u32::from(u16::MAX) {
            return Err(Error::usage(format!("{workers} workers need as many ports from {port} on"))
                .hint("every worker takes the next port"));
        }
        let host = if host == "*" { "0.0.0.0" } else { host };
        Ok(Self { host: host.to_owned(), port })
    }

    /// Whether only this machine reaches it.
    fn is_local(&self) -> bool {
        let host = self.host.trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Host and port, for the system.
    pub(super) fn address(&self) -> (&str, u16) {
        (self.host.trim_matches(['[', ']']), self.port)
    }

    /// That of a worker: its number behind the first one's, as vLLM counts data-parallel ranks.
    pub(super) fn of_worker(&self, worker: u32) -> Self {
        let port = if self.port == 0 { 0 } else { self.port + worker as u16 };
        Self { host: self.host.clone(), port }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tcp://{}:{}", self.host, self.port)
    }
}

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(endpoint: &str, replay: Option<&str>) -> KvEventsArgs {
        let replay = replay.map(str::to_owned);
        KvEventsArgs { endpoint: endpoint.to_owned(), replay, ..KvEventsArgs::default() }
    }

    fn problem(args: &KvEventsArgs, workers: u32) -> String {
        let error = KvEventsPlan::of(args, workers).unwrap_err();
        format!("{}: {}", error.place().unwrap_or_default(), error.message())
    }

    #[test]
    fn every_worker_has_the_next_port() {
        let plan = KvEventsPlan::of(&args("tcp://*:5557", Some("tcp://[::1]:5600")), 4).unwrap();
        assert_eq!(plan.endpoint.of_worker(3).to_string(), "tcp://0.0.0.0:5560");
        assert_eq!(plan.replay.clone().unwrap().of_worker(0).to_string(), "tcp://[::1]:5600");
        assert_eq!((plan.buffer_steps, plan.encoding), (10_000, Encoding::Map));
        assert!(plan.warning().unwrap().starts_with("tcp://0.0.0.0:5557"));
        let free = KvEventsPlan::of(&args("tcp://127.0.0.1:0", Some("tcp://127.0.0.1:0")), 2).unwrap();
        assert_eq!(free.endpoint.of_worker(1).to_string(), "tcp://127.0.0.1:0");
        assert_eq!(free.warning(), None);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_flag() {
        for endpoint in ["127.0.0.1:5557", "ipc://kv", "tcp://:1", "tcp://a", "tcp://a:b", "tcp://a:99999"] {
            assert!(problem(&args(endpoint, None), 1).starts_with("--kv-events: "), "{endpoint}");
        }
        assert!(problem(&args("tcp://a:65535", None), 2).contains("2 workers need"));
        let near = args("tcp://a:5557", Some("tcp://a:5558"));
        assert!(KvEventsPlan::of(&near, 1).is_ok());
        assert!(problem(&near, 2).starts_with("--kv-events-replay: "));
        let buffer = KvEventsArgs { buffer: Some(5), ..args("tcp://a:1", None) };
        assert!(problem(&buffer, 1).starts_with("--kv-events-buffer: "));
        let encoding = KvEventsArgs { encoding: Some("json".to_owned()), ..args("tcp://a:1", None) };
        assert!(problem(&encoding, 1).contains("json"));
    }
}
