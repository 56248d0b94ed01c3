//! The HTTP door: status, metrics, a page for people, and the native API.

mod answer;
mod api;
mod config;
mod desk;
mod frame;
mod grid;
mod health;
mod inflow;
mod metrics;
mod origin;
mod page;
mod route;
mod session;
pub(crate) mod status;

use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use tokio::time::{interval, sleep};
use wavetank_http as http;
use wavetank_model::{Error, Result};

pub(crate) use config::{told as without_secrets, without_login};
pub(crate) use desk::{Desk, duration};

use crate::plan::Plan;

/// Requests that one HTTP/2 connection may have open.
const STREAMS: u32 = 128;

/// The door while it is open.
pub(crate) struct Door {
    door: http::Door,
    desk: Arc<Desk>,
}

impl Door {
    /// Takes the port; clients that connect wait until it is opened.
    pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener> {
        http::Door::listen(address).map_err(|error| at_port(address, error))
    }

    /// Opens it to who comes to `listener`; `desk` is what connections work with.
    pub(crate) fn open(listener: TcpListener, desk: Arc<Desk>) -> Result<Self> {
        let answering = Arc::clone(&desk);
        let answer = move |request| route::serve(Arc::clone(&answering), request);
        let door = http::Door::open(listener, settings(&desk.plan), Arc::clone(&desk.tally), answer)
            .map_err(|error| at_port(desk.plan.http, error))?;
        let (watching, draining) = (Arc::clone(&desk), door.draining());
        door.spawn(async move {
            select(pin!(watch_over(watching)), pin!(draining)).await;
        });
        Ok(Self { door, desk })
    }

    /// Where clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.door.address()
    }

    /// Takes no more connections and lets those that are there finish, for at most `patience`.
    pub(crate) fn drain(self, patience: Duration) {
        self.door.drain(patience);
        self.desk.sessions.clear();
    }
}

fn settings(plan: &Plan) -> http::Settings {
    http::Settings {
        threads: plan.http_threads,
        connections: plan.limits.http_connections,
        client_timeout: duration(plan.limits.client_timeout),
        idle_timeout: duration(plan.limits.idle_timeout),
        streams_per_connection: STREAMS,
    }
}

fn at_port(address: SocketAddr, error: Error) -> Error {
    error.at(format!("--http-port {}", address.port()))
}

/// Counts every second, and ends requests that are silent.
async fn watch_over(desk: Arc<Desk>) {
    let sampling = async {
        let mut seconds = interval(Duration::from_secs(status::INTERVAL_S));
        loop {
            seconds.tick().await;
            status::sample(&desk);
        }
    };
    let sweeping = async {
        loop {
            sleep(desk.sessions.pause()).await;
            desk.sessions.sweep();
        }
    };
    select(pin!(sampling), pin!(sweeping)).await;
}
