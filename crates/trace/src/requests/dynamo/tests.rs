//! Events in, requests and who waits for whom out.

use std::sync::Arc;

use wavetank_model::Nanos;

use super::*;

fn reader(text: &str) -> Events {
    Events::open(&[Input::Bytes(Arc::from(text.as_bytes()))], &ReadOptions::default()).unwrap()
}

fn rows(text: &str) -> Result<Vec<Row>> {
    let mut reader = reader(text);
    let (mut rows, mut row) = (Vec::new(), Row::default());
    while reader.read(&mut row)? {
        rows.push(row.clone());
    }
    Ok(rows)
}

/// A request from `start` to `end`, of a session that works for another one.
fn request(name: &str, session: &str, parent: &str, (start, end): (u64, u64)) -> String {
    let parent =
        if parent.is_empty() { String::new() } else { format!(",\"parent_session_id\":\"{parent}\"") };
    let context = match session {
        "" => String::new(),
        name => format!("\"agent_context\":{{\"session_id\":\"{name}\"{parent}}},"),
    };
    format!(
        "{{\"timestamp\":1,\"event\":{{\"schema\":\"dynamo.request.trace.v1\",\"event_type\":\"request_end\",\
         \"event_time_unix_ms\":{end},{context}\"request\":{{\"request_id\":\"{name}\",\"output_tokens\":2,\
         \"request_received_ms\":{start},\"replay\":{{\"trace_block_size\":16,\"input_length\":20,\
         \"input_sequence_hashes\":[18446744073709551615,2]}}}}}}}}\n"
    )
}

fn tool(session: &str, (start, end): (u64, u64), more: &str) -> String {
    format!(
        "{{\"schema\":\"dynamo.request.trace.v1\",\"event_type\":\"tool_end\",\"event_time_unix_ms\":{end},\
         \"agent_context\":{{\"session_id\":\"{session}\"}},\"tool\":{{\"tool_call_id\":\"c\",\
         \"tool_class\":\"ls\",\"started_at_unix_ms\":{start},\"ended_at_unix_ms\":{end}{more}}}}}\n"
    )
}

/// Name, whom it waits for, pause and tools in milliseconds.
fn told(rows: &[Row]) -> Vec<(&str, String, u64, u64)> {
    let ms = |span: Option<Nanos>| span.unwrap_or(Nanos::ZERO).0 / 1_000_000;
    let name = |row: &Row| row.wait_for.join(" ");
    rows.iter().map(|r| (r.request.as_deref().unwrap(), name(r), ms(r.pause), ms(r.tool_wait))).collect()
}

#[test]
fn requests_without_context_come_in_the_order_of_the_file() {
    let payload = r#"{"schema":"dynamo.request.trace.v1","event_type":"request_payload","request":[1]}"#;
    let text =
        [request("b", "", "", (2000, 2500)), format!("{payload}\n"), request("a", "", "", (1000, 9000))];
    let mut reader = reader(&text.concat());
    assert_eq!(reader.tokens_per_id(), Some(16));
    let mut row = Row::default();
    assert!(reader.read(&mut row).unwrap());
    assert_eq!((row.request.as_deref(), row.start.unwrap().nanos), (Some("b"), 2_000_000_000));
    assert_eq!((row.ids.as_slice(), row.session.as_deref()), ([u64::MAX, 2].as_slice(), None));
    assert!(reader.read(&mut row).unwrap() && !reader.read(&mut Row::default()).unwrap());
    assert_eq!((reader.line(), row.wait_for.len()), (3, 0));
    assert_eq!(reader.findings().notes, ["1 event skipped: payloads and starts of tools"]);
}

/// Broken by: tools counted twice where they overlap; a pause that holds the tools' work; a session that
/// does not wait for who started it, or is not waited for.
#[test]
fn agents_wait_for_tools_and_for_those_they_started() {
    let text = [
        request("p1", "root", "", (1000, 1100)),
        request("c2", "child", "root", (1400, 1900)),
        request("c1", "child", "root", (1200, 1300)),
        request("p2", "root", "", (1500, 1600)),
        request("p3", "root", "", (2000, 2100)),
        tool("root", (1550, 1850), ""),
        tool("root", (1700, 1950), ""),
        tool("root", (1900, 1980), ""),
        request("other", "alone", "nobody", (1050, 1060)),
    ];
    let rows = rows(&text.concat()).unwrap();
    let of = |name, waits: &str, pause, tools| (name, waits.to_owned(), pause, tools);
    assert_eq!(
        told(&rows),
        [
            of("p1", "", 0, 0),
            of("other", "", 0, 0),
            of("c1", "p1", 100, 0),
            of("c2", "c1", 100, 0),
            of("p2", "p1", 400, 0),
            of("p3", "p2 c2", 20, 80),
        ]
    );
}

