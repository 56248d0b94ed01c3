//! Lines in, rows and messages out.

use wavetank_model::{Nanos, Priority};

use super::*;
use crate::Moment;

fn row(line: &str) -> Result<Row> {
    let mut row = Row::default();
    parse(line.as_bytes(), &mut row).map(|()| row)
}

fn message(line: &str) -> String {
    row(line).expect_err(line).to_string()
}

#[test]
fn aliases_mean_the_same() {
    let plain = row(r#"{"timestamp":5,"input_length":3,"output_length":2,"hash_ids":[1],"delay":1}"#);
    let alias = r#"{"created_time":5,"input_tokens":3,"output_tokens":2,"hash_ids":[1],"delay_ms":1,"x":0}"#;
    assert_eq!(plain.unwrap(), row(alias).unwrap());
}

#[test]
fn what_is_written_reads_back() {
    let whole = Row {
        request: Some("r".to_owned()),
        session: Some("a \"quoted\" name".to_owned()),
        start: Moment::from_ms(0.1),
        pause: Some(Nanos(1_500_000)),
        input_tokens: Some(7),
        output_tokens: Some(0),
        ids: vec![u64::MAX, 0],
        priority: Priority { soft: -3, strict: 2 },
        policy_class: Some("batch".to_owned()),
        ..Row::default()
    };
    let mut line = Vec::new();
    write(&whole, &mut line).unwrap();
    assert_eq!(row(std::str::from_utf8(&line).unwrap()).unwrap(), whole);
}

#[test]
fn mistakes_name_the_key() {
    let cases = [
        (r#"{"hash_ids":[1]}"#, r#""output_length" is missing"#),
        (r#"{"output_length":1}"#, r#""hash_ids" is missing"#),
        (r#"{"output_length":-1,"hash_ids":[1]}"#, r#""output_length" is -1"#),
        (r#"{"output_tokens":1.5,"hash_ids":[1]}"#, r#""output_tokens" is 1.5"#),
        (r#"{"output_length":1,"hash_ids":[-1]}"#, r#""hash_ids" is [-1]"#),
        (r#"{"output_length":1,"hash_ids":[1],"timestamp":"x"}"#, r#""timestamp" is "x""#),
        (
            r#"{"output_length":1,"output_tokens":1,"hash_ids":[1]}"#,
            r#""output_length" and its alias "output_tokens" are both given"#,
        ),
        (r#"{"output_length":1,"output_length":1,"hash_ids":[1]}"#, "duplicate field `output_length`"),
        (r#"{"output_length":1,"hash_ids":[1],"timestamp":NaN}"#, "not valid JSON"),
        (r#"{"output_length":1,"#, "not valid JSON: EOF"),
        ("[1]", "not a JSON object"),
    ];
    for (line, expected) in cases {
        assert!(message(line).contains(expected), "{line}: {}", message(line));
    }
}
