//! `trace replay` of a recording of storage calls: the same calls, in virtual time, on bookkeeping alone.

mod against;
mod args;
mod bytes;
mod config;
mod load;
mod operation;
mod outputs;
mod plan;
mod text;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::Serialize;
use serde_json::{Map, Value, json};
use wavetank_calls::{Manner, Mode, PlayReport, Tally};
use wavetank_model::{Error, KeyTable, Nanos, Result};
use wavetank_trace::CallSurvey;

use self::load::Loaded;
use crate::bench::RecordedCalls;

pub use against::CallAgainst;
pub use args::{BackgroundWork, CallPace, CallReplayArgs, CallVariant, Payload, StorageArgs};
pub use config::{ConfigCheck, ConfigDifference};
pub use operation::CallOperation;
pub use outputs::CallOutputs;
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
    /// How that stands to what the recording says of itself.
    pub config: ConfigCheck,
    /// Calls that were made and counted.
    pub replayed: u64,
    /// Records that could not be read.
    pub skipped: u64,
    /// Calls that failed.
    pub failed: u64,
    /// From the first call counted to the last, on the clock of the replay.
    pub duration_s: f64,
    /// Where latencies are from.
    pub latencies: &'static str,
    /// How fast calls were made.
    pub pace: CallPace,
    /// Calls by operation.
    pub operations: Vec<CallOperation>,
    /// What became of them.
    pub tally: Tally,
    /// What moving their bytes took; nothing in virtual time.
    pub measured: Option<PlayReport>,
    /// The first key with another outcome than recorded, by its name.
    pub first_divergence_key: Option<String>,
    /// Records that were not read, and why.
    pub left_out: Vec<String>,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// The same calls on other storage.
    pub against: Vec<CallAgainst>,
    /// What the recording of the replay came to, where there is one.
    pub recorded: Option<RecordedCalls>,
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
/// An eviction loop looks a second after the first call, unless more is known.
const SECOND: Nanos = Nanos(1_000_000_000);
/// A pace is kept if half of the calls are begun within so long of it.
const LATE: Nanos = Nanos(10_000_000);
const SIMULATED: &str = "simulated: a prefetch takes as long as the slowest tier behind needs for what it \
                         loads, or as recorded where its end is; other calls take no time";

const MEASURED: &str = "measured, from when a call was due, or at full pace from when it was begun: a \
                        prefetch until what it loads is there, a reservation until its objects are filled, \
                        the beginning of a read until they are copied out";

impl CallReplay {
    /// Whether it was ended before the recording was.
    pub fn is_interrupted(&self) -> bool {
        self.tally.interrupted || self.against.iter().any(|against| !against.is_whole())
    }

    /// Objects that a device failed to bring, or brought with other bytes than were written.
    pub fn broken(&self) -> u64 {
        let calls = self.reports().flat_map(|report| &report.calls).map(|calls| calls.errors);
        calls.sum::<u64>() + self.reports().map(|report| report.wrong).sum::<u64>()
    }

    /// Objects that a device failed to store.
    pub fn unstored(&self) -> u64 {
        let tiers = self.reports().flat_map(|report| &report.adapters);
        tiers.map(|tier| tier.stored.errors).sum()
    }

    fn reports(&self) -> impl Iterator<Item = &PlayReport> {
        self.measured.iter().chain(self.against.iter().filter_map(|against| against.measured.as_ref()))
    }

    /// The report, which says like every other whether it is partial.
    pub fn json(&self) -> Value {
        let mut report = serde_json::to_value(self).expect("plain data");
        report["partial"] = json!(self.is_interrupted());
        report
    }

    /// Whether every outcome that is known was met.
    pub fn is_faithful(&self) -> bool {
        self.tally.is_faithful()
    }

    /// Whether any outcome was known to be compared with.
    pub fn is_compared(&self) -> bool {
        self.tally.compared() > 0
    }

    /// Whether every record could be read.
    pub fn is_whole(&self) -> bool {
        self.left_out.is_empty()
    }

    /// Operations as the reference's `trace_replay_ops.csv`.
    pub fn operations_csv(&self) -> String {
        operation::csv(&self.operations)
    }

    /// The reference's `trace_replay_summary.json`, with what became of the calls beside it.
    pub fn summary_json(&self) -> Value {
        let mut all = Map::new();
        for operation in &self.operations {
            let mut fields = serde_json::to_value(operation).expect("plain data");
            fields.as_object_mut().and_then(|fields| fields.remove("qualname"));
            all.insert(operation.qualname.to_owned(), fields);
        }
        json!({
            "duration_s": self.duration_s,
            "ops": all,
            "replayed": self.replayed,
            "skipped": self.skipped,
            "failed": self.failed,
            "config_matches": self.config.matches,
            "tally": self.tally,
        })
    }
}

impl CallReplayPlan {
    /// How the calls are made.
    fn manner(&self) -> Manner {
        let Self { storage, tempo, mode, scope, .. } = self;
        Manner { plan: storage.clone(), tempo: tempo.clone(), mode: *mode, scope: *scope }
    }
}