/// Broken by: a harness that says who started a session and is not believed; or is believed about the future.
#[test]
fn a_harness_may_say_who_started_whom() {
    let launch = |source: &str| {
        format!(
            ",\"claude\":{{\"source_request_id\":\"{source}\",\"consumer_request_id\":\"p3\",\
             \"child_session_id\":\"child\",\"execution_mode\":\"x\"}}"
        )
    };
    let requests = [
        request("p1", "root", "", (1000, 1100)),
        request("p2", "root", "", (1150, 1160)),
        request("c1", "child", "root", (1200, 1300)),
        request("p4", "root", "", (1400, 1500)),
        request("p3", "root", "", (1600, 1700)),
    ]
    .concat();
    let believed = rows(&(requests.clone() + &tool("root", (1, 2), &launch("p1")))).unwrap();
    let waits = |rows: &[Row]| rows.iter().map(|row| row.wait_for.join(" ")).collect::<Vec<_>>();
    assert_eq!(waits(&believed), ["", "p1", "p1", "p2", "p4 c1"]);
    let future = rows(&(requests + &tool("root", (1, 2), &launch("p3")))).unwrap();
    assert_eq!(waits(&future), ["", "p1", "p2", "p2", "p4 c1"]);
}

/// Broken by: two sessions that work for each other and so wait for each other.
#[test]
fn nobody_waits_for_itself() {
    let text =
        [request("a", "x", "y", (5, 5)), request("b", "y", "x", (5, 5)), request("c", "z", "z", (5, 9))];
    assert!(rows(&text.concat()).unwrap().iter().all(|row| row.wait_for.is_empty()));
}

#[test]
fn mistakes_have_their_line() {
    let good = request("a", "s", "", (1, 2));
    let change = |old: &str, new: &str| good.clone() + &request("b", "s", "", (1, 2)).replacen(old, new, 1);
    for (text, expected) in [
        (good.repeat(2), "<memory>:2: \"request_id\" is \"a\" again"),
        (change("16", "8"), "<memory>:2: 2 \"input_sequence_hashes\" for 20 tokens"),
        (change("16", "10"), "<memory>:2: \"trace_block_size\" is 10, and was 16 before"),
        (change("16", "0"), "<memory>:2: \"trace_block_size\" is 0"),
        (change(",2]", "]"), "<memory>:2: 1 \"input_sequence_hashes\" for 20 tokens"),
        (change("\"replay\"", "\"again\""), "<memory>:2: \"replay\" is missing"),
        (change("request_end", "request_begin"), "<memory>:2: \"event_type\" is \"request_begin\""),
        (change("trace.v1", "trace.v2"), "<memory>:2: \"schema\" is \"dynamo.request.trace.v2\""),
        (change("\"b\"", "5"), "<memory>:2: invalid type: integer `5`"),
        (change("\"b\"", "\" \""), "<memory>:2: \"request_id\" is blank"),
        (change("received_ms\":1,", "received_ms\":-1,"), "<memory>:2: \"request_received_ms\" is -1"),
        (good.clone() + &request("b", "", "", (1, 2)), "<memory>:2: a request without \"agent_context\""),
        (good.clone() + &request("b", "s", "t", (1, 2)), "<memory>:2: session \"s\" has another parent"),
        (good.clone() + "{", "<memory>:2: not valid JSON"),
    ] {
        let error = rows(&text).err().unwrap_or_else(|| panic!("{text}")).to_string();
        assert!(error.starts_with(expected) && error.contains("\nhint: "), "{expected}: {error}");
    }
}

#[test]
fn reading_goes_on_behind_a_mistake() {
    let text = "x\n".to_owned() + &request("a", "s", "", (1, 2)) + "y\n" + &request("b", "s", "", (3, 4));
    let mut reader = reader(&text);
    let mut row = Row::default();
    let results: Vec<_> =
        (0..5).map(|_| reader.read(&mut row).map_err(|error| error.to_string()[..10].to_owned())).collect();
    assert_eq!(results, [Err("<memory>:1".into()), Err("<memory>:3".into()), Ok(true), Ok(true), Ok(false)]);
}
