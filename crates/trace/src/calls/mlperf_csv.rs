//! The I/O trace log of the MLPerf Storage KV-cache benchmark (spec/kv-bench.md 12): CSV with
//! `Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase`. `Delete` is ours; the benchmark does not log it.

use std::fmt::Write as _;
use std::io;

use wavetank_model::{Error, KeyTable, Nanos, Result};

use super::{Call, CallReader, Calls, Entry, Operation, Phase, TierCall, Writer};
use crate::table::{Column, Table};
use crate::{CallSurvey, Input, Output};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "mlperf-csv",
    about: "the I/O trace log of the MLPerf Storage KV-cache benchmark",
    read: |input| Ok(Box::new(Reader::open(input)?) as Calls),
    write: |output| Ok(Box::new(Csv::begin(output)?)),
};

const HEADER: [&str; 6] = ["Timestamp", "Operation", "Object_Size_Bytes", "Tier", "Key", "Phase"];
const OPERATIONS: [(&str, Operation); 3] =
    [("Read", Operation::Read), ("Write", Operation::Write), ("Delete", Operation::Delete)];
const PHASES: [(&str, Phase); 4] =
    [("Prefill", Phase::Prefill), ("Decode", Phase::Decode), ("Evict", Phase::Evict), ("Both", Phase::Both)];

/// The benchmark's threads take the time first and write the row later: rows stand out of order by
/// milliseconds. One that is this much late belongs to another run.
const LATEST: Nanos = Nanos(1_000_000_000);

/// Rows as calls.
struct Reader {
    table: Table,
    columns: [Column; 6],
    /// Times of the first row and the latest one.
    span: Option<(Nanos, Nanos)>,
    failed: bool,
    /// Rows by [`OPERATIONS`].
    counts: [u64; OPERATIONS.len()],
    /// None: the keys of this format are names.
    keys: KeyTable,
}

impl Reader {
    fn open(input: &Input) -> Result<Self> {
        let table = Table::open(input)?;
        let [at, operation, bytes, tier, key, phase] = HEADER.map(|name| table.required(name));
        let columns = [at?, operation?, bytes?, tier?, key?, phase?];
        let (counts, keys) = ([0; OPERATIONS.len()], KeyTable::default());
        Ok(Self { table, columns, span: None, failed: false, counts, keys })
    }

    fn call(&mut self) -> Result<Option<TierCall>> {
        if !self.table.advance()? {
            return Ok(None);
        }
        let (table, [at, operation, bytes, tier, key, phase]) = (&self.table, self.columns);
        let time = table.parsed(at, "seconds, like 12.345678", seconds)?;
        let (first, latest) = self.span.unwrap_or((time, time));
        if time + LATEST < latest {
            let back = latest.since(time).as_seconds();
            return Err(Error::input(format!("\"Timestamp\" goes back by {back:.6} s"))
                .at(table.place())
                .hint("rows stand in the order of their times; one log is one run"));
        }
        // A late row takes the time of the one before it: calls stay in the order of the log.
        let time = time.max(latest);
        self.span = Some((first, time));
        Ok(Some(TierCall {
            at: time.since(first),
            operation: table.parsed(operation, "Read, Write or Delete", |text| named(&OPERATIONS, text))?,
            bytes: table.parsed(bytes, "a whole number of bytes", |text| text.parse().ok())?,
            tier: table.parsed(tier, "Tier-0 to Tier-255", |text| number(text.strip_prefix("Tier-")?))?,
            key: table.value(key).into(),
            phase: table.parsed(phase, "Prefill, Decode, Evict or Both", |text| named(&PHASES, text))?,
        }))
    }
}

impl Iterator for Reader {
    type Item = Result<Call>;

    fn next(&mut self) -> Option<Result<Call>> {
        if self.failed {
            return None;
        }
        let call = self.call();
        self.failed = call.is_err();
        let call = call.transpose()?;
        if let Ok(call) = &call {
            self.counts[OPERATIONS.iter().position(|(_, known)| *known == call.operation).unwrap_or(0)] += 1;
        }
        Some(call.map(Call::Tier))
    }
}

impl CallReader for Reader {
    fn keys(&self) -> &KeyTable {
        &self.keys
    }

    fn survey(&self) -> CallSurvey {
        let last_s = self.span.map_or(0.0, |(first, latest)| latest.since(first).as_seconds());
        let mut survey = CallSurvey { last_s, ..CallSurvey::default() };
        for ((name, _), count) in OPERATIONS.iter().zip(self.counts) {
            survey.count(name, count);
        }
        survey
    }
}

fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}

/// Digits and nothing else.
fn number<T: std::str::FromStr>(digits: &str) -> Option<T> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Seconds as digits, to the nanosecond: seconds since 1970 in floating point would lose the last digits.
fn seconds(text: &str) -> Option<Nanos> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let padded = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = padded.fold(0, |nanos: u64, digit| nanos * 10 + u64::from(digit - b'0'));
    number::<u64>(whole)?.checked_mul(1_000_000_000)?.checked_add(nanos).map(Nanos)
}

/// Calls as rows.
struct Csv<'w> {
    rows: csv::Writer<Output<'w>>,
    field: String,
}

