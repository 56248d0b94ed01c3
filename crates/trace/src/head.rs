//! How a file begins, from which its format is guessed.

use std::collections::BTreeSet;

/// The first bytes of a file, unpacked; they may end anywhere.
#[derive(Debug)]
pub struct Head {
    bytes: Vec<u8>,
    /// Names of JSON members and how deep they stand: 1 in an outermost object, 2 in an array of objects.
    keys: BTreeSet<(u32, String)>,
}

impl Head {
    /// How much of a file is looked at.
    pub(crate) const BYTES: usize = 64 << 10;

    /// What `bytes` say.
    pub fn of(bytes: Vec<u8>) -> Self {
        let is_json = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
        let keys = if is_json { keys(&bytes) } else { BTreeSet::new() };
        Self { bytes, keys }
    }

    /// Whether an object at `depth` has a member called `key`.
    pub fn has(&self, depth: u32, key: &str) -> bool {
        self.keys.contains(&(depth, key.to_owned()))
    }

    /// Whether any object has a member called `key`.
    pub(crate) fn has_anywhere(&self, key: &str) -> bool {
        self.keys.iter().any(|(_, known)| known == key)
    }

    /// Whether it begins with an object.
    pub fn is_object(&self) -> bool {
        self.bytes.trim_ascii_start().first() == Some(&b'{')
    }

    /// Whether it begins with an array.
    pub fn is_array(&self) -> bool {
        self.bytes.trim_ascii_start().first() == Some(&b'[')
    }

    /// Whether the first line names all of `columns`.
    pub(crate) fn has_columns(&self, columns: &[&str]) -> bool {
        let line = self.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let names: Vec<_> = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
        columns.iter().all(|column| names.contains(&column.as_bytes()))
    }

    /// Whether these bytes stand somewhere in it.
    pub fn contains(&self, text: &str) -> bool {
        self.bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

/// The names of members, as far as the bytes go.
fn keys(bytes: &[u8]) -> BTreeSet<(u32, String)> {
    let (mut keys, mut depth, mut at) = (BTreeSet::new(), 0_u32, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(length) = string_length(&bytes[at + 1..]) else { break };
                let text = &bytes[at + 1..at + 1 + length];
                at += length + 1;
                if bytes[at + 1..].trim_ascii_start().first() == Some(&b':') {
                    keys.insert((depth, String::from_utf8_lossy(text).into_owned()));
                }
            }
            _ => {}
        }
        at += 1;
    }
    keys
}

/// The bytes of a string before its closing quote.
fn string_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_at_their_depth() {
        let head =
            Head::of(br#" [{"a": {"b\"": 1}, "c": "d:", "e": [1, {"f" : 2}]}, {"g": "cut of"#.to_vec());
        for (depth, key) in [(2, "a"), (3, "b\\\""), (2, "c"), (2, "e"), (4, "f"), (2, "g")] {
            assert!(head.has(depth, key), "{key}: {:?}", head.keys);
        }
        assert!(head.is_array() && head.has_anywhere("f") && !head.has_anywhere("d:"));
        let head = Head::of(b"{\"a\":1}\n{\"b\":2}\n".to_vec());
        assert!(head.has(1, "a") && head.has(1, "b") && !head.is_array());
    }

    #[test]
    fn columns_are_those_of_the_first_line() {
        let head = Head::of(b"a, b ,c\r\n1,2,d\n".to_vec());
        assert!(head.has_columns(&["b", "c"]) && !head.has_columns(&["a", "d"]));
        assert!(head.contains("2,d"));
        Head::of(Vec::new());
        Head::of(b"{\"\\".to_vec());
    }
}
