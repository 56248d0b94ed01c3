//! `trace replay` of a recording of storage calls: the same calls, in virtual time, on bookkeeping alone.

mod args;
mod plan;
mod text;

use std::time::Instant;

use serde::Serialize;
use serde_json::Value;
use wavetank_calls::{End, Manner, Recording, Tally, replay};
use wavetank_model::{Error, KeyTable, Nanos, Recorded, Result, StorageCall};
use wavetank_trace::calls::CallReader;
use wavetank_trace::calls::lct::{FRAME_LIMIT, Reader};
use wavetank_trace::{CallSurvey, Input};

pub use args::CallReplayArgs;
pub use plan::CallReplayPlan;

/// What came of making recorded calls again.
#[derive(Clone, Debug, Serialize)]
pub struct CallReplay {
    /// The version of the layout.
    pub schema_version: u32,
    /// The recording.
    pub recording: String,
    /// What the calls were made on.
    pub plan: CallReplayPlan,
    /// What became of them.
    pub tally: Tally,
    /// The first key with another outcome than recorded, by its name.
    pub first_divergence_key: Option<String>,
    /// Records that were not read, and why.
    pub left_out: Vec<String>,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// How long it took.
    pub wall: Wall,
}

/// How long it took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Wall {
    /// Reading the recording.
    pub read_s: f64,
    /// Making its calls.
    pub replay_s: f64,
}

const SCHEMA_VERSION: u32 = 1;

impl CallReplay {
    /// The report.
    pub fn json(&self) -> Value {
        serde_json::to_value(self).expect("plain data")
    }

    /// Whether every outcome that is known was met.
    pub fn is_faithful(&self) -> bool {
        let tally = &self.tally;
        tally.first_divergence.is_none() && tally.release_failed == 0 && tally.read_failed == 0
    }
}

/// Makes the calls of a recording again.
pub fn replay_calls(args: &CallReplayArgs) -> Result<CallReplay> {
    let start = Instant::now();
    let mut reader = Reader::open(&Input::named(&args.recording), FRAME_LIMIT)?;
    let level = &reader.header().level;
    if level != "storage" {
        return Err(Error::input(format!("its level is \"{level}\", and only calls can be made again"))
            .at(args.recording.clone())
            .hint("`wavetank trace info` says what is in it"));
    }
    let mut calls: Vec<Recorded> = Vec::new();
    while let Some(recorded) = reader.advance()? {
        calls.push(recorded);
    }
    // Threads take the time first and write later; the order of times is that of the calls.
    calls.sort_by_key(|recorded| recorded.at);
    let read_s = start.elapsed().as_secs_f64();
    let config: Value = serde_json::from_str(&reader.header().config_json).unwrap_or_default();
    let first = calls.first().map_or(Nanos::ZERO, |recorded| recorded.at);
    let plan = CallReplayPlan::of(args, &config, first)?;
    let keys = reader.keys();
    let layout_bytes = keys.layouts().iter().map(|layout| layout.bytes()).collect::<Result<Vec<_>>>()?;
    let start = Instant::now();
    let survey = reader.survey();
    let end = if survey.cut.is_some() { End::Cut } else { End::Whole };
    let recording = Recording { calls: &calls, keys: keys.len(), layout_bytes: &layout_bytes, end };
    let manner = Manner { plan: plan.storage.clone(), tempo: plan.tempo.clone(), mode: plan.mode };
    let tally = replay(&recording, &manner, None)?;
    let replay_s = start.elapsed().as_secs_f64();
    Ok(CallReplay {
        schema_version: SCHEMA_VERSION,
        recording: args.recording.clone(),
        first_divergence_key: tally.first_divergence.as_ref().map(|first| named(keys, first.key)),
        left_out: left_out(&survey),
        warnings: [warnings(args, &plan, &config), missing(&survey, &calls)].concat(),
        plan,
        tally,
        wall: Wall { read_s, replay_s },
    })
}

/// As the reference's adapters name it.
fn named(keys: &KeyTable, key: u32) -> String {
    let key = keys.key(wavetank_model::KeyId(key));
    let hash: String = key.chunk_hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}@{:08x}@{:x}@{hash}", key.family.model_name, key.family.kv_rank, key.family.object_group_id)
}

fn left_out(survey: &CallSurvey) -> Vec<String> {
    let reasons = survey.unknown.reasons.iter().chain(&survey.damaged.reasons);
    let mut lines: Vec<String> = reasons
        .map(|reason| format!("records that are not read ({}): {}", reason.reason, reason.count))
        .collect();
    lines.extend(
        survey.cut.as_ref().map(|cut| format!("the file ends within the frame at byte {}", cut.offset)),
    );
    if survey.lost > 0 {
        lines.push(format!("calls that the recorder lost: {}", survey.lost));
    }
    lines
}

fn warnings(args: &CallReplayArgs, plan: &CallReplayPlan, config: &Value) -> Vec<String> {
    let adapters = config["l2_adapter_config"]["adapters"].as_array().map_or(0, Vec::len);
    let missing = adapters > args.l2_adapter.len();
    let guessed = args.ticks.is_none() && plan.storage.l1.capacity_bytes.is_some();
    [
        missing.then(|| {
            format!(
                "the recording does not hold the sizes of the tiers behind memory: it had {adapters}, \
                 {} given (--l2-adapter)",
                args.l2_adapter.len()
            )
        }),
        guessed.then(|| {
            "the recording does not hold when eviction loops looked: a second apart is assumed (--ticks), \
             and what then differs grows"
                .to_owned()
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What a recording has that is not followed, and lacks.
fn missing(survey: &CallSurvey, calls: &[Recorded]) -> Vec<String> {
    let is_background = |recorded: &&Recorded| {
        matches!(recorded.call, StorageCall::EvictionPass { .. } | StorageCall::StoreCompleted { .. })
    };
    let background = calls.iter().filter(is_background).count();
    let holes = survey.damaged.count() + survey.unknown.count();
    [
        (holes > 0).then(|| {
            "records are missing, and with them what they implied: what follows them may look other than \
             recorded"
                .to_owned()
        }),
        (background > 0).then(|| {
            format!("background work is recorded and not followed, but simulated: {background} records")
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}
