//! A bucket on a server: the client, the runtime it needs, time limits, and errors without secrets.

use std::error::Error as Cause;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};
use tokio::runtime::Runtime;
use wavetank_model::{Error, Result};

use super::super::Site;
use super::credentials;

const TIMEOUT_S: u64 = 10;
const RETRIES: usize = 3;
/// The client's futures run on the threads that ask; these only see to sockets and timers.
const RUNTIME_THREADS: usize = 2;

/// A prefix of a bucket.
pub(super) struct Bucket {
    pub(super) s3: AmazonS3,
    bucket: String,
    prefix: Path,
    runtime: Runtime,
    timeout: Duration,
    answers: AtomicBool,
}

impl Bucket {
    /// Opens the place that `site` names, and looks whether it is there and may be read.
    pub(super) fn open(site: &Site) -> Result<Self> {
        let (bucket, prefix) = read_location(&site.location)?;
        let timeout_s = site.option("timeout_s", TIMEOUT_S)?;
        if timeout_s == 0 {
            return Err(Error::usage("option timeout_s: must be above 0"));
        }
        let timeout = Duration::from_secs(timeout_s);
        let s3 = client(site, &bucket, timeout)?;
        let threads = |e: io::Error| Error::usage(format!("object: cannot start threads: {e}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(RUNTIME_THREADS)
            .thread_name("store-object")
            .enable_all()
            .build()
            .map_err(threads)?;
        let opened = Self { s3, bucket, prefix, runtime, timeout, answers: AtomicBool::new(true) };
        opened.check()?;
        Ok(opened)
    }

    fn check(&self) -> Result<()> {
        let mut list = self.s3.list(Some(&self.prefix));
        let first = self.ask(&self.prefix, async { list.next().await.transpose() });
        first.map(|_| ()).map_err(|e| {
            let hint = match e.kind() {
                io::ErrorKind::NotFound => "make the bucket first",
                io::ErrorKind::PermissionDenied => {
                    "credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or credentials_file"
                }
                _ => "is the server running, and are endpoint and region right?",
            };
            Error::usage(e.to_string()).hint(hint)
        })
    }

    /// Where an object of this name is.
    pub(super) fn path(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    /// What all its paths begin with.
    pub(super) fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// A sentence about an object.
    pub(super) fn named(&self, path: &Path, what: &str) -> String {
        format!("s3://{}/{path}: {what}", self.bucket)
    }

    /// Whether the last request was answered.
    pub(super) fn answers(&self) -> bool {
        self.answers.load(Ordering::Relaxed)
    }

    /// Waits for an answer about `path`, as long as is allowed.
    pub(super) fn ask<T>(
        &self,
        path: &Path,
        answer: impl Future<Output = object_store::Result<T>>,
    ) -> io::Result<T> {
        let timed = self.runtime.block_on(async { tokio::time::timeout(self.timeout, answer).await });
        let result = match timed {
            Ok(result) => result.map_err(|e| self.told(path, &e)),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, self.named(path, "no answer in time"))),
        };
        let silent = |e: &io::Error| {
            use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotConnected, TimedOut};
            matches!(e.kind(), TimedOut | ConnectionRefused | ConnectionReset | NotConnected)
        };
        self.answers.store(!result.as_ref().is_err_and(silent), Ordering::Relaxed);
        result
    }

    /// Says what is wrong in words of ours: a server's may repeat what was signed, with a session's token.
    pub(super) fn told(&self, path: &Path, e: &object_store::Error) -> io::Error {
        let text = e.to_string();
        let status = after(&text, "status code: ", |c| c.is_ascii_digit());
        let code = after(&text, "<Code>", |c| c.is_ascii_alphanumeric());
        let (kind, what) = match (e, status) {
            (object_store::Error::NotFound { .. }, _) | (_, Some("404")) => {
                (io::ErrorKind::NotFound, "not found")
            }
            (
                object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. },
                _,
            )
            | (_, Some("401" | "403")) => (io::ErrorKind::PermissionDenied, "access denied"),
            (_, Some("503" | "429")) => (io::ErrorKind::ResourceBusy, "the server asks to slow down"),
            (_, Some(_)) => (io::ErrorKind::Other, "the server refused"),
            (object_store::Error::InvalidPath { .. }, _) => {
                (io::ErrorKind::InvalidData, "an object beside it has a name that cannot be read")
            }
            _ => unanswered(e),
        };
        let detail: Vec<&str> = status.into_iter().chain(code).collect();
        let detail = if detail.is_empty() { String::new() } else { format!(" ({})", detail.join(" ")) };
        io::Error::new(kind, self.named(path, &format!("{what}{detail}")))
    }
}

