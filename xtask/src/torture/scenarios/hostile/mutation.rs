//! Bytes that were right, made wrong: by place, by number, or by the structure of JSON.

use serde_json::{Value, json};

use crate::torture::draw::Draw;

/// Texts that stand where a number or a word stood.
pub(super) const HOSTILE: [&str; 32] = [
    "",
    "0",
    "-0",
    "-1",
    "1",
    "2",
    "255",
    "65536",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "1e3",
    "1e18",
    "1e308",
    "1e309",
    "-1e308",
    "1e-320",
    "0.1",
    "nan",
    "NaN",
    "inf",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\u{202e}\u{0}é🌊",
];

/// The sample, changed in one to four places.
pub(super) fn mutated(draw: &mut Draw, sample: &[u8]) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    let changes = if draw.chance(1, 2) { 1 } else { draw.within(2, 4) };
    for _ in 0..changes {
        match draw.below(8) {
            0 => flip(draw, &mut bytes),
            1 => cut(draw, &mut bytes),
            2 => copy(draw, &mut bytes),
            3 => graft(draw, &mut bytes),
            4 => replace(draw, &mut bytes),
            _ => renumber(draw, &mut bytes),
        }
    }
    bytes
}

/// Some bits are others.
fn flip(draw: &mut Draw, bytes: &mut [u8]) {
    for _ in 0..draw.magnitude(8) {
        if !bytes.is_empty() {
            let at = draw.place(bytes.len());
            bytes[at] ^= 1 << draw.below(8);
        }
    }
}

/// Something is missing, often all to the end.
fn cut(draw: &mut Draw, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let from = draw.place(bytes.len());
    let length = if draw.chance(1, 2) { draw.magnitude(40) as usize } else { bytes.len() };
    bytes.drain(from..(from + length).min(bytes.len()));
}

/// Something is there again, possibly very often.
fn copy(draw: &mut Draw, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let from = draw.place(bytes.len());
    let part = bytes[from..(from + draw.magnitude(200) as usize).min(bytes.len())].to_vec();
    let times = draw.magnitude(2000) as usize;
    let at = draw.place(bytes.len() + 1);
    bytes.splice(at..at, part.repeat(times));
}

/// A number or a word is another.
fn replace(draw: &mut Draw, bytes: &mut Vec<u8>) {
    let words = words(bytes);
    if words.is_empty() {
        return;
    }
    let (from, to) = words[draw.place(words.len())];
    bytes.splice(from..to, draw.pick(&HOSTILE).bytes());
}

/// A whole number is another whole number: what is read without complaint, and may be far too much.
fn renumber(draw: &mut Draw, bytes: &mut Vec<u8>) {
    let is_number = |(from, to): &(usize, usize)| bytes[*from..*to].iter().all(u8::is_ascii_digit);
    let numbers: Vec<(usize, usize)> = words(bytes).into_iter().filter(is_number).collect();
    if numbers.is_empty() {
        return;
    }
    let (from, to) = numbers[draw.place(numbers.len())];
    let bits = draw.one(&[4, 12, 20, 31, 40, 62]);
    bytes.splice(from..to, draw.magnitude(1 << bits).to_string().into_bytes());
}

/// Where words and numbers are.
fn words(bytes: &[u8]) -> Vec<(usize, usize)> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte);
    let mut words = Vec::new();
    let mut begin = None;
    for (at, byte) in bytes.iter().copied().chain([b' ']).enumerate() {
        match (is_word(byte), begin) {
            (true, None) => begin = Some(at),
            (false, Some(from)) => {
                words.push((from, at));
                begin = None;
            }
            _ => {}
        }
    }
    words
}

/// A value of one of the lines, or of the whole, is of another kind.
fn graft(draw: &mut Draw, bytes: &mut Vec<u8>) {
    let whole = serde_json::from_slice::<Value>(bytes).ok().map(|value| (0, bytes.len(), value));
    let Some((from, to, mut value)) = whole.or_else(|| json_line(draw, bytes)) else {
        return replace(draw, bytes);
    };
    let mut node = &mut value;
    while draw.chance(9, 10) && has_children(node) {
        node = child(draw, node);
    }
    *node = strange(draw, node);
    bytes.splice(from..to, value.to_string().into_bytes());
}

/// Any line, if it is JSON.
fn json_line(draw: &mut Draw, bytes: &[u8]) -> Option<(usize, usize, Value)> {
    let mut from = 0;
    let mut lines = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        lines.push((from, from + line.len()));
        from += line.len() + 1;
    }
    let (from, to) = lines[draw.place(lines.len())];
    Some((from, to, serde_json::from_slice(&bytes[from..to]).ok()?))
}

fn has_children(node: &Value) -> bool {
    node.as_array().is_some_and(|list| !list.is_empty())
        || node.as_object().is_some_and(|map| !map.is_empty())
}

fn child<'v>(draw: &mut Draw, node: &'v mut Value) -> &'v mut Value {
    match node {
        Value::Array(list) => {
            let at = draw.place(list.len());
            &mut list[at]
        }
        Value::Object(map) => {
            let at = draw.place(map.len());
            map.values_mut().nth(at).expect("a place within")
        }
        other => other,
    }
}

/// A value that does not belong there.
fn strange(draw: &mut Draw, node: &Value) -> Value {
    match draw.below(9) {
        0 => Value::Null,
        1 => json!([]),
        2 => json!({}),
        3 => json!("x".repeat(draw.magnitude(100_000) as usize)),
        4 => json!([node, node]),
        5 => json!({ "type": node, "\u{0}": node }),
        6 => serde_json::from_str(&format!("{}1{}", "[".repeat(100), "]".repeat(100))).unwrap_or(Value::Null),
        7 => json!(draw.one(&[u64::MAX, u64::from(u32::MAX) + 1, 1 << 53, 0, 1 << 31])),
        _ => json!(draw.one(&[-1.0, 1e300, 1e-300, 0.5, -1e18])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a change that depends on anything but the draws, or changes nothing most of the time.
    #[test]
    fn the_same_draws_make_the_same_changes() {
        let sample = b"{\"a\": [1, 2, {\"b\": null}]}\n{\"c\": \"text\"}\n";
        let made = |seed| mutated(&mut Draw::of(seed, "x"), sample);
        assert_eq!(made(1), made(1));
        assert!((0..100).filter(|seed| made(*seed) != sample).count() > 90);
        assert!((0..100).all(|seed| made(seed).len() < 10_000_000));
    }

    #[test]
    fn nothing_can_be_changed_too() {
        (0..100).for_each(|seed| drop(mutated(&mut Draw::of(seed, "x"), b"")));
    }
}
