//! One line: an event, and what of it is used.

use std::borrow::Cow;

use serde::Deserialize;
use wavetank_model::{Error, Result};

use super::{Ended, Place};
use crate::reading::lines::from_json;
use crate::{Moment, Row};

const SCHEMA: &str = "dynamo.request.trace.v1";
const SHAPE: &str = concat!(
    r#"{"schema": "dynamo.request.trace.v1", "event_type": "request_end", "event_time_unix_ms": 2000, "#,
    r#""request": {"request_id": "a", "request_received_ms": 1000, "output_tokens": 5, "#,
    r#""replay": {"trace_block_size": 16, "input_length": 20, "input_sequence_hashes": [1, 2]}}}"#,
);

/// What is used of a line.
pub(super) enum Event {
    /// A request that ended, and how many tokens its ids stand for.
    Request { block: u32, ended: Box<Ended> },
    /// A tool that ended.
    Tool(Tool),
    /// Nothing that says more than other events do.
    Skipped,
}

/// A tool that worked for a session.
#[derive(Debug, PartialEq)]
pub(super) struct Tool {
    pub(super) session: String,
    pub(super) start: Moment,
    pub(super) end: Moment,
    pub(super) launch: Option<Launch>,
}

/// Which request started another session, and which one took its result, where a harness says so.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Launch {
    #[serde(rename = "source_request_id")]
    pub(super) source: String,
    #[serde(rename = "consumer_request_id", default)]
    pub(super) consumer: Option<String>,
    #[serde(rename = "child_session_id", default)]
    pub(super) child: Option<String>,
}

/// A line, or the event in it.
#[derive(Deserialize)]
#[serde(expecting = "an event, one JSON object")]
struct Record<'a> {
    #[serde(default, borrow)]
    schema: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    event_type: Option<Cow<'a, str>>,
    #[serde(default)]
    event_time_unix_ms: Option<f64>,
    #[serde(default)]
    agent_context: Option<Context>,
    #[serde(default)]
    request: Option<Request>,
    #[serde(default)]
    tool: Option<ToolFields>,
    #[serde(default, borrow)]
    event: Option<Box<Record<'a>>>,
}

#[derive(Deserialize)]
struct Context {
    session_id: String,
    #[serde(default)]
    parent_session_id: Option<String>,
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    request_id: Option<String>,
    #[serde(default)]
    request_received_ms: Option<f64>,
    #[serde(default)]
    total_time_ms: Option<f64>,
    #[serde(default)]
    output_tokens: Option<u32>,
    #[serde(default)]
    replay: Option<Replay>,
}

#[derive(Deserialize)]
struct Replay {
    trace_block_size: u32,
    input_length: u32,
    input_sequence_hashes: Vec<u64>,
}

#[derive(Deserialize)]
struct ToolFields {
    #[serde(default)]
    started_at_unix_ms: Option<f64>,
    #[serde(default)]
    ended_at_unix_ms: Option<f64>,
    #[serde(default)]
    duration_ms: Option<f64>,
    #[serde(rename = "claude", default)]
    launch: Option<Launch>,
}

/// Kinds of events alone, of lines whose other members are not used.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(default, borrow)]
    event_type: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    event: Option<Box<Kind<'a>>>,
}

/// Reads one line; an error has no place yet.
pub(super) fn parse(line: &[u8]) -> Result<Event> {
    let mut record = match from_json::<Record<'_>>(line, SHAPE) {
        Ok(record) => record,
        Err(_) if is_unused(line) => return Ok(Event::Skipped),
        Err(error) => return Err(error),
    };
    if let Some(inner) = record.event.take() {
        record = *inner;
    }
    let kind = needed(record.event_type.as_deref(), "event_type")?;
    if matches!(kind, "request_payload" | "tool_start") {
        return Ok(Event::Skipped);
    }
    match needed(record.schema.as_deref(), "schema")? {
        SCHEMA => {}
        other => {
            return Err(Error::input(format!("\"schema\" is \"{}\"", other.escape_debug()))
                .hint(format!("\"{SCHEMA}\" is read")));
        }
    }
    match kind {
        "request_end" => request(record),
        "tool_end" | "tool_error" => tool(record),
        other => Err(Error::input(format!("\"event_type\" is \"{}\"", other.escape_debug()))
            .hint("request_end, request_payload, tool_start, tool_end and tool_error are known")),
    }
}