/// The word after `mark`.
fn after<'a>(text: &'a str, mark: &str, of: impl Fn(char) -> bool) -> Option<&'a str> {
    let rest = &text[text.find(mark)? + mark.len()..];
    let word = &rest[..rest.find(|c| !of(c)).unwrap_or(rest.len())];
    (!word.is_empty()).then_some(word)
}

/// Why a request has no answer.
fn unanswered(e: &object_store::Error) -> (io::ErrorKind, &'static str) {
    let causes = || std::iter::successors(Some(e as &dyn Cause), |cause| (*cause).source());
    let system = causes().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let http = causes().find_map(|cause| cause.downcast_ref::<HttpError>()).map(HttpError::kind);
    match (http, system) {
        (Some(HttpErrorKind::Timeout), _) | (_, Some(io::ErrorKind::TimedOut)) => {
            (io::ErrorKind::TimedOut, "no answer in time")
        }
        (_, Some(io::ErrorKind::ConnectionRefused)) => {
            (io::ErrorKind::ConnectionRefused, "no server answers there")
        }
        (Some(HttpErrorKind::Connect), _) => (io::ErrorKind::NotConnected, "cannot connect to the server"),
        (Some(_), _) => (io::ErrorKind::ConnectionReset, "the connection broke"),
        (None, _) => (io::ErrorKind::Other, "the request failed"),
    }
}

/// The bucket and the prefix. Errors do not repeat the location: what is wrong with it may be a secret in it.
fn read_location(location: &str) -> Result<(String, Path)> {
    let wrong = |what: &str| Error::usage(format!("object: {what}")).hint("the form is s3://bucket/prefix");
    let rest =
        location.strip_prefix("s3://").ok_or_else(|| wrong("the location does not begin with s3://"))?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if bucket.is_empty() || !bucket.chars().all(plain) {
        return Err(wrong("no bucket is called so: letters, digits, dots, dashes and underscores only"));
    }
    let prefix = Path::parse(prefix).map_err(|_| wrong("no prefix is written so"))?;
    Ok((bucket.to_owned(), prefix))
}

fn client(site: &Site, bucket: &str, timeout: Duration) -> Result<AmazonS3> {
    let retry = RetryConfig {
        backoff: BackoffConfig { max_backoff: Duration::from_secs(1), ..BackoffConfig::default() },
        max_retries: RETRIES,
        retry_timeout: timeout,
    };
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        // The client's own limit of a transfer may be less than what the user allows.
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), format!("{} s", timeout.as_secs()))
        .with_retry(retry)
        // Entries have a checksum of their own; hashing them once more would cost as much as sending them.
        .with_unsigned_payload(true)
        // The one way to delete that every server knows.
        .with_disable_bulk_delete(true);
    if let Some(region) = site.options.get("region") {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = site.options.get("endpoint") {
        let form = "the form is http://host:port or https://host";
        let known = ["http://", "https://"].iter().any(|scheme| endpoint.starts_with(scheme));
        if !known || endpoint.contains('@') {
            return Err(Error::usage("option endpoint: not a server's address").hint(form));
        }
        builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
    }
    let builder = credentials::with(builder, site)?;
    builder
        .build()
        .map_err(|_| Error::usage("object: cannot set up the client").hint("see the AWS_ variables"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_read_and_wrong_ones_not_repeated() {
        let (bucket, prefix) = read_location("s3://bucket/a/b").unwrap();
        assert_eq!((bucket.as_str(), prefix.as_ref()), ("bucket", "a/b"));
        assert_eq!(read_location("s3://bucket").unwrap().1.as_ref(), "");
        for wrong in ["s3://key:hunter2@bucket/a", "hunter2", "s3:///hunter2", "s3://bucket/hunter2//a"] {
            let told = read_location(wrong).unwrap_err().to_string();
            assert!(!told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn words_are_found_in_answers() {
        let text = "status code: 403 Forbidden: <Error><Code>NoSuchBucket</Code></Error>";
        assert_eq!(after(text, "status code: ", |c| c.is_ascii_digit()), Some("403"));
        assert_eq!(after(text, "<Code>", |c| c.is_ascii_alphanumeric()), Some("NoSuchBucket"));
        assert_eq!(after(text, "<Key>", |_| true), None);
    }
}