/// Makes the calls of a recording again.
pub fn replay_calls(args: &CallReplayArgs, outputs: CallOutputs<'_>) -> Result<CallReplay> {
    let options = bytes::options(args)?.map(|options| outputs.shape(options));
    let loaded = Loaded::read(&args.recording)?;
    outputs.loaded.store(true, Ordering::Relaxed);
    let plan = CallReplayPlan::of(args, &loaded.config, &loaded.known)?;
    plan::check_effects(&args.storage, &plan)?;
    if outputs.recording.is_some() && plan.mode == Mode::Pinned {
        return Err(Error::usage("what --mode pinned puts right is nothing that a recording can hold")
            .at("--trace-output")
            .hint("--mode open and closed can be recorded"));
    }
    let start = Instant::now();
    let stop = Arc::clone(&outputs.stop);
    let ((tally, measured), recorded) = outputs::play(&loaded, &plan, options.as_ref(), outputs)?;
    let replay_s = start.elapsed().as_secs_f64();
    let against = against::all(args, &loaded, (options.as_ref(), &stop))?;
    let operations = operation::operations(&tally, measured.as_ref());
    let survey = &loaded.survey;
    let lost = recorded.as_ref().and_then(outputs::lost).into_iter().collect();
    let warnings = [warnings(&plan, &loaded), remarks(args, &plan, measured.as_ref()), lost].concat();
    Ok(CallReplay {
        schema_version: SCHEMA_VERSION,
        recording: args.recording.clone(),
        config: ConfigCheck::of(&loaded.header().config_json, &plan.storage.config(&plan.l2_adapters)),
        replayed: tally.calls,
        skipped: survey.unknown.count() + survey.damaged.count(),
        failed: operations.iter().map(|operation| operation.errors).sum(),
        duration_s: tally.ended.since(tally.began).as_seconds(),
        pace: args.pace.unwrap_or_default(),
        latencies: if measured.is_some() { MEASURED } else { SIMULATED },
        operations,
        measured,
        first_divergence_key: tally.first_divergence.as_ref().map(|first| named(loaded.keys(), first.key)),
        left_out: left_out(survey),
        warnings,
        against,
        recorded,
        plan,
        tally,
        wall: Wall { read_s: loaded.read_s, replay_s },
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
    lines.extend(
        survey.missing_part.as_ref().map(|why| format!("parts that the recording goes on in: {why}")),
    );
    if survey.lost > 0 {
        lines.push(format!("calls that the recorder lost: {}", survey.lost));
    }
    lines
}

/// Whether a pace was not kept, and whether a comparison is what it seems.
fn remarks(args: &CallReplayArgs, plan: &CallReplayPlan, measured: Option<&PlayReport>) -> Vec<String> {
    let is_late = |report: &&PlayReport| Nanos(report.late.p50_ns) > LATE;
    let open = plan.mode == Mode::Open && !args.against.is_empty();
    let late = measured.filter(is_late).map(|report| {
        format!(
            "the pace was not kept: half of the calls were begun {:.1} ms late or more; more --threads, a \
             slower --pace or --pace max",
            Nanos(report.late.p50_ns).as_ms()
        )
    });
    let alike = open.then(|| {
        "the same calls are made on every storage, so what one does not find is not stored again as a caller \
         would (--mode closed lets it)"
            .to_owned()
    });
    late.into_iter().chain(alike).collect()
}

/// What a recording lacks, and what of it is not followed.
fn warnings(plan: &CallReplayPlan, loaded: &Loaded) -> Vec<String> {
    let Loaded { config, known, survey, .. } = loaded;
    let adapters = config["l2_adapter_config"]["adapters"].as_array();
    let recorded = adapters.map_or(0, Vec::len);
    let unknown = adapters.is_some_and(|adapters| adapters.iter().any(|adapter| !adapter.is_object()));
    let given = plan.l2_adapters.len();
    let is_simulated = plan.background == BackgroundWork::Simulated;
    let is_limited = plan.storage.l1.capacity_bytes.is_some();
    let guessed = matches!(&plan.tempo, wavetank_calls::Tempo::Clock(ticks)
        if is_limited && matches!(ticks[0], wavetank_calls::Ticks::Sleeping { .. }));
    let holes = survey.damaged.count() + survey.unknown.count();
    [
        (unknown && recorded > given).then(|| {
            format!(
                "the recording does not hold the sizes of the tiers behind memory: it had {recorded}, \
                 {given} given (--l2-adapter)"
            )
        }),
        (guessed && known.last.since(known.first) >= SECOND).then(|| {
            "the recording does not hold when eviction loops looked: a second apart is assumed (--ticks), \
             and what then differs grows"
                .to_owned()
        }),
        (holes > 0).then(|| {
            "records are missing, and with them what they implied: what follows them may look other than \
             recorded"
                .to_owned()
        }),
        plan::is_of_bench(config).then(|| {
            "it is of a benchmark, whose store has rules of its own: all its tiers are taken as memory, and \
             where an object was found does not count"
                .to_owned()
        }),
        (is_simulated && known.removed > 0).then(|| {
            let removed = known.removed;
            format!(
                "the recording says {removed} times that objects left by themselves: this is not followed"
            )
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}
