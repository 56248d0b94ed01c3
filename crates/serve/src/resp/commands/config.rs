//! `CONFIG GET`: how the server is set, in the words of Redis.

use super::{Call, Outcome, Reply, unknown_part, wrong_count};
use crate::resp::settings::Settings;

/// One setting: its name, and its value.
type Entry = (&'static str, fn(&Settings, u16) -> String);

/// Every setting that clients may read, alphabetical.
const ALL: &[Entry] = &[
    ("appendonly", |_, _| "no".to_owned()),
    ("bind", |settings, _| settings.listen.ip().to_string()),
    ("client-query-buffer-limit", |settings, _| settings.connection_bytes.to_string()),
    ("databases", |_, _| "1".to_owned()),
    ("io-threads", |settings, _| settings.threads.to_string()),
    ("maxclients", |settings, _| settings.connections.to_string()),
    ("maxmemory", |settings, _| settings.l1_bytes.unwrap_or(0).to_string()),
    ("maxmemory-clients", |settings, _| settings.memory_bytes.to_string()),
    ("maxmemory-policy", |settings, _| policy(settings)),
    ("port", |_, port| port.to_string()),
    ("proto-max-bulk-len", |settings, _| settings.value_bytes.to_string()),
    ("save", |_, _| String::new()),
    ("timeout", |settings, _| settings.idle_timeout.map_or(0, |time| time.as_secs()).to_string()),
];

/// Who leaves memory, as Redis names it.
pub(super) fn policy(settings: &Settings) -> String {
    match settings.l1_bytes {
        Some(_) => format!("allkeys-{}", settings.eviction_policy),
        None => "noeviction".to_owned(),
    }
}

/// `CONFIG GET pattern [pattern …]`.
pub(super) fn config(call: &mut Call<'_>) -> Outcome {
    if !call.args.is(1, "GET") {
        return Err(unknown_part(&call.args));
    }
    if call.args.len() < 3 {
        return Err(wrong_count("config|get"));
    }
    let is_wanted = |entry: &&Entry| {
        call.args.iter(2).any(|pattern| matches(&pattern.to_ascii_lowercase(), entry.0.as_bytes()))
    };
    let wanted: Vec<&Entry> = ALL.iter().filter(is_wanted).collect();
    call.out.reply(&Reply::Map(wanted.len()));
    for (name, value) in wanted {
        let value = value(&call.desk.shared.settings, call.desk.shared.port);
        call.out.reply(&Reply::Bulk(name.as_bytes()));
        call.out.reply(&Reply::Bulk(value.as_bytes()));
    }
    Ok(())
}

/// Whether `text` is as `pattern` says: `*` is anything, `?` one byte, `[ab]` one of these, `\` nothing
/// special. Patterns are as long as a client likes, so no step is made twice.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where to go on if it does not fit: after the last star, one byte later than before.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, read));
            continue;
        }
        if at == pattern.len() && read == text.len() {
            return true;
        }
        if let Some(next) = text.get(read).and_then(|byte| one(pattern, at, *byte)) {
            (at, read) = (next, read + 1);
            continue;
        }
        match star {
            Some((after, from)) if from < text.len() => {
                (at, read) = (after, from + 1);
                star = Some((after, from + 1));
            }
            _ => return false,
        }
    }
}

/// Where the pattern goes on if `byte` fits at `at`.
fn one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match (pattern.get(at)?, pattern.get(at + 1)) {
        (b'?', _) => Some(at + 1),
        (b'\\', Some(next)) => (*next == byte).then_some(at + 2),
        (b'[', _) => {
            let end = at + pattern[at..].iter().position(|byte| *byte == b']')?;
            pattern[at + 1..end].contains(&byte).then_some(end + 1)
        }
        (other, _) => (*other == byte).then_some(at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a star that takes as much as it can and never gives back.
    #[test]
    fn patterns_fit_as_they_should() {
        for (pattern, fits, other) in [
            ("*", "save", None),
            ("max*", "maxmemory", Some("save")),
            ("*m*y", "maxmemory", Some("maxmemory-clients")),
            ("s?ve", "save", Some("sve")),
            ("[st]ave", "save", Some("rave")),
            (r"\*", "*", Some("a")),
            ("", "", Some("a")),
        ] {
            assert!(matches(pattern.as_bytes(), fits.as_bytes()), "{pattern}");
            assert!(other.is_none_or(|text| !matches(pattern.as_bytes(), text.as_bytes())), "{pattern}");
        }
        let long = "*a".repeat(5000);
        assert!(!matches(long.as_bytes(), &[b'a'; 100]), "and in time");
    }

    #[test]
    fn settings_are_sorted_by_name() {
        assert!(ALL.is_sorted_by_key(|(name, _)| name));
    }
}
