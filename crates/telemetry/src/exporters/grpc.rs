//! OTLP over gRPC, with TLS for `https://`.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};
use wavetank_model::{Error, Result};

use super::{Attempt, Entry, Exporter, Target, Verdict, port_hint, root_cause};
use crate::otlp;
use crate::resource::Resource;
use crate::span::Span;
use crate::tally::Reason;

pub(super) const ENTRY: Entry = Entry { name: "grpc", about: "OTLP over gRPC, port 4317 as a rule", open };

struct Grpc {
    endpoint: Endpoint,
    headers: MetadataMap,
    /// Made with the first batch, on the thread that exports.
    client: Option<TraceServiceClient<Channel>>,
}

fn open(target: &Target) -> Result<Box<dyn Exporter>> {
    let wrong = |error: tonic::transport::Error| {
        Error::usage(format!("no address of a collector: {}", root_cause(&error)))
            .hint("write http://HOST:4317, or https:// for TLS")
    };
    let endpoint = Endpoint::from_shared(target.address.clone()).map_err(wrong)?;
    let mut endpoint = endpoint
        .user_agent(concat!("wavetank/", env!("CARGO_PKG_VERSION")))
        .map_err(wrong)?
        .connect_timeout(target.timeout)
        .http2_keep_alive_interval(Duration::from_secs(30))
        .keep_alive_while_idle(false);
    if endpoint.uri().scheme_str() == Some("https") {
        let tls = match target.trusted()? {
            Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        endpoint = endpoint.tls_config(tls).map_err(wrong)?;
    }
    let headers = target.headers.iter().map(header).collect::<Result<Vec<_>>>()?;
    let mut metadata = MetadataMap::new();
    for (name, value) in headers {
        metadata.append(name, value);
    }
    Ok(Box::new(Grpc { endpoint, headers: metadata, client: None }))
}

fn header((name, value): &(String, String)) -> Result<(AsciiMetadataKey, AsciiMetadataValue)> {
    let wrong = |what: &str| Error::usage(format!("{what} of the header {name:?} cannot be sent"));
    let key = name.to_ascii_lowercase().parse().map_err(|_| wrong("the name"))?;
    let mut value: AsciiMetadataValue = value.parse().map_err(|_| wrong("the value"))?;
    value.set_sensitive(true);
    Ok((key, value))
}

impl Exporter for Grpc {
    fn export<'a>(&'a mut self, resource: &'a Resource, spans: &'a [Span]) -> Attempt<'a> {
        Box::pin(async move {
            let client =
                self.client.get_or_insert_with(|| TraceServiceClient::new(self.endpoint.connect_lazy()));
            let mut request = Request::new(otlp::request(resource, spans));
            *request.metadata_mut() = self.headers.clone();
            match client.export(request).await {
                Ok(answer) => {
                    let partial = answer.into_inner().partial_success;
                    Verdict::taken(partial.map(|partial| (partial.rejected_spans, partial.error_message)))
                }
                Err(status) => verdict(&status, self.endpoint.uri().port_u16()),
            }
        })
    }
}

/// Which answers may be followed by another attempt is said by the OTLP specification.
fn verdict(status: &Status, port: Option<u16>) -> Verdict {
    let cause = std::error::Error::source(status).map(|cause| format!(": {}", root_cause(cause)));
    let (code, said) = (status.code(), status.message());
    let hint = port_hint(port, "grpc");
    let message = format!("{code:?}: {said}{}{hint}", cause.unwrap_or_default());
    match status.code() {
        Code::ResourceExhausted => Verdict::Again { why: Reason::Throttled, message, after: None },
        Code::DeadlineExceeded => Verdict::Again { why: Reason::TimedOut, message, after: None },
        Code::Unavailable | Code::Cancelled | Code::Aborted | Code::OutOfRange | Code::DataLoss => {
            Verdict::Again { why: Reason::Unreachable, message, after: None }
        }
        _ => Verdict::Lost { why: Reason::Refused, message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: trying again what never works, or giving up what does (the OTLP specification's table).
    #[test]
    fn answers_are_understood() {
        let again = |code: Code| matches!(verdict(&Status::new(code, ""), None), Verdict::Again { .. });
        for code in [Code::Unavailable, Code::ResourceExhausted, Code::DeadlineExceeded, Code::Aborted] {
            assert!(again(code), "{code:?}");
        }
        for code in [Code::Unauthenticated, Code::InvalidArgument, Code::Unimplemented, Code::Internal] {
            assert!(!again(code), "{code:?}");
        }
        let hinted = format!("{:?}", verdict(&Status::unavailable("no"), Some(4318)));
        assert!(hinted.contains("usually for --otlp-protocol http"), "{hinted}");
    }
}
