//! OTLP over HTTP: protobuf in a POST to `/v1/traces`.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, Response, StatusCode, Url};
use wavetank_model::{Error, Result};

use super::{Attempt, Entry, Exporter, Target, Verdict, port_hint, root_cause};
use crate::otlp;
use crate::resource::Resource;
use crate::span::Span;
use crate::tally::Reason;

pub(super) const ENTRY: Entry = Entry { name: "http", about: "OTLP over HTTP, port 4318 as a rule", open };

/// Where a collector takes spans, under its address.
const PATH: &str = "/v1/traces";
/// Of an answer that is an error, this much is repeated.
const SHOWN: usize = 200;

struct Http {
    client: Client,
    url: Url,
}

fn open(target: &Target) -> Result<Box<dyn Exporter>> {
    let url = address(&target.address)?;
    let mut client = Client::builder()
        .user_agent(concat!("wavetank/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers(&target.headers)?)
        .connect_timeout(target.timeout)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    if let Some(pem) = target.trusted()? {
        let certificates = Certificate::from_pem_bundle(&pem)
            .ok()
            .filter(|found| !found.is_empty())
            .ok_or_else(|| Error::input("no PEM certificates").at("--otlp-certificate"))?;
        client = client.tls_certs_only(certificates);
    }
    let client = client.build().map_err(|error| {
        Error::usage(format!("cannot set up the client: {}", root_cause(&error))).source(error)
    })?;
    Ok(Box::new(Http { client, url }))
}

/// The collector's address with the path of spans, unless it is there.
fn address(given: &str) -> Result<Url> {
    let wrong = |what: &str| {
        Error::usage(format!("no address of a collector: {what}"))
            .hint("write http://HOST:4318, or https:// for TLS; /v1/traces is added")
    };
    let mut url = Url::parse(given).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("neither http:// nor https://"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with(PATH) {
        url.set_path(&(path + PATH));
    }
    Ok(url)
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let wrong = |what: &str| Error::usage(format!("{what} of the header {name:?} cannot be sent"));
        let key: HeaderName = name.parse().map_err(|_| wrong("the name"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| wrong("the value"))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    Ok(headers)
}

impl Exporter for Http {
    fn export<'a>(&'a mut self, resource: &'a Resource, spans: &'a [Span]) -> Attempt<'a> {
        Box::pin(async move {
            let body = otlp::request(resource, spans).encode_to_vec();
            match self.client.post(self.url.clone()).body(body).send().await {
                Ok(answer) => judge(answer).await,
                Err(error) => {
                    let hint = port_hint(self.url.port(), "http");
                    let message = format!("{}{hint}", root_cause(&error));
                    Verdict::Again { why: Reason::Unreachable, message, after: None }
                }
            }
        })
    }
}

async fn judge(answer: Response) -> Verdict {
    let status = answer.status();
    let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = match answer.bytes().await {
        Ok(body) => body,
        Err(error) => {
            let message = root_cause(&error);
            return Verdict::Again { why: Reason::Unreachable, message, after: None };
        }
    };
    if status.is_success() {
        let partial = ExportTraceServiceResponse::decode(body).ok().and_then(|said| said.partial_success);
        return Verdict::taken(partial.map(|partial| (partial.rejected_spans, partial.error_message)));
    }
    verdict(status, &String::from_utf8_lossy(&body), after.map(Duration::from_secs))
}

/// Which answers may be followed by another attempt is said by the OTLP specification.
fn verdict(status: StatusCode, body: &str, after: Option<Duration>) -> Verdict {
    let said: String = body.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    let message = format!("{status}: {said}");
    match status.as_u16() {
        429 => Verdict::Again { why: Reason::Throttled, message, after },
        502..=504 => Verdict::Again { why: Reason::Unreachable, message, after },
        _ => Verdict::Lost { why: Reason::Refused, message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_added_where_it_is_missing() {
        let shown = |given| address(given).unwrap().to_string();
        assert_eq!(shown("http://h:4318"), "http://h:4318/v1/traces");
        assert_eq!(shown("http://h:4318/"), "http://h:4318/v1/traces");
        assert_eq!(shown("https://h/otlp/"), "https://h/otlp/v1/traces");
        assert_eq!(shown("https://h/otlp/v1/traces"), "https://h/otlp/v1/traces");
        for wrong in ["", "h", "h:4318", "ftp://h", "http://"] {
            let error = address(wrong).unwrap_err().to_string();
            assert!(error.starts_with("no address of a collector: "), "{wrong}: {error}");
        }
    }

    /// Broken by: trying again what never works, or giving up what does (the OTLP specification's table).
    #[test]
    fn answers_are_understood() {
        let judged =
            |code| verdict(StatusCode::from_u16(code).unwrap(), "no\n", Some(Duration::from_secs(7)));
        for code in [429, 502, 503, 504] {
            let Verdict::Again { after, .. } = judged(code) else { panic!("{code}") };
            assert_eq!(after, Some(Duration::from_secs(7)));
        }
        for code in [301, 400, 401, 404, 413, 500] {
            assert!(matches!(judged(code), Verdict::Lost { .. }), "{code}");
        }
    }
}
