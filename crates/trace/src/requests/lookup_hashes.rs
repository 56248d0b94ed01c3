//! LMCache's log of looked-up hashes, JSON lines (`--lookup-hash-log-dir`; spec/storage-trace.md 6): the
//! hashes of a prompt's whole chunks as the server was asked for them. What was generated is not told.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;
use wavetank_model::{Error, Result};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{Blocks, Entry, Findings, JsonLine, LineReader, Provides, ReadOptions, Rows};
use crate::Moment;
use crate::reading::lines::from_json;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "lookup_hashes",
    about: "JSON lines of LMCache: timestamp in seconds, request_id, chunk_size, seq_len, chunk_hashes",
    provides: Provides { starts: true, outputs: false, blocks: Blocks::Told, ..Provides::LENGTHS },
    recognises: |head| head.has(1, "chunk_hashes") && head.has(1, "seq_len"),
    read: |inputs, options| Ok(Box::new(LineReader::primed(inputs, Lookups::of(options))?)),
    write: None,
};

const SHAPE: &str = concat!(
    r#"{"timestamp": 1779163048.8, "request_id": "a", "model_name": "m", "chunk_size": 256, "#,
    r#""seq_len": 600, "chunk_hashes": ["0x1f", "0x2e"]}"#,
);

/// A line; `dtypes` and `shapes` are of the cache, not of the request.
#[derive(Deserialize)]
#[serde(expecting = "a lookup, one JSON object")]
struct Lookup<'a> {
    timestamp: f64,
    #[serde(default, borrow)]
    request_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    model_name: Option<Cow<'a, str>>,
    chunk_size: u32,
    seq_len: u32,
    #[serde(borrow)]
    chunk_hashes: Vec<Cow<'a, str>>,
}

/// What was read so far.
#[derive(Default)]
struct Lookups {
    /// What the user says of ids.
    wanted: Option<u32>,
    chunk_size: Option<u32>,
    lookups: u64,
    models: BTreeSet<String>,
}

impl Lookups {
    fn of(options: &ReadOptions) -> Self {
        Self { wanted: options.tokens_per_id, ..Self::default() }
    }

    /// All chunks of a log have one size.
    fn check_size(&mut self, size: u32) -> Result<u32> {
        let known = *self.chunk_size.get_or_insert(size);
        if size == 0 {
            self.chunk_size = None;
            return Err(Error::input("\"chunk_size\" is 0").hint("a chunk has at least one token"));
        }
        if known != size {
            return Err(Error::input(format!("\"chunk_size\" is {size}, and was {known} before"))
                .hint("the chunks of one trace have one size; read the files one by one"));
        }
        if let Some(wanted) = self.wanted.filter(|wanted| *wanted != size) {
            return Err(Error::usage(format!("\"chunk_size\" is {size}, not {wanted} tokens"))
                .hint("leave --trace-block-size away: the file says it"));
        }
        Ok(size)
    }
}

/// A log may name few models only; more are not told one by one.
const MODELS_TOLD: usize = 8;

impl JsonLine for Lookups {
    fn parse(&mut self, line: &[u8], rows: &mut Rows) -> Result<()> {
        let lookup: Lookup<'_> = from_json(line, SHAPE)?;
        let start = Moment::from_seconds(lookup.timestamp).filter(|start| start.nanos >= 0);
        let start = start.ok_or_else(|| {
            Error::input(format!("\"timestamp\" is {}", lookup.timestamp))
                .hint("\"timestamp\" must be seconds, not negative, within 292 years")
        })?;
        let size = self.check_size(lookup.chunk_size)?;
        let (whole, hashes) = (lookup.seq_len / size, lookup.chunk_hashes.len());
        if lookup.seq_len == 0
            || (hashes != whole as usize && hashes != lookup.seq_len.div_ceil(size) as usize)
        {
            let message = format!("{hashes} \"chunk_hashes\" for a \"seq_len\" of {}", lookup.seq_len);
            return Err(Error::input(message)
                .hint(format!("a prompt has one hash for every {size} tokens, and at least one token")));
        }
        self.lookups += 1;
        if self.models.len() <= MODELS_TOLD
            && let Some(model) = lookup.model_name
            && !self.models.contains(&*model)
        {
            self.models.insert(model.into_owned());
        }
        let row = rows.push();
        row.request = lookup.request_id.map(Cow::into_owned);
        row.start = Some(start);
        row.input_tokens = Some(lookup.seq_len);
        for hash in &lookup.chunk_hashes {
            row.ids.push(id(hash)?);
        }
        if hashes as u64 * u64::from(size) < u64::from(lookup.seq_len) {
            // What is left of the prompt is no chunk, and so like nothing else.
            row.ids.push(xxh3_64_with_seed(&self.lookups.to_le_bytes(), hashes as u64));
        }
        Ok(())
    }

    fn tokens_per_id(&self) -> Option<u32> {
        self.chunk_size
    }

