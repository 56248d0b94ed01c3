//! Connections to a Redis server: a few idle ones, each for one call at a time, made again when they break.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Client, Cmd, Connection, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisError, cmd};
use redis::{RedisResult, ServerErrorKind};
use wavetank_model::{Error, Result};

/// A server, from any thread.
pub(super) struct Server {
    client: Client,
    /// Host and port, for messages: nothing secret is in it.
    address: String,
    timeout: Duration,
    /// At most as many as there were calls at one time: one for each thread.
    idle: Mutex<Vec<Connection>>,
    answers: AtomicBool,
    evicts: Option<String>,
}

impl Server {
    /// Connects to the server that `location` names.
    pub(super) fn open(location: &str, password: Option<String>, timeout: Duration) -> Result<Self> {
        let form =
            "the form is redis://host:port/db; the password comes from REDIS_PASSWORD or password_file";
        // The location is not repeated: what is wrong with it may be a password in it.
        let wrong = |what: &str| Error::usage(format!("redis: {what}")).hint(form);
        if !location.starts_with("redis://") {
            return Err(wrong("the location does not begin with redis://"));
        }
        let info = location.into_connection_info().map_err(|_| wrong("cannot read the location"))?;
        if info.redis_settings().password().is_some() {
            return Err(wrong("a password in the location"));
        }
        let address = info.addr().to_string();
        let settings = info.redis_settings().clone();
        let settings = match password {
            Some(password) => settings.set_password(password),
            None => settings,
        };
        let client =
            Client::open(info.set_redis_settings(settings)).map_err(|_| wrong("cannot use the location"))?;
        let (idle, answers) = (Mutex::default(), AtomicBool::new(true));
        let mut server = Self { client, address, timeout, idle, answers, evicts: None };
        let refused = |e: io::Error| match e.kind() {
            io::ErrorKind::PermissionDenied => Error::usage(e.to_string())
                .hint("the password comes from the variable REDIS_PASSWORD or the option password_file"),
            _ => Error::usage(e.to_string()).hint("is the server running, and the address right?"),
        };
        server.ask::<()>(&cmd("PING")).map_err(refused)?;
        server.evicts = server.eviction();
        Ok(server)
    }

    /// How the server makes room when it is full, if it deletes entries then. Not every user may ask.
    fn eviction(&self) -> Option<String> {
        let info: String = self.ask(cmd("INFO").arg("memory")).ok()?;
        let policy = info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:"))?.trim();
        (policy != "noeviction").then(|| policy.to_owned())
    }

    /// What does not work as it should.
    pub(super) fn notes(&self) -> Option<String> {
        let policy = self.evicts.as_ref()?;
        Some(format!("{}: a full server deletes entries by itself (maxmemory-policy {policy})", self.address))
    }

    /// Whether the last call was answered.
    pub(super) fn answers(&self) -> bool {
        self.answers.load(Ordering::Relaxed)
    }

    /// Asks, and asks once more on a new connection if an idle one turns out to be closed: every command that
    /// is sent here may be sent twice.
    pub(super) fn ask<T: FromRedisValue>(&self, command: &Cmd) -> io::Result<T> {
        let idle = self.idle().pop();
        let result = match idle.map(|connection| self.ask_on(connection, command)) {
            Some(Err(e)) if e.is_connection_dropped() => {
                // They are as old as this one.
                self.idle().clear();
                self.connect().and_then(|connection| self.ask_on(connection, command))
            }
            Some(result) => result,
            None => self.connect().and_then(|connection| self.ask_on(connection, command)),
        };
        self.answers.store(!result.as_ref().is_err_and(RedisError::is_io_error), Ordering::Relaxed);
        result.map_err(|e| self.told(&e))
    }

    /// Keeps the connection only if it is in step: an answer that came late would answer another question.
    fn ask_on<T: FromRedisValue>(&self, mut connection: Connection, command: &Cmd) -> RedisResult<T> {
        let result: RedisResult<redis::Value> = command.query(&mut connection);
        let in_step = match &result {
            Ok(_) => true,
            Err(e) => matches!(e.kind(), ErrorKind::Server(_) | ErrorKind::Extension),
        };
        if in_step {
            self.idle().push(connection);
        }
        Ok(T::from_redis_value(result?)?)
    }

    fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(self.timeout)?;
        connection.set_read_timeout(Some(self.timeout))?;
        connection.set_write_timeout(Some(self.timeout))?;
        Ok(connection)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self, e: &RedisError) -> io::Error {
        let (kind, what) = match e.kind() {
            _ if e.is_timeout() => (io::ErrorKind::TimedOut, "no answer in time".to_owned()),
            _ if e.is_connection_refusal() => {
                (io::ErrorKind::ConnectionRefused, "no server answers there".to_owned())
            }
            _ if e.is_connection_dropped() => {
                (io::ErrorKind::ConnectionReset, "the connection broke".to_owned())
            }
            // The server's words may repeat the user's name; its code says enough.
            ErrorKind::AuthenticationFailed => {
                (io::ErrorKind::PermissionDenied, "wrong password, or none".to_owned())
            }
            ErrorKind::Server(ServerErrorKind::BusyLoading) => {
                (io::ErrorKind::ResourceBusy, "the server is loading its data".to_owned())
            }
            _ => coded(e),
        };
        io::Error::new(kind, format!("redis {}: {what}", self.address))
    }
}

/// An answer that is an error, by its code.
fn coded(e: &RedisError) -> (io::ErrorKind, String) {
    let code = e.code().unwrap_or_default();
    match code {
        "NOAUTH" | "WRONGPASS" | "NOPERM" => {
            (io::ErrorKind::PermissionDenied, format!("not allowed ({code})"))
        }
        "OOM" => (io::ErrorKind::StorageFull, "the server's memory is full (OOM)".to_owned()),
        "READONLY" => (io::ErrorKind::ReadOnlyFilesystem, "the server is a replica (READONLY)".to_owned()),
        _ => (io::ErrorKind::Other, e.to_string()),
    }
}
