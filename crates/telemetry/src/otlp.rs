//! Spans as OTLP's protobuf messages.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource as ResourceMessage;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as SpanMessage, Status};

use crate::resource::Resource;
use crate::span::{Scope, Span, Value};

/// What is sent for `spans`.
pub(crate) fn request(resource: &Resource, spans: &[Span]) -> ExportTraceServiceRequest {
    let scopes = Scope::ALL.into_iter().filter(|scope| spans.iter().any(|span| span.scope == *scope));
    let scope_spans = scopes.map(|scope| ScopeSpans {
        scope: Some(InstrumentationScope {
            name: scope.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Default::default()
        }),
        spans: spans.iter().filter(|span| span.scope == scope).map(message).collect(),
        ..Default::default()
    });
    let resource = ResourceMessage {
        attributes: resource.0.iter().map(|(name, value)| attribute(name, value)).collect(),
        ..Default::default()
    };
    let scope_spans = scope_spans.collect();
    let resource_spans = vec![ResourceSpans { resource: Some(resource), scope_spans, ..Default::default() }];
    ExportTraceServiceRequest { resource_spans }
}

fn message(span: &Span) -> SpanMessage {
    let failure =
        span.failure.as_ref().map(|why| Status { message: why.to_string(), code: StatusCode::Error.into() });
    SpanMessage {
        trace_id: span.trace_id.to_vec(),
        span_id: span.span_id.to_vec(),
        parent_span_id: span.parent.map_or_else(Vec::new, |parent| parent.span_id.to_vec()),
        flags: span.flags(),
        name: span.name.clone().into_owned(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: span.start.0,
        end_time_unix_nano: span.end.0,
        attributes: span.attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
        status: Some(failure.unwrap_or_default()),
        ..Default::default()
    }
}

fn attribute(name: &str, value: &Value) -> KeyValue {
    let value = match value {
        Value::Int(number) => Any::IntValue(*number),
        Value::Double(number) => Any::DoubleValue(*number),
        Value::Bool(answer) => Any::BoolValue(*answer),
        Value::Text(text) => Any::StringValue(text.to_string()),
        Value::Name(text) => Any::StringValue((*text).to_owned()),
    };
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wavetank_model::Nanos;

    use super::*;
    use crate::json;
    use crate::span::Parent;

    /// One of everything.
    fn spans() -> Vec<Span> {
        let root = Span {
            scope: Scope::Server,
            trace_id: [0xab; 16],
            span_id: [1; 8],
            parent: Some(Parent { span_id: [9; 8], is_remote: true }),
            name: "request".into(),
            start: Nanos(1_794_705_468_841_092_864),
            end: Nanos(u64::MAX),
            attributes: vec![
                ("int", Value::Int(i64::MIN)),
                ("double", Value::Double(0.1)),
                ("whole", Value::Double(1.0)),
                ("small", Value::Double(1e-300)),
                ("text", Value::Text(Arc::from("quote \" slash \\ line \n tab \t bell \u{7} é 漢 🦀"))),
                ("name", Value::Name("")),
                ("yes", Value::Bool(true)),
            ],
            failure: None,
        };
        let child = Span {
            scope: Scope::Blend,
            span_id: [2; 8],
            parent: Some(Parent { span_id: [1; 8], is_remote: false }),
            failure: Some("no \"room\"".into()),
            attributes: Vec::new(),
            ..root.clone()
        };
        let alone = Span { scope: Scope::Resp, parent: None, ..child.clone() };
        vec![root, child.clone(), alone, child]
    }

    /// Broken by: a field that one of both forgets, a number or an id that JSON has otherwise.
    #[test]
    fn json_and_protobuf_say_the_same() {
        let mut line = Vec::new();
        json::write_line(&mut line, &Resource::fixed(), &spans()).unwrap();
        assert_eq!(line.pop(), Some(b'\n'));
        assert!(!line.contains(&b'\n'), "one line");
        let read: ExportTraceServiceRequest = serde_json::from_slice(&line).unwrap();
        assert_eq!(read, request(&Resource::fixed(), &spans()));
    }

    #[test]
    fn numbers_without_a_word_in_json_have_one_in_its_mapping() {
        let mut span = spans().remove(2);
        span.attributes =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(|x| ("x", Value::Double(x))).into();
        let mut line = Vec::new();
        json::write_line(&mut line, &Resource::fixed(), &[span]).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&line).unwrap();
        let attributes = &read["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"];
        let names = [0, 1, 2].map(|place| attributes[place]["value"]["doubleValue"].as_str().unwrap());
        assert_eq!(names, ["NaN", "Infinity", "-Infinity"]);
    }
}
