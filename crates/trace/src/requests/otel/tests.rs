//! Spans in, requests and who waits for whom out.

use std::sync::Arc;

use super::*;

fn read(text: &str) -> Result<(Vec<Row>, Findings)> {
    let mut reader = Spans::open(&[Input::Bytes(Arc::from(text.as_bytes()))], &ReadOptions::default())?;
    let (mut rows, mut row) = (Vec::new(), Row::default());
    while reader.read(&mut row)? {
        rows.push(row.clone());
    }
    Ok((rows, reader.findings()))
}

/// A span of a trace from one second to another.
fn span(trace: &str, id: &str, (start, end): (u32, u32), attributes: &str) -> String {
    format!(
        "{{\"trace_id\":\"{trace}\",\"span_id\":\"{id}\",\"start_time\":\"2026-02-25T12:00:{start:02}\",\
         \"end_time\":\"2026-02-25T12:00:{end:02}.5+00:00\",\"attributes\":{{{attributes}}}}}"
    )
}

fn file(spans: &[String]) -> String {
    format!("{{\"trace_id\":\"t\",\"spans\":[\n{}]}}", spans.join(",\n"))
}

/// `user:one|assistant:two` as messages, told as a text.
fn messages(said: &str) -> String {
    let message = |part: &str| {
        let (role, text) = part.split_once(':').unwrap();
        format!("{{\\\"role\\\":\\\"{role}\\\",\\\"content\\\":\\\"{text}\\\"}}")
    };
    let list: Vec<_> = said.split('|').map(message).collect();
    format!("\"gen_ai.input.messages\":\"[{}]\"", list.join(","))
}

fn waits(rows: &[Row]) -> Vec<(&str, String, Option<u64>)> {
    let pause = |row: &Row| row.pause.map(|pause| pause.0 / 1_000_000);
    rows.iter().map(|row| (row.request.as_deref().unwrap(), row.wait_for.join(" "), pause(row))).collect()
}

/// Broken by: a session whose calls wait for all before them, or for none; a pause not from the last end.
#[test]
fn a_session_is_a_graph_of_what_had_ended() {
    let said = format!(
        "{},\"x.session.id\":\"s\",\"gen_ai.output.text\":\"four words of text\"",
        messages("user:hello")
    );
    let times =
        [("root", (0, 1)), ("a", (3, 5)), ("b", (3, 6)), ("c", (4, 4)), ("join", (8, 9)), ("last", (11, 12))];
    let spans: Vec<_> = times.iter().map(|(id, times)| span("t", id, *times, &said)).collect();
    let (rows, findings) = read(&file(&spans)).unwrap();
    let of = |name, waits: &str, pause| (name, waits.to_owned(), pause);
    assert_eq!(
        waits(&rows),
        [
            of("root", "", None),
            of("a", "root", Some(1500)),
            of("b", "root", Some(1500)),
            of("c", "root", Some(2500)),
            of("join", "a b c", Some(1500)),
            of("last", "join", Some(1500)),
        ]
    );
    assert_eq!(rows[0].session.as_deref(), Some("s"));
    assert_eq!(rows[0].output_tokens, Some(4));
    assert_eq!(findings.notes[0], "6 model calls, texts counted by tiktoken cl100k_base");
    assert!(findings.notes.contains(&"5 requests came after what had ended in the session".to_owned()));
}

/// Broken by: calls of one trace that wait for each other though neither holds the other's texts.
#[test]
fn calls_of_a_trace_are_connected_by_their_texts() {
    let output = |text: &str| {
        format!(
            ",\"gen_ai.output.messages\":[{{\"role\":\"assistant\",\
             \"parts\":[{{\"type\":\"text\",\"content\":\"{text}\"}}]}}]"
        )
    };
    let spans = [
        span("t", "one", (0, 1), &(messages("user:a question") + &output("an answer"))),
        span("t", "alone", (2, 3), &messages("user:another")),
        span("t", "two", (4, 5), &messages("user:a question|assistant:x|user:more")),
        span("t", "three", (6, 7), &messages("system:you sum up|tool:an answer")),
        span("u", "elsewhere", (8, 9), &messages("user:a question|assistant:x")),
        span("t", "again", (10, 11), &messages("user:a question")),
    ];
    let (rows, _) = read(&file(&spans)).unwrap();
    let found: Vec<_> = waits(&rows).into_iter().map(|(name, waits, _)| (name, waits)).collect();
    let expected =
        [("one", ""), ("alone", ""), ("two", "one"), ("three", "one"), ("elsewhere", ""), ("again", "")];
    assert_eq!(found, expected.map(|(name, waits)| (name, waits.to_owned())));
}

/// Broken by: padding that two prompts share, or that begins before the texts end.
#[test]
fn prompts_are_as_long_as_recorded() {
    let words = "one two three four five six seven eight nine ten ".repeat(8);
    let usage = |tokens: u32| {
        format!("{},\"gen_ai.usage.prompt_tokens\":{tokens}", messages(&format!("user:{words}")))
    };
    let spans = [
        span("t", "a", (0, 1), &messages(&format!("user:{words}"))),
        span("t", "b", (0, 1), &usage(40)),
        span("t", "c", (0, 1), &usage(1000)),
        span("t", "d", (0, 1), &usage(1000)),
        span("t", "e", (0, 1), "\"gen_ai.usage.input_tokens\":7,\"gen_ai.usage.output_tokens\":0"),
    ];
    let (rows, findings) = read(&file(&spans)).unwrap();
    let (said, [a, b, c, d, e]) =
        (rows[0].input_tokens.unwrap(), [0, 1, 2, 3, 4].map(|row: usize| &rows[row]));
    let whole = (said / 16) as usize;
    assert!(whole > 3 && said % 16 != 0, "{said}");
    assert_eq!((b.input_tokens, b.ids.len(), c.ids.len()), (Some(40), 3, 63));
    assert_eq!((&a.ids[..2], &a.ids[..whole]), (&b.ids[..2], &c.ids[..whole]));
    assert_eq!(c.ids[..whole], d.ids[..whole]);
    assert!(c.ids[whole..].iter().all(|id| !d.ids.contains(id)));
    assert_eq!((e.ids.len(), e.input_tokens, e.output_tokens), (0, Some(7), Some(0)));
    assert_eq!(
        findings.notes[1..5],
        [
            "2 prompts longer than the texts: filled up with what is like nothing else",
            "1 prompt shorter than the texts: cut",
            "1 prompt without recorded usage: as long as the texts",
            "1 prompt without texts: as long as recorded",
        ]
    );
}

