//! Which format a trace has: its name tells, or else how it begins.

use wavetank_model::{Error, Result};

use crate::{Head, Input};

/// The row of the table that `input` is read with, if nobody says it. An .lct begins with a length, whose
/// first byte is no character (spec/storage-trace.md 1.1).
pub fn guess(input: &Input) -> Result<&'static str> {
    let (recording, log) = ("lct", "mlperf-csv");
    if let Input::File(path) = input {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match (name.contains(".lct"), name.contains(".csv")) {
            (true, _) => return Ok(recording),
            (_, true) => return Ok(log),
            _ => {}
        }
    }
    match input.head()?.as_deref() {
        Some([b' '..=b'~' | b'\t' | b'\r' | b'\n', ..]) => Ok(log),
        Some(_) => Ok(recording),
        None => Err(Error::usage("its format cannot be told by how it begins")
            .at(input.name())
            .hint(format!("give --format {recording} or --format {log}"))),
    }
}

/// The row of the table for what is of storage calls for certain; anything else may be of requests.
pub fn recognise(input: &Input) -> Result<Option<&'static str>> {
    if matches!(input, Input::File(path) if path.to_string_lossy().contains(".lct")) {
        return Ok(Some("lct"));
    }
    let Some(head) = input.head()? else { return Ok(None) };
    let format = if head.starts_with(b"Timestamp,") { "mlperf-csv" } else { "lct" };
    Ok(is_of_calls(&Head::of(head)).then_some(format))
}

/// Whether a file that begins so is of storage calls, which no request format reads.
pub(crate) fn is_of_calls(head: &Head) -> bool {
    head.has_columns(&["Timestamp", "Operation", "Object_Size_Bytes", "Tier"]) || head.contains("LMCT")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn of(bytes: &[u8]) -> Result<&'static str> {
        guess(&Input::Bytes(Arc::from(bytes)))
    }

    /// Broken by: a table of requests that is taken for one of calls, or the other way round.
    #[test]
    fn requests_are_not_calls() {
        let of = |text: &str| recognise(&Input::Bytes(Arc::from(text.as_bytes()))).unwrap();
        assert_eq!(of("Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n"), Some("mlperf-csv"));
        assert_eq!(of("Timestamp,Model,Request tokens,Response tokens\n"), None);
        assert_eq!(of("{\"timestamp\":0}\n"), None);
        assert_eq!(of(""), None);
        assert_eq!(recognise(&Input::named("nowhere/a.lct.zst")).unwrap(), Some("lct"));
    }

    /// Broken by: one kind that is taken for the other, packed or not; a guess with nothing to go by.
    #[test]
    fn it_is_told_by_how_it_begins() {
        let recording = [0, 0, 1, 44, 0x8a];
        assert_eq!(of(&recording).unwrap(), "lct");
        assert_eq!(of(b"Timestamp,").unwrap(), "mlperf-csv");
        assert_eq!(of(b"\xef\xbb\xbfTimestamp,").unwrap(), "mlperf-csv");
        assert_eq!(of(b"").unwrap(), "lct");
        let packed = zstd::encode_all(&recording[..], 1).unwrap();
        assert_eq!(of(&packed).unwrap(), "lct");
        let error = of(&packed[..6]).unwrap_err().to_string();
        assert!(error.contains("cannot be told"), "{error}");
        assert_eq!(guess(&Input::named("nowhere/a.csv.gz")).unwrap(), "mlperf-csv");
        assert_eq!(guess(&Input::named("nowhere/a.2.lct.zst")).unwrap(), "lct");
    }
}
