//! What bpftrace prints at its end: power-of-two histograms and numbers, by name and key.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Everything that was printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Printed {
    /// By name, then by key; a map without keys has one that is empty.
    pub(super) histograms: BTreeMap<String, BTreeMap<String, Histogram>>,
    pub(super) numbers: BTreeMap<String, i64>,
    /// What is neither.
    pub(super) other: Vec<String>,
}

/// How many values were from one number up to, but without, another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Histogram(pub(super) Vec<Bucket>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) from: i64,
    /// Without it; `None` where there is no end.
    pub(super) to: Option<i64>,
    pub(super) count: u64,
}

/// Reads all of a program's output.
pub(super) fn printed(text: &str) -> Printed {
    let mut printed = Printed::default();
    let mut current: Option<(String, String)> = None;
    for line in text.lines().map(str::trim_end) {
        if let Some((name, key, rest)) = heading(line) {
            match rest.parse() {
                Ok(number) if key.is_empty() => drop(printed.numbers.insert(name, number)),
                _ if rest.is_empty() => current = Some((name, key)),
                _ => printed.other.push(line.to_owned()),
            }
            continue;
        }
        match (bucket(line), &current) {
            (Some(bucket), Some((name, key))) => {
                let keys = printed.histograms.entry(name.clone()).or_default();
                keys.entry(key.clone()).or_default().0.push(bucket);
            }
            _ if line.is_empty() => current = None,
            _ => printed.other.push(line.to_owned()),
        }
    }
    printed
}

/// `@name: rest` or `@name[key]: rest`.
fn heading(line: &str) -> Option<(String, String, &str)> {
    let line = line.strip_prefix('@')?;
    let (named, rest) = match line.find('[') {
        Some(at) if !line[..at].contains(':') => {
            let (key, rest) = line[at + 1..].split_once("]:")?;
            ((&line[..at], key), rest)
        }
        _ => {
            let (name, rest) = line.split_once(':')?;
            ((name, ""), rest)
        }
    };
    Some((named.0.to_owned(), named.1.to_owned(), rest.trim()))
}

/// `[4K, 8K)   15 |@@@@   |`, `[1]   3 |@ |` or `(..., 0)   1 |@ |`.
fn bucket(line: &str) -> Option<Bucket> {
    let (range, rest) = line.split_once([')', ']'])?;
    let count = rest.split('|').next()?.trim().parse().ok()?;
    let range = range.strip_prefix(['[', '('])?;
    let (from, to) = match range.split_once(", ") {
        None => {
            let only = value(range)?;
            (only, Some(only + 1))
        }
        Some(("...", to)) => (i64::MIN, Some(value(to)?)),
        Some((from, "...")) => (value(from)?, None),
        Some((from, to)) => (value(from)?, Some(value(to)?)),
    };
    Some(Bucket { from, to, count })
}

/// A number with a suffix for 1024 and its powers.
fn value(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let power = match &text[digits.len()..] {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        "E" => 6,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(1 << (10 * power))
}

impl Histogram {
    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|bucket| bucket.count).sum()
    }

    /// The least that the value at this share of all, in order, can be.
    pub(super) fn at_least(&self, share: f64) -> i64 {
        let rank = ((share * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.0.iter().find(|bucket| {
            seen += bucket.count;
            seen >= rank
        });
        found.map_or(0, |bucket| bucket.from)
    }

    /// For the report.
    pub(super) fn json(&self) -> Value {
        let rows = self.0.iter().filter(|bucket| bucket.count > 0);
        let rows: Vec<Value> = rows.map(|Bucket { from, to, count }| json!([from, to, count])).collect();
        json!({
            "count": self.count(),
            "p50": self.at_least(0.5),
            "p95": self.at_least(0.95),
            "p99": self.at_least(0.99),
            "p999": self.at_least(0.999),
            "buckets": rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by bpftrace 0.17.0 on Linux 6.18 at the end of a run on a virtual disk.
    const CAPTURED: &str = include_str!("captured.txt");

    #[test]
    fn what_bpftrace_printed_is_read() {
        let printed = printed(CAPTURED);
        assert_eq!(printed.other, ["Attaching 19 probes...", "attached"]);
        assert_eq!(printed.numbers["phase"], 2);
        let all: Vec<String> = printed
            .histograms
            .iter()
            .flat_map(|(name, keys)| {
                keys.iter().map(move |(key, histogram)| {
                    let at = [0.5, 0.95, 0.99].map(|share| histogram.at_least(share));
                    format!("{name} {key}: {} values, {at:?}", histogram.count())
                })
            })
            .collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn every_kind_of_bucket() {
        let text = "@x: \n(..., 0)  2 |@@ |\n[0]   1 |@ |\n[1]   3 |@@@|\n[2, 4)   0 |  |\n\
                    [512K, 1M)   5 |@|\n[2M, ...)   1 | |\n\n@n: -3\n@y[a, 1]: 7\nLost 3 events\n";
        let printed = printed(text);
        let histogram = &printed.histograms["x"][""];
        let bucket = |from, to, count| Bucket { from, to, count };
        assert_eq!(
            histogram.0,
            [
                bucket(i64::MIN, Some(0), 2),
                bucket(0, Some(1), 1),
                bucket(1, Some(2), 3),
                bucket(2, Some(4), 0),
                bucket(512 << 10, Some(1 << 20), 5),
                bucket(2 << 20, None, 1),
            ]
        );
        assert_eq!(histogram.count(), 12);
        assert_eq!([0.25, 0.5, 0.9, 1.0].map(|share| histogram.at_least(share)), [0, 1, 512 << 10, 2 << 20]);
        assert_eq!(printed.numbers["n"], -3);
        assert_eq!(printed.other, ["@y[a, 1]: 7", "Lost 3 events"], "nothing is left out");
    }
}