/// Whether a line is of a kind whose other members are not looked at.
fn is_unused(line: &[u8]) -> bool {
    let Ok(kind) = serde_json::from_slice::<Kind<'_>>(line) else { return false };
    let kind = kind.event.map_or(kind.event_type, |event| event.event_type);
    matches!(kind.as_deref(), Some("request_payload" | "tool_start"))
}

fn request(record: Record<'_>) -> Result<Event> {
    let request = needed(record.request, "request")?;
    let name = needed(request.request_id, "request_id")?;
    if name.trim().is_empty() {
        return Err(Error::input("\"request_id\" is blank").hint("every request has its own"));
    }
    let start = moment(needed(request.request_received_ms, "request_received_ms")?, "request_received_ms")?;
    let took = request.total_time_ms.map(|ms| moment(ms.max(0.0), "total_time_ms")).transpose()?;
    let end = match took {
        Some(took) => start.nanos.checked_add(took.nanos).map(|nanos| Moment { nanos }),
        None => record.event_time_unix_ms.and_then(Moment::from_ms).map(|end| end.max(start)),
    };
    let end = needed(end, "total_time_ms")?;
    let output_tokens = needed(request.output_tokens, "output_tokens")?;
    let replay = needed(request.replay, "replay")?;
    check(&replay)?;
    let (session, parent) = match record.agent_context {
        Some(context) => (Some(context.session_id), context.parent_session_id),
        None => (None, None),
    };
    let row = Row {
        request: Some(name),
        session,
        start: Some(start),
        input_tokens: Some(replay.input_length),
        output_tokens: Some(output_tokens),
        // A hash stands for all before it as well: where two are equal, so are the prompts up to there.
        ids: replay.input_sequence_hashes,
        ..Row::default()
    };
    let ended = Box::new(Ended { row, end, parent, place: Place::default() });
    Ok(Event::Request { block: replay.trace_block_size, ended })
}

fn check(replay: &Replay) -> Result<()> {
    let &Replay { trace_block_size: block, input_length, ref input_sequence_hashes } = replay;
    if block == 0 || input_length == 0 {
        let key = if block == 0 { "trace_block_size" } else { "input_length" };
        return Err(Error::input(format!("\"{key}\" is 0")).hint("it is at least 1"));
    }
    let (hashes, blocks) = (input_sequence_hashes.len(), input_length.div_ceil(block));
    if hashes != blocks as usize {
        let message = format!("{hashes} \"input_sequence_hashes\" for {input_length} tokens");
        return Err(
            Error::input(message).hint(format!("blocks of {block} tokens are {blocks}, the last one short"))
        );
    }
    Ok(())
}

fn tool(record: Record<'_>) -> Result<Event> {
    // A tool of nobody makes nobody wait.
    let Some(context) = record.agent_context else { return Ok(Event::Skipped) };
    let tool = needed(record.tool, "tool")?;
    let end = needed(tool.ended_at_unix_ms.or(record.event_time_unix_ms), "ended_at_unix_ms")?;
    let end = moment(end, "ended_at_unix_ms")?;
    let start = match (tool.started_at_unix_ms, tool.duration_ms) {
        (Some(ms), _) => moment(ms, "started_at_unix_ms")?,
        (None, Some(ms)) => {
            Moment { nanos: end.nanos.saturating_sub(moment(ms.max(0.0), "duration_ms")?.nanos) }
        }
        (None, None) => end,
    };
    Ok(Event::Tool(Tool { session: context.session_id, start: start.min(end), end, launch: tool.launch }))
}

fn needed<T>(value: Option<T>, key: &str) -> Result<T> {
    value.ok_or_else(|| Error::input(format!("\"{key}\" is missing")).hint(format!("a request is {SHAPE}")))
}

fn moment(ms: f64, key: &str) -> Result<Moment> {
    Moment::from_ms(ms).filter(|moment| moment.nanos >= 0).ok_or_else(|| {
        Error::input(format!("\"{key}\" is {ms}"))
            .hint(format!("\"{key}\" must be milliseconds, not negative, within 292 years"))
    })
}
