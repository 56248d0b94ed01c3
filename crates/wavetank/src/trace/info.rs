//! `trace info`: what a recording holds, what it implies, and what of it could not be read.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use wavetank_model::{Fate, Recorded, Result, StorageCall};
use wavetank_trace::calls::CallReader;
use wavetank_trace::calls::lct::{self, FRAME_LIMIT, Reader};
use wavetank_trace::{CallSurvey, Input, Skipped};

use super::implied::Implied;
use super::keys::{Contents, KeyCounts, LayoutInfo, PrefetchCounts};

/// What is in a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// The file.
    pub file: String,
    /// A row of the storage-call formats.
    pub format: &'static str,
    /// `storage` or `events`.
    pub level: String,
    /// The version of the frames.
    pub format_version: u64,
    /// The version of the arguments, as the file claims it.
    pub trace_schema_version: u64,
    /// Which releases write arguments like these.
    pub generation: String,
    /// Which of a recording's files it is, from 1.
    pub part: u32,
    /// When the recording began, in seconds since 1970.
    pub wall_start_s: f64,
    /// The latest time of a record, in seconds from then.
    pub duration_s: f64,
    /// Records that could be read, known or not.
    pub total_records: u64,
    /// The same by operation.
    pub operations: BTreeMap<String, u64>,
    /// Its keys.
    pub keys: KeyCounts,
    /// Layouts of its objects.
    pub layouts: Vec<LayoutInfo>,
    /// Its prefetches.
    pub prefetches: PrefetchCounts,
    /// Outcomes it does not hold but implies; absent where it holds those of all its calls.
    pub implied: Option<Implied>,
    /// Outcomes it holds: keys by what became of them.
    pub recorded: BTreeMap<&'static str, u64>,
    /// Its configuration.
    pub config: ConfigInfo,
    /// More about its recorder.
    pub level_meta: Map<String, Value>,
    /// What was not read.
    pub left_out: LeftOut,
    /// What it says of itself.
    pub notes: Vec<String>,
}

/// The storage configuration of a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigInfo {
    /// The digest in the file.
    pub digest: String,
    /// Whether it is that of the configuration in the file; absent if there is none.
    pub digest_is_right: Option<bool>,
    /// Ours, which is the same in every run of one configuration.
    pub canonical_digest: Option<String>,
    /// The configuration without what differs in every run.
    pub canonical: Option<Value>,
}

/// What of a recording was not read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LeftOut {
    /// Records of something not known.
    pub unknown: Vec<Reason>,
    /// Frames that are no records, and records that cannot be used.
    pub damaged: Vec<Reason>,
    /// The file ends within the frame at this byte.
    pub cut_at: Option<u64>,
    /// Bytes of that frame.
    pub cut_bytes: u64,
    /// Reading ended here, before the file did: nothing tells where the next record begins.
    pub stopped_at: Option<u64>,
    /// Why.
    pub stopped_because: Option<String>,
    /// Calls that the recorder lost, as it says itself.
    pub lost_calls: u64,
}

/// Things left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Why.
    pub reason: String,
    /// How many.
    pub count: u64,
    /// The byte where the first one begins.
    pub first_offset: u64,
}

/// Looks into the recording `file`; `-` is standard input. It is read up to a frame above
/// `frame_limit_bytes`, and what follows cannot be found.
pub fn trace_info(file: &str, frame_limit_bytes: Option<usize>) -> Result<TraceInfo> {
    let input = Input::named(file);
    let mut reader = Reader::open(&input, frame_limit_bytes.unwrap_or(FRAME_LIMIT))?;
    let mut contents = Contents::default();
    let mut implied = Implied::default();
    let mut fates = [0; Fate::ALL.len()];
    let mut unrecorded = 0u64;
    loop {
        let recorded = match reader.advance() {
            Ok(Some(recorded)) => recorded,
            Ok(None) => break,
            // What was read before is worth telling; the rest is said to be missing.
            Err(_) if reader.survey().stopped.is_some() => break,
            Err(error) => return Err(error),
        };
        contents.see(&recorded);
        implied.see(&recorded);
        count(&recorded, &mut fates);
        unrecorded += u64::from(lacks_outcome(&recorded));
    }
    let survey = reader.survey();
    let header = reader.header();
    let layouts = contents.layouts(reader.keys());
    Ok(TraceInfo {
        file: input.name(),
        format: "lct",
        level: header.level.clone(),
        format_version: 1,
        trace_schema_version: header.schema,
        generation: reader.generations().to_string(),
        part: header.part,
        wall_start_s: header.wall_start_s,
        duration_s: survey.last_s,
        total_records: survey.records(),
        operations: survey.operations.clone(),
        keys: contents.keys(reader.keys(), &layouts),
        layouts,
        prefetches: contents.prefetch,
        implied: (unrecorded > 0 || fates == [0; Fate::ALL.len()]).then_some(implied),
        recorded: FATES.into_iter().zip(fates).filter(|(_, keys)| *keys > 0).collect(),
        config: ConfigInfo::of(&header.config_json, &header.config_digest),
        level_meta: header.level_meta.clone(),
        left_out: LeftOut::of(&survey),
        notes: survey.notes,
    })
}

impl TraceInfo {
    /// Whether the file was read to its end. If not, what follows is not counted anywhere.
    pub fn is_whole(&self) -> bool {
        self.left_out.stopped_at.is_none()
    }

    /// Everything as JSON.
    pub fn json(&self) -> Value {
        serde_json::to_value(self).expect("plain fields become JSON")
    }
}

/// By [`Fate`].
pub(super) const FATES: [&str; Fate::ALL.len()] = [
    "done",
    "absent",
    "resident",
    "staged",
    "no_memory",
    "unlocked",
    "expired",
    "hit_first_tier",
    "hit_lower_tier",
    "failed",
];

/// Whether what became of the keys of a call is left to be implied.
fn lacks_outcome(recorded: &Recorded) -> bool {
    let decides = matches!(recorded.call, StorageCall::SubmitPrefetch(_) | StorageCall::ReserveWrite { .. });
    decides && recorded.outcome.is_none()
}

fn count(recorded: &Recorded, fates: &mut [u64; Fate::ALL.len()]) {
    for fate in recorded.outcome.iter().flatten() {
        fates[*fate as usize] += 1;
    }
}

impl ConfigInfo {
    fn of(json: &str, digest: &str) -> Self {
        let canonical = lct::canonical(json);
        Self {
            digest: digest.to_owned(),
            digest_is_right: (!json.is_empty()).then(|| lct::plain_digest(json) == digest),
            canonical_digest: canonical.as_ref().map(lct::canonical_digest),
            canonical,
        }
    }
}

impl LeftOut {
    fn of(survey: &CallSurvey) -> Self {
        let reasons = |skipped: &Skipped| {
            let reason = |found: &wavetank_trace::Reason| Reason {
                reason: found.reason.clone(),
                count: found.count,
                first_offset: found.first_offset,
            };
            skipped.reasons.iter().map(reason).collect()
        };
        Self {
            unknown: reasons(&survey.unknown),
            damaged: reasons(&survey.damaged),
            cut_at: survey.cut.map(|cut| cut.offset),
            cut_bytes: survey.cut.map_or(0, |cut| cut.bytes),
            stopped_at: survey.stopped.as_ref().map(|stop| stop.offset),
            stopped_because: survey.stopped.as_ref().map(|stop| stop.reason.clone()),
            lost_calls: survey.lost,
        }
    }
}
