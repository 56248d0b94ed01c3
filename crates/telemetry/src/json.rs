//! OTLP as JSON: one `ExportTraceServiceRequest` per line, with hexadecimal ids and whole numbers of 64 bits
//! as text (the OTLP specification's JSON mapping; what collectors read as `otlpjsonfile`).
//!
//! Written by hand because a replay writes millions; a test reads it back with the generated types.

use std::io::{self, Write};

use crate::resource::Resource;
use crate::span::{Scope, Span, Value};

/// Writes `spans` as one line.
pub fn write_line(out: &mut dyn Write, resource: &Resource, spans: &[Span]) -> io::Result<()> {
    let mut line = Vec::with_capacity(spans.len() * 512 + 512);
    line.extend_from_slice(b"{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    let attributes = resource.0.iter().map(|(name, value)| (&**name, value));
    list(&mut line, attributes, |line, (name, value)| attribute(line, name, value))?;
    line.extend_from_slice(b"]},\"scopeSpans\":[");
    let scopes = Scope::ALL.into_iter().filter(|scope| spans.iter().any(|span| span.scope == *scope));
    list(&mut line, scopes, |line, scope| {
        let version = env!("CARGO_PKG_VERSION");
        write!(line, "{{\"scope\":{{\"name\":\"{}\",\"version\":\"{version}\"}},\"spans\":[", scope.name())?;
        list(line, spans.iter().filter(|span| span.scope == scope), write_span)?;
        line.write_all(b"]}")
    })?;
    line.extend_from_slice(b"]}]}\n");
    out.write_all(&line)
}

fn list<T>(
    line: &mut Vec<u8>,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut Vec<u8>, T) -> io::Result<()>,
) -> io::Result<()> {
    for (place, item) in items.enumerate() {
        if place > 0 {
            line.push(b',');
        }
        write(line, item)?;
    }
    Ok(())
}

fn write_span(line: &mut Vec<u8>, span: &Span) -> io::Result<()> {
    line.extend_from_slice(b"{\"traceId\":\"");
    hex(line, &span.trace_id);
    line.extend_from_slice(b"\",\"spanId\":\"");
    hex(line, &span.span_id);
    if let Some(parent) = span.parent {
        line.extend_from_slice(b"\",\"parentSpanId\":\"");
        hex(line, &parent.span_id);
    }
    write!(line, "\",\"flags\":{},\"name\":", span.flags())?;
    serde_json::to_writer(&mut *line, &*span.name)?;
    let (start, end) = (span.start.0, span.end.0);
    write!(line, ",\"kind\":1,\"startTimeUnixNano\":\"{start}\",\"endTimeUnixNano\":\"{end}\"")?;
    line.extend_from_slice(b",\"attributes\":[");
    list(line, span.attributes.iter(), |line, (name, value)| attribute(line, name, value))?;
    line.extend_from_slice(b"],\"status\":{");
    if let Some(failure) = &span.failure {
        line.extend_from_slice(b"\"message\":");
        serde_json::to_writer(&mut *line, &**failure)?;
        line.extend_from_slice(b",\"code\":2");
    }
    line.write_all(b"}}")
}

fn attribute(line: &mut Vec<u8>, name: &str, value: &Value) -> io::Result<()> {
    line.extend_from_slice(b"{\"key\":");
    serde_json::to_writer(&mut *line, name)?;
    line.extend_from_slice(b",\"value\":{");
    match value {
        Value::Int(number) => write!(line, "\"intValue\":\"{number}\"")?,
        // JSON has no word for these; protobuf's mapping does.
        Value::Double(number) if !number.is_finite() => {
            let name = if number.is_nan() {
                "NaN"
            } else if *number > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            };
            write!(line, "\"doubleValue\":\"{name}\"")?;
        }
        Value::Double(number) => write!(line, "\"doubleValue\":{number:?}")?,
        Value::Bool(answer) => write!(line, "\"boolValue\":{answer}")?,
        Value::Text(text) => string_value(line, text)?,
        Value::Name(text) => string_value(line, text)?,
    }
    line.write_all(b"}}")
}

fn string_value(line: &mut Vec<u8>, text: &str) -> io::Result<()> {
    line.extend_from_slice(b"\"stringValue\":");
    Ok(serde_json::to_writer(line, text)?)
}

fn hex(line: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        line.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}
