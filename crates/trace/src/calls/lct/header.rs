//! The first frame of a file (spec/storage-trace.md 1.3) and which files are refused for it (1.8).

use serde_json::{Map, Value};
use wavetank_model::{Error, Result};

use super::cursor::{Cursor, Fault, Read, brief};
use super::shape::{Field, keep, required};

pub(super) const MAGIC: &[u8; 4] = b"LMCT";
pub(super) const FORMAT: u64 = 1;
/// Schema 2 has the tenant in every key.
pub(super) const SCHEMAS: [u64; 2] = [1, 2];

/// What a recording says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// `storage`, or `events`, of which only names are read.
    pub level: String,
    /// 1, or 2 where keys have a tenant.
    pub schema: u64,
    /// The recorder's monotonic clock when it began, in seconds.
    pub mono_start_s: f64,
    /// The time when it began, in seconds since 1970.
    pub wall_start_s: f64,
    /// The storage configuration as JSON; empty is none.
    pub config_json: String,
    /// What the recorder computed of it.
    pub config_digest: String,
    /// More about the recorder.
    pub level_meta: Map<String, Value>,
    /// A recording in several files: which one this is, from 1.
    pub part: u32,
}

impl Header {
    /// Of a recording of storage calls that began at this time.
    pub fn storage(wall_start_s: f64, config_json: String) -> Self {
        Self {
            level: "storage".to_owned(),
            schema: SCHEMAS[0],
            mono_start_s: 0.0,
            wall_start_s,
            config_digest: super::config::plain_digest(&config_json),
            config_json,
            level_meta: Map::new(),
            part: 1,
        }
    }

    /// Reads the first frame; `name` is the file's.
    pub(super) fn of(frame: &[u8], name: &str) -> Result<Self> {
        let refused = |message: String, hint: &str| Err(Error::input(message).at(name).hint(hint));
        let raw = match Raw::read(frame) {
            Ok(raw) => raw,
            Err(Fault { reason, .. }) => {
                return refused(
                    format!("its first frame is no header: {reason}"),
                    "an .lct recording begins with one; is it another kind of file?",
                );
            }
        };
        if raw.magic != MAGIC {
            let magic: String = raw.magic.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            return refused(
                format!("its magic is {magic}, not 4c4d4354 (LMCT)"),
                "it is no .lct recording, or it is damaged",
            );
        }
        if raw.format != FORMAT {
            let format = raw.format;
            return refused(
                format!("format_version is {format}"),
                "version 1 is read; a newer recorder needs a newer reader",
            );
        }
        if !SCHEMAS.contains(&raw.header.schema) {
            let schema = raw.header.schema;
            return refused(
                format!("trace_schema_version is {schema}"),
                "versions 1 and 2 are read; a newer recorder needs a newer reader",
            );
        }
        Ok(raw.header)
    }
}

struct Raw<'b> {
    magic: &'b [u8],
    format: u64,
    header: Header,
}

impl<'b> Raw<'b> {
    fn read(frame: &'b [u8]) -> Read<Self> {
        let (mut kind, mut magic, mut format, mut level, mut schema) = (None, None, None, None, None);
        let (mut mono, mut wall, mut json, mut digest) = (None, None, None, None);
        let (mut meta, mut part) = (None, None);
        let mut cursor = Cursor::new(frame);
        cursor.fields(|name, cursor| match name {
            b"type" => keep(&mut kind, cursor.text()),
            b"magic" => keep(&mut magic, cursor.binary()),
            b"format_version" => keep(&mut format, cursor.integer()),
            b"level" => keep(&mut level, cursor.text()),
            b"trace_schema_version" => keep(&mut schema, cursor.integer()),
            b"t_mono_start" => keep(&mut mono, cursor.float()),
            b"t_wall_start" => keep(&mut wall, cursor.float()),
            b"sm_config_json" => keep(&mut json, cursor.text()),
            b"sm_config_digest" => keep(&mut digest, cursor.text()),
            b"level_meta" => keep(&mut meta, level_meta(cursor)),
            b"wt_part" => keep(&mut part, cursor.integer()),
            _ => Ok(Field::Unknown),
        })?;
        let kind = required("type", kind)?;
        if kind != "header" {
            return Err(Fault::damaged(format!("its type is \"{}\"", brief(kind))));
        }
        let header = Header {
            level: required("level", level)?.to_owned(),
            schema: required("trace_schema_version", schema)?,
            mono_start_s: required("t_mono_start", mono)?,
            wall_start_s: required("t_wall_start", wall)?,
            config_json: required("sm_config_json", json)?.to_owned(),
            config_digest: required("sm_config_digest", digest)?.to_owned(),
            level_meta: meta.unwrap_or_default(),
            // Parts count from 1; a file that says 0 is not part of anything.
            part: part.unwrap_or(1).max(1),
        };
        Ok(Self { magic: required("magic", magic)?, format: required("format_version", format)?, header })
    }
}

/// What a recorder says of itself is short.
const MOST_META: usize = 64;

/// Texts and whole numbers; anything else is left out.
fn level_meta(cursor: &mut Cursor<'_>) -> Read<Map<String, Value>> {
    let mut meta = Map::new();
    cursor.fields(|name, cursor| {
        if meta.len() >= MOST_META {
            return Ok(Field::Unknown);
        }
        let value = match (cursor.is_text(), { *cursor }.integer::<i64>()) {
            (true, _) => Value::from(cursor.text()?),
            (_, Ok(number)) => {
                cursor.skip()?;
                Value::from(number)
            }
            _ => return Ok(Field::Unknown),
        };
        meta.insert(String::from_utf8_lossy(name).into_owned(), value);
        Ok(Field::Known)
    })?;
    Ok(meta)
}