#[test]
fn otlp_is_read_too() {
    let attribute = |key: &str, kind: &str, value: &str| {
        format!("{{\"key\":\"{key}\",\"value\":{{\"{kind}\":{value}}}}}")
    };
    let members =
        [attribute("role", "stringValue", "\"user\""), attribute("content", "stringValue", "\"hi\"")];
    let part = format!("{{\"kvlistValue\":{{\"values\":[{}]}}}}", members.join(","));
    let attributes = [
        attribute("gen_ai.operation.name", "stringValue", "\"chat\""),
        attribute("gen_ai.usage.input_tokens", "intValue", "\"20\""),
        attribute("gen_ai.usage.output_tokens", "intValue", "5"),
        attribute("gen_ai.input.messages", "arrayValue", &format!("{{\"values\":[{part}]}}")),
        attribute("gen_ai.conversation.id", "stringValue", "\"c\""),
    ];
    let span = |id: &str, start: u64, more: &str| {
        format!(
            "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"scope\":{{}},\"spans\":[{{\"traceId\":\"t\",\
             \"spanId\":\"{id}\",\"startTimeUnixNano\":\"{start}\",\
             \"endTimeUnixNano\":{},\"attributes\":[{}]{more}}}]}}]}}]}}\n",
            start + 1_000_000,
            attributes.join(",")
        )
    };
    let link = ",\"links\":[{\"traceId\":\"t\",\"spanId\":\"a\"}],\"events\":null";
    let (rows, findings) = read(&(span("a", 5_000_000, "") + &span("b", 7_000_000, link))).unwrap();
    assert_eq!(rows[0].start, Some(Moment { nanos: 5_000_000 }));
    assert_eq!((rows[0].input_tokens, rows[0].output_tokens, rows[0].ids.len()), (Some(20), Some(5), 2));
    assert_eq!(waits(&rows)[1], ("b", "a".to_owned(), Some(1)));
    assert_eq!((rows[1].session.as_deref(), rows[1].kind.as_deref()), (Some("c"), Some("chat")));
    assert!(findings.notes.contains(&"1 request came after spans that are named".to_owned()), "{findings:?}");
}

#[test]
fn what_is_no_call_is_skipped_and_counted() {
    let named = |name: &str| format!("\"gen_ai.operation.name\":\"{name}\"");
    let inner = span("t", "inner", (1, 2), &messages("user:x"))
        .replace("{\"trace_id\"", "{\"parent_span_id\":\"outer\",\"trace_id\"");
    let spans = [
        span("t", "outer", (0, 3), &messages("user:x")),
        inner,
        span("t", "tool", (1, 2), &named("execute_tool")),
        span("t", "http", (1, 2), "\"http.method\":\"POST\""),
        span("t", "silent", (1, 2), &named("chat")),
    ];
    let (rows, findings) = read(&file(&spans)).unwrap();
    assert_eq!(rows.iter().map(|row| row.request.as_deref().unwrap()).collect::<Vec<_>>(), ["inner"]);
    assert_eq!(findings.skipped, 4);
    assert_eq!(
        findings.notes[2..],
        [
            "2 spans skipped: no model calls",
            "1 span skipped: neither texts nor usage",
            "1 span skipped: around the same call of another library",
        ]
    );
}

#[test]
fn mistakes_have_their_line() {
    let good = span("t", "a", (0, 1), &messages("user:x"));
    let change = |old: &str, new: &str| {
        file(&[good.clone(), span("t", "b", (0, 1), &messages("user:x")).replacen(old, new, 1)])
    };
    for (text, expected) in [
        (file(&[good.clone(), good.clone()]), "<memory>:3: span \"a\" of trace \"t\" comes again"),
        (change("2026-02-25T12:00:00", "noon"), "<memory>:3: \"start_time\" is \"noon\""),
        (change("\"start_time\"", "\"x\""), "<memory>:3: \"start_time\" is missing"),
        (change("\"b\"", "5"), "<memory>:3: span 2: invalid type: integer `5`"),
        (change("\"attributes\"", "attributes"), "<memory>:3: span 2: not valid JSON"),
        (
            change("\"gen_ai.input", "\"gen_ai.usage.input_tokens\":-1,\"gen_ai.input"),
            "<memory>:3: \"gen_ai.usage.input_tokens\" is -1",
        ),
        (
            change("\"gen_ai.input", "\"gen_ai.usage.input_tokens\":4000000000,\"gen_ai.input"),
            "<memory>:3: \"gen_ai.usage.input_tokens\" is more",
        ),
        (
            file(std::slice::from_ref(&good)).replace("spans", "span"),
            "<memory>:2: there is no array \"spans\"",
        ),
    ] {
        let error = read(&text).err().unwrap_or_else(|| panic!("{text}")).to_string();
        assert!(error.starts_with(expected) && error.contains("\nhint: "), "{expected}: {error}");
    }
}
