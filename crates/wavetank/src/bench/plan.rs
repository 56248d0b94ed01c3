//! Everything a storage benchmark depends on.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavetank_model::{Error, Result};
use wavetank_report::storage::{Criteria, Profile};
use wavetank_store::backend::Location;
use wavetank_store::backends;

use super::args::{BenchArgs, GenerationMode, Tokenizer};
use super::check;
use super::draft::Draft;
use super::findings::Findings;
use super::machine::Machine;
use super::model::ModelPlan;
use super::rank::Rank;
use super::simulated::Media;
use super::trials::TrialsPlan;

/// A storage benchmark with what its report needs to know. It is part of every report and can be run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchPlan {
    /// The version that made it.
    pub wavetank_version: String,
    /// Whose KV it is.
    pub model: ModelPlan,
    /// What is done.
    pub run: wavetank_bench::Plan,
    /// What is recorded; absent with simulated users.
    pub dataset: Option<DatasetPlan>,
    /// What it has to be good at.
    pub profile: Profile,
    /// What is good enough.
    pub criteria: Criteria,
    /// How often it is run.
    pub trials: TrialsPlan,
    /// Whether a failed assessment is a failure of the command.
    pub strict: bool,
    /// Whether the cache directory is made for the run and removed after it. The storage tier's location is
    /// empty then.
    pub temporary_cache: bool,
    /// Which of many processes does it; absent where it is alone. `run` is what all of them share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// GPUs there are.
    pub num_gpus: u32,
    /// Memory of one GPU as asked for, in GiB.
    pub gpu_mem_gb: f64,
    /// Main memory for KV, in GiB.
    pub cpu_mem_gb: f64,
    /// Storage for KV as asked for, in GiB; 0 is what there is.
    pub storage_capacity_gb: f64,
    /// How generating takes time.
    pub generation_mode: GenerationMode,
    /// Whether bpftrace looks at the block layer meanwhile.
    #[serde(default)]
    pub latency_tracing: bool,
    /// What stands for the device of each tier; none where devices are real.
    #[serde(default, skip_serializing_if = "Media::is_empty")]
    pub media: Media,
    /// A run whose hit rate is compared; absent without one.
    pub validation_trace: Option<PathBuf>,
    /// What was typed and has no effect, and what is not as it was asked for.
    pub warnings: Vec<String>,
}

/// A recording to play.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetPlan {
    /// Its files, in this order.
    pub files: Vec<String>,
    /// A row of the request trace formats.
    pub format: String,
    /// How tokens of texts are counted.
    pub tokenizer: Tokenizer,
    /// Where characters are counted, how many make a token.
    pub chars_per_token: f64,
    /// Where blocks are named by ids, how many tokens an id stands for.
    pub tokens_per_id: Option<u32>,
    /// Only so many conversations are played; all of them when absent.
    pub max_conversations: Option<u64>,
    /// Longer prompts are cut; not at all when absent.
    pub context_tokens_max: Option<u32>,
    /// Longer answers are cut; not at all when absent.
    pub generate_tokens_max: Option<u32>,
}

/// What precedes everything that is wrong.
const HEADING: &str = "the benchmark cannot be run as asked";

impl BenchPlan {
    /// Interprets the flags. The error has everything that is wrong with them, a line each.
    pub fn of(args: &BenchArgs) -> Result<Self> {
        Self::on(&Machine::here(), args)
    }

    /// The same on any machine.
    pub(super) fn on(machine: &Machine, args: &BenchArgs) -> Result<Self> {
        let (plan, findings) = Self::try_on(machine, args);
        findings.into_result(HEADING)?;
        Ok(plan.expect("a plan without findings is complete"))
    }

    /// The same with what is wrong apart, for who makes several; a plan is only good without findings.
    pub(super) fn try_on(machine: &Machine, args: &BenchArgs) -> (Option<Self>, Findings) {
        let mut draft = Draft::new(machine, args);
        let plan = draft.plan();
        let mut findings = draft.findings;
        if let Some(plan) = plan.as_ref().filter(|_| findings.is_empty()) {
            check::plan(plan, &mut findings);
        }
        (plan, findings)
    }

    /// Whether entries have bytes: not where operations are only logged.
    pub(super) fn moves_bytes(&self) -> bool {
        self.run.tiers.iter().any(|tier| tier.options.get("moves").is_none_or(|moves| moves != "no"))
    }

    /// The directory that entries are stored in, which may not be there any more: the folder for temporary
    /// files where one is made for the run, and none where storage is something else.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        if self.temporary_cache {
            return Some(std::env::temp_dir());
        }
        let storage = self.run.storage()?;
        let entry = backends::backend(&storage.backend).ok()?;
        let is_placed = entry.caps.location == Location::Directory && !storage.location.is_empty();
        is_placed.then(|| PathBuf::from(&storage.location))
    }

    /// Reads a plan, or the plan inside a report.
    pub fn read(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::io(path, error).hint("--plan takes a report or a plan"))?;
        let invalid = |error: serde_json::Error| {
            Error::input(format!("not a plan of a storage benchmark: {error}"))
                .at(place.clone())
                .hint("name a report written by this version, or the value of its \"plan\" key")
        };
        let mut json: Value = serde_json::from_str(&text).map_err(invalid)?;
        let plan = json.get_mut("plan").map(Value::take).unwrap_or(json);
        let plan: Self = serde_json::from_value(plan).map_err(invalid)?;
        let mut findings = Findings::default();
        check::plan(&plan, &mut findings);
        findings.into_result("the plan cannot be run").map_err(|error| error.at(place))?;
        Ok(plan)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