    fn findings(&self) -> Findings {
        let names = || self.models.iter().take(MODELS_TOLD).cloned().collect::<Vec<_>>().join(", ");
        let more = if self.models.len() > MODELS_TOLD { " and more" } else { "" };
        let note = (self.models.len() > 1)
            .then(|| format!("lookups of several models are taken for one: {}{more}", names()));
        Findings { skipped: 0, notes: note.into_iter().collect() }
    }
}

/// The id of a chunk: its hash where 64 bits hold it, otherwise a hash of it.
fn id(hash: &str) -> Result<u64> {
    let digits = hash.strip_prefix("0x").unwrap_or(hash);
    let is_hash = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash {
        return Err(Error::input(format!("\"chunk_hashes\" holds \"{}\"", hash.escape_debug()))
            .hint("a hash is hexadecimal, as \"0x1f2e\""));
    }
    if digits.len() <= 16 {
        return u64::from_str_radix(digits, 16).map_err(|error| Error::input(error.to_string()));
    }
    Ok(xxh3_64(digits.to_ascii_lowercase().as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::requests::Source;
    use crate::{Fill, Input, Options, Row, Starts};

    fn line(request: &str, tokens: u32, hashes: &str) -> String {
        format!(
            "{{\"timestamp\":1779163048.815,\"request_id\":\"{request}\",\"model_name\":\"m\",\
             \"chunk_size\":256,\"seq_len\":{tokens},\"dtypes\":[\"bf16\"],\"shapes\":[[2,16]],\
             \"chunk_hashes\":[{hashes}]}}\n"
        )
    }

    fn rows(text: &str) -> Result<Vec<Row>> {
        let mut reader = (ENTRY.read)(&[Input::Bytes(Arc::from(text.as_bytes()))], &ReadOptions::default())?;
        assert!(text.is_empty() || reader.tokens_per_id().is_none_or(|tokens| tokens == 256));
        let (mut rows, mut row) = (Vec::new(), Row::default());
        while reader.read(&mut row)? {
            rows.push(row.clone());
        }
        Ok(rows)
    }

    /// Broken by: tails that two prompts share; long hashes that are cut instead of folded.
    #[test]
    fn chunks_are_shared_and_tails_are_not() {
        let long = format!("\"0x{}1\",\"0x{}2\"", "ab".repeat(16), "ab".repeat(16));
        let text = [line("a", 600, &long), line("b", 600, &long.to_uppercase().replace("0X", "0x"))].concat();
        let rows = rows(&(text + &line("c", 512, "\"0x1f\",\"2e\"") + &line("d", 7, ""))).unwrap();
        assert_eq!(rows[0].ids[..2], rows[1].ids[..2]);
        assert_ne!(rows[0].ids[0], rows[0].ids[1]);
        assert_ne!(rows[0].ids[2], rows[1].ids[2]);
        assert_eq!(rows[2].ids, [0x1f, 0x2e]);
        assert_eq!((rows[3].ids.len(), rows[3].input_tokens), (1, Some(7)));
        assert_eq!(rows[0].start.unwrap().nanos, 1_779_163_048_815_000_000);
    }

    #[test]
    fn the_length_of_answers_is_filled_or_asked_for() {
        let input = Input::Bytes(Arc::from(line("a", 256, "\"0x1\"").as_bytes()));
        let source = Source::with("lookup-hashes", vec![input]).unwrap();
        let mut options = Options::of(Starts::Scheduled { speedup: 1.0 });
        let error = crate::open(&source, &options).err().unwrap().to_string();
        assert!(
            error.starts_with("<memory>:1: how many tokens") && error.contains("--fill output="),
            "{error}"
        );
        options.fill = Fill { output: Some(9), ..Fill::default() };
        let mut loaded = crate::open(&source, &options).unwrap();
        assert_eq!(loaded.workload.open().unwrap().unwrap().request.output_tokens, 9);
        options.read.tokens_per_id = Some(16);
        let error = crate::open(&source, &options).err().unwrap().to_string();
        assert!(error.starts_with("<memory>:1: \"chunk_size\" is 256, not 16"), "{error}");
    }

    #[test]
    fn mistakes_are_told() {
        for (text, expected) in [
            (line("a", 600, "\"0x1\""), "<memory>:1: 1 \"chunk_hashes\" for a \"seq_len\" of 600"),
            (line("a", 0, ""), "<memory>:1: 0 \"chunk_hashes\" for a \"seq_len\" of 0"),
            (line("a", 256, "\"0xg\""), "<memory>:1: \"chunk_hashes\" holds \"0xg\""),
            (line("a", 256, "5"), "<memory>:1: invalid type: integer `5`"),
            (line("a", 256, "\"0x1\"").replace(":256,\"seq", ":0,\"seq"), "<memory>:1: \"chunk_size\" is 0"),
            (
                line("a", 256, "\"1\"") + &line("b", 2, "").replace("256", "16"),
                "<memory>:2: \"chunk_size\" is 16",
            ),
            (line("a", 256, "\"1\"").replace("1779163048.815", "-1"), "<memory>:1: \"timestamp\" is -1"),
        ] {
            let error = rows(&text).unwrap_err().to_string();
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{error}");
        }
    }
}