impl<'w> Csv<'w> {
    fn begin(output: Output<'w>) -> io::Result<Self> {
        let mut rows = csv::Writer::from_writer(output);
        rows.write_record(HEADER)?;
        Ok(Self { rows, field: String::new() })
    }

    fn field(&mut self, value: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.field.clear();
        self.field.write_fmt(value).map_err(io::Error::other)?;
        Ok(self.rows.write_field(&self.field)?)
    }
}

impl Writer for Csv<'_> {
    fn write(&mut self, call: &Call, _: &KeyTable) -> io::Result<()> {
        let Call::Tier(call) = call else {
            return Err(io::Error::other("a storage call is no operation on one tier"));
        };
        let micros = call.at.0.saturating_add(500) / 1000;
        self.field(format_args!("{}.{:06}", micros / 1_000_000, micros % 1_000_000))?;
        self.rows.write_field(name_of(&OPERATIONS, &call.operation))?;
        self.field(format_args!("{}", call.bytes))?;
        self.field(format_args!("Tier-{}", call.tier))?;
        self.rows.write_field(&*call.key)?;
        self.rows.write_field(name_of(&PHASES, &call.phase))?;
        Ok(self.rows.write_record(None::<&[u8]>)?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.rows.flush()?;
        self.rows.into_inner().map_err(|error| io::Error::other(error.to_string()))?.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn calls(rows: &str) -> Result<Vec<TierCall>> {
        let text = format!("{}\n{rows}", HEADER.join(","));
        let reader = Reader::open(&Input::Bytes(Arc::from(text.as_bytes())))?;
        let tier = |call| match call {
            Call::Tier(call) => call,
            Call::Storage(_) => unreachable!("no such rows"),
        };
        reader.map(|call| call.map(tier)).collect()
    }

    #[test]
    fn times_count_from_the_first_row() {
        let rows = "1794705271.796539,Write,61480960,Tier-0,conv_1,Prefill\n\
                    1794705271.796719,Read,61480960,Tier-1,conv_1,Decode\n\
                    1794705271.790000,Delete,0,Tier-255,\"a,\"\"b\"\"\",Evict\n\
                    1794705272.9,Read,5,Tier-2,,Both\n";
        let calls = calls(rows).unwrap();
        let times: Vec<_> = calls.iter().map(|call| call.at.0).collect();
        assert_eq!(times, [0, 180_000, 180_000, 1_103_461_000], "a late row does not go back");
        assert_eq!(calls[0].bytes, 61_480_960);
        assert_eq!(calls.iter().map(|call| call.tier).collect::<Vec<_>>(), [0, 1, 255, 2]);
        assert_eq!(
            calls.iter().map(|call| &*call.key).collect::<Vec<_>>(),
            ["conv_1", "conv_1", "a,\"b\"", ""]
        );
        assert_eq!(calls[2].operation, Operation::Delete);
        assert_eq!(calls[3].phase, Phase::Both);
    }

    #[test]
    fn mistakes_name_line_and_column() {
        for (rows, expected) in [
            ("1e3,Read,1,Tier-0,k,Decode\n", r#"<memory>:2: "Timestamp" is "1e3""#),
            ("-1,Read,1,Tier-0,k,Decode\n", r#"<memory>:2: "Timestamp" is "-1""#),
            ("99999999999,Read,1,Tier-0,k,Decode\n", r#"<memory>:2: "Timestamp" is "99999999999""#),
            ("1.,Read,1,Tier-0,k,Decode\n", r#"<memory>:2: "Timestamp" is "1.""#),
            ("1,read,1,Tier-0,k,Decode\n", r#"<memory>:2: "Operation" is "read""#),
            ("1,Read,-1,Tier-0,k,Decode\n", r#"<memory>:2: "Object_Size_Bytes" is "-1""#),
            ("1,Read,1,Tier-256,k,Decode\n", r#"<memory>:2: "Tier" is "Tier-256""#),
            ("1,Read,1,Tier-+1,k,Decode\n", r#"<memory>:2: "Tier" is "Tier-+1""#),
            ("1,Read,1,Tier-0,k,Idle\n", r#"<memory>:2: "Phase" is "Idle""#),
            ("1,Read,1,Tier-0,k\n", "<memory>:2: 5 fields, but the header has 6"),
            (
                "9,Read,1,Tier-0,k,Decode\n7.5,Read,1,Tier-0,k,Decode\n",
                r#"<memory>:3: "Timestamp" goes back by 1.500000 s"#,
            ),
        ] {
            let error = calls(rows).unwrap_err().to_string();
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{rows}: {error}");
        }
        let error = Reader::open(&Input::Bytes(Arc::from(b"".as_slice()))).err().unwrap().to_string();
        assert!(error.starts_with("<memory>:1: column \"Timestamp\" is missing"), "{error}");
    }

    #[test]
    fn nothing_follows_an_error() {
        let text = format!("{}\nx\n1,Read,1,Tier-0,k,Decode\n", HEADER.join(","));
        let mut reader = Reader::open(&Input::Bytes(Arc::from(text.as_bytes()))).unwrap();
        assert!(reader.next().is_some_and(|call| call.is_err()));
        assert!(reader.next().is_none());
    }
}
