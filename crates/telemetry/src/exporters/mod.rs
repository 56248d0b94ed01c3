//! Where spans go: one file per way, one row each.

mod file;
mod grpc;
mod http;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use wavetank_model::{Error, Result, described, without_login};

use crate::resource::Resource;
use crate::span::Span;
use crate::tally::Reason;

/// A way to export spans.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// Opens one; what can be checked without a network is.
    open: fn(&Target) -> Result<Box<dyn Exporter>>,
}

/// Every exporter, alphabetical. The server's flags and `wavetank list` print this table.
pub const ALL: &[Entry] = &[file::ENTRY, grpc::ENTRY, http::ENTRY];

described!(Entry);

/// Where, and with what.
#[derive(Clone)]
pub struct Target {
    /// A row of [`ALL`].
    pub exporter: &'static Entry,
    /// An address or a path.
    pub address: String,
    /// Sent with every batch; they may be secret, so nothing prints them.
    pub headers: Vec<(String, String)>,
    /// Certificates to trust instead of those of the system.
    pub certificates: Option<PathBuf>,
    /// How long one attempt may take.
    pub timeout: Duration,
}

impl Target {
    /// How messages call it.
    pub fn name(&self) -> String {
        match self.exporter.name {
            "file" => self.address.clone(),
            protocol => format!("{} ({protocol})", without_login(&self.address)),
        }
    }

    pub(crate) fn open(&self) -> Result<Box<dyn Exporter>> {
        (self.exporter.open)(self).map_err(|error| error.within(without_login(&self.address)))
    }

    /// The certificates, read.
    fn trusted(&self) -> Result<Option<Vec<u8>>> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(|error| Error::io(path, error));
        self.certificates.as_ref().map(read).transpose()
    }
}

/// Sends spans somewhere.
pub(crate) trait Exporter: Send {
    /// Tries once. Who calls waits, tries again and counts.
    fn export<'a>(&'a mut self, resource: &'a Resource, spans: &'a [Span]) -> Attempt<'a>;
}

/// An attempt under way.
pub(crate) type Attempt<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// How an attempt ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The receiver has them, but for some that it did not want.
    Taken { rejected: u64, message: String },
    /// It may take them later.
    Again { why: Reason, message: String, after: Option<Duration> },
    /// It never will.
    Lost { why: Reason, message: String },
}

impl Verdict {
    /// What the receiver said of a batch it took.
    fn taken(partial: Option<(i64, String)>) -> Self {
        let (rejected, message) = partial.unwrap_or_default();
        Self::Taken { rejected: u64::try_from(rejected).unwrap_or(0), message }
    }
}

/// The innermost cause says most.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map_or_else(String::new, ToString::to_string)
}

/// What to try when nobody answers at a port that is usually of the other protocol.
fn port_hint(port: Option<u16>, protocol: &str) -> &'static str {
    match (port, protocol) {
        (Some(4318), "grpc") => "; port 4318 is usually for --otlp-protocol http",
        (Some(4317), "http") => "; port 4317 is usually for --otlp-protocol grpc",
        _ => "",
    }
}
