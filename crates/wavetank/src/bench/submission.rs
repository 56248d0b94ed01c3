//! The runs that a submission to MLPerf Storage is made of, and what holds for all of them (product text,
//! "MLPerf v3.0 Submission Guidelines"; spec/kv-bench.md 17).

use serde_json::Value;
use wavetank_model::TierRole;
use wavetank_report::storage::{Difference, differences};

use super::args::{BenchArgs, GenerationMode};
use super::machine::Machine;
use super::plan::BenchPlan;
use super::trials::TrialCount;

/// Every submission has this seed; ranks add their number to it.
pub(crate) const SUBMISSION_SEED: u64 = 42;
/// What is measured of every trial, at least.
pub(crate) const SUBMISSION_SECONDS: u32 = 300;

/// One of the runs of a submission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Submission {
    /// Its name on the command line and its folder in a package.
    pub name: &'static str,
    /// What it is called where people read it.
    pub title: &'static str,
    /// One line of what it is for.
    pub about: &'static str,
    /// Whose KV it is.
    pub model: &'static str,
    /// Simulated users.
    pub users: u32,
    /// Main memory for KV, in GiB.
    pub cpu_mem_gb: u32,
    /// Entries written at a time; 0 is no limit.
    pub max_concurrent_allocs: u32,
}

/// Every run of a submission, in their order.
pub const SUBMISSIONS: [Submission; 3] = [
    Submission {
        name: "mlperf-stress-8b",
        title: "MLPerf stress, 8B",
        about: "submission option 1: every entry goes to the drive",
        model: "llama3.1-8b",
        users: 200,
        cpu_mem_gb: 0,
        max_concurrent_allocs: 16,
    },
    Submission {
        name: "mlperf-throughput-8b",
        title: "MLPerf throughput, 8B",
        about: "submission option 2: the drive behind 4 GiB of main memory",
        model: "llama3.1-8b",
        users: 100,
        cpu_mem_gb: 4,
        max_concurrent_allocs: 0,
    },
    Submission {
        name: "mlperf-stress-70b",
        title: "MLPerf stress, 70B",
        about: "submission option 3: every entry of a large model goes to the drive",
        model: "llama3.1-70b-instruct",
        users: 70,
        cpu_mem_gb: 0,
        max_concurrent_allocs: 4,
    },
];

impl Submission {
    /// The flags that run it, besides where and how often.
    pub fn args(&self) -> BenchArgs {
        BenchArgs {
            model: Some(self.model.to_owned()),
            num_users: Some(self.users),
            duration: Some(SUBMISSION_SECONDS.into()),
            seed: Some(SUBMISSION_SEED),
            gpu_mem_gb: Some(0.0),
            cpu_mem_gb: Some(self.cpu_mem_gb.into()),
            max_concurrent_allocs: Some(self.max_concurrent_allocs),
            generation_mode: Some(GenerationMode::None),
            trials: Some(TrialCount::Number(super::trials::FEWEST)),
            ..BenchArgs::default()
        }
    }

    /// The one that `plan` is: nothing but what is free differs.
    pub(super) fn of(plan: &BenchPlan) -> Option<&'static Self> {
        SUBMISSIONS.iter().find(|one| one.differences(plan).is_empty())
    }

    /// What of `plan` is not as it has to be, one by one: everything counts that is not free, so that a new
    /// flag cannot change the load unseen.
    pub(super) fn differences(&self, plan: &BenchPlan) -> Vec<String> {
        let args = BenchArgs { storage_capacity_gb: Some(1.0), ..self.args() };
        let own = BenchPlan::on(&Machine::any(), &args).expect("a submission can be planned");
        let same_model = own.model.name == plan.model.name;
        let follows = |field: &str| field.starts_with("model.") || FROM_MODEL.contains(&field);
        let told = |(field, must, is): Difference| {
            let is_told = same_model || field == "model.name" || !follows(&field);
            is_told.then(|| format!("`{field}` is {is}, not {must}"))
        };
        differences(&bound(&own), &bound(plan)).into_iter().filter_map(told).collect()
    }
}

/// What follows from a model; where the model is another one, that says enough.
const FROM_MODEL: [&str; 3] =
    ["run.bytes_per_token", "run.habits.documents.tokens_range.0", "run.habits.documents.tokens_range.1"];

/// What is free in a submission: where entries are, how the drive is driven and prepared, what is judged and
/// said. The seed, the duration and the trials have rules of their own.
const FREE: [&str; 9] = [
    "criteria",
    "profile",
    "rank",
    "storage_capacity_gb",
    "strict",
    "temporary_cache",
    "trials",
    "validation_trace",
    "warnings",
];
/// The same of the run.
const FREE_OF_RUN: [&str; 9] = [
    "duration",
    "io_depth",
    "io_threads",
    "keep_cache",
    "precondition_bytes",
    "precondition_depth",
    "seed",
    "verify",
    "warmup",
];
/// The same of the storage tier; its backend is free as long as it is a drive's.
const FREE_OF_STORAGE: [&str; 2] = ["capacity_bytes", "location"];
/// Backends on a drive.
pub(super) const DRIVES: [&str; 2] = ["direct", "buffered"];

/// What of a plan is bound.
fn bound(plan: &BenchPlan) -> Value {
    let mut plan = plan.clone();
    for tier in plan.run.tiers.iter_mut().filter(|tier| tier.role == TierRole::Storage) {
        if DRIVES.contains(&tier.backend.as_str()) {
            DRIVES[0].clone_into(&mut tier.backend);
        }
        tier.options.remove("durable");
    }
    let storage = plan.run.tiers.iter().position(|tier| tier.role == TierRole::Storage);
    let mut json = serde_json::to_value(plan).expect("plain data");
    let mut free = |place: String, fields: &[&str]| {
        let object = json.pointer_mut(&place).and_then(Value::as_object_mut);
        object.into_iter().for_each(|object| object.retain(|field, _| !fields.contains(&field.as_str())));
    };
    free(String::new(), &FREE);
    free("/run".to_owned(), &FREE_OF_RUN);
    if let Some(at) = storage {
        free(format!("/run/tiers/{at}"), &FREE_OF_STORAGE);
    }
    json
}

#[cfg(test)]
mod tests {
    use wavetank_bench::Load;
    use wavetank_cache::Promotion;

    use super::super::args::ReadPolicy;
    use super::*;
    use crate::bench::testing::without_gpu;

    fn planned(args: &BenchArgs) -> BenchPlan {
        BenchPlan::on(&without_gpu(), args).unwrap()
    }

    /// Broken by: a submission whose own plan is not accepted, or one that is accepted as another.
    #[test]
    fn each_submission_is_itself_and_no_other() {
        for one in &SUBMISSIONS {
            assert_eq!(Submission::of(&planned(&one.args())), Some(one));
            for other in SUBMISSIONS.iter().filter(|other| other.name != one.name) {
                let said = other.differences(&planned(&one.args()));
                assert!(!said.is_empty(), "{} is {}", one.name, other.name);
            }
            let more = BenchArgs { num_users: Some(one.users + 1), max_requests: Some(9), ..one.args() };
            let said = one.differences(&planned(&more));
            let users = format!("`run.users` is {}, not {}", one.users + 1, one.users);
            assert_eq!(said, ["`run.max_requests` is 9, not null".to_owned(), users]);
            assert_eq!(Submission::of(&planned(&more)), None);
        }
        let small = BenchArgs { model: Some("tiny-1b".to_owned()), ..SUBMISSIONS[0].args() };
        let said = SUBMISSIONS[0].differences(&planned(&small));
        assert_eq!(said, ["`model.name` is \"tiny-1b\", not \"llama3.1-8b\""], "what follows is not said");
    }

    /// Broken by: a field that is compared although a submitter may choose it.
    #[test]
    fn what_is_free_may_be_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let chosen = BenchArgs {
            cache_dir: Some(folder.path().to_owned()),
            storage_capacity_gb: Some(3.0),
            backend: Some("buffered".to_owned()),
            durable: true,
            verify: true,
            keep_cache: true,
            io_threads: Some(3),
            io_depth: Some(7),
            warmup: Some(1.0),
            duration: Some(400.0),
            precondition: true,
            precondition_size_gb: Some(1.0),
            precondition_threads: Some(2),
            performance_profile: Some(wavetank_report::storage::Profile::Throughput),
            pass_hit_rate: Some(0.1),
            trials: Some(TrialCount::Number(5)),
            cooldown: Some(3.0),
            strict: true,
            ..SUBMISSIONS[1].args()
        };
        assert_eq!(SUBMISSIONS[1].differences(&planned(&chosen)), Vec::<String>::new());
    }

    /// Broken by: comparing only some fields of a plan, so that an easier load passes for a submission.
    #[test]
    fn every_change_of_the_load_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("c.yaml");
        std::fs::write(&config, "user_templates:\n  chatbot: {context_range: [51, 410]}\n").unwrap();
        let one = &SUBMISSIONS[1];
        let own = || one.args();
        for (field, changed) in [
            ("run.habits.mix.", BenchArgs { persona_mix: Some("chatbot=1".to_owned()), ..own() }),
            ("run.reads", BenchArgs { read_policy: Some(ReadPolicy::Once), ..own() }),
            ("run.feed.users", BenchArgs { load: Some(Load::Closed), ..own() }),
            ("run.role", BenchArgs { prefill_only: true, ..own() }),
            ("run.role", BenchArgs { decode_only: true, ..own() }),
            ("run.habits.multi_turn", BenchArgs { disable_multi_turn: true, ..own() }),
            ("run.habits.prompt_probability", BenchArgs { disable_prefix_caching: true, ..own() }),
            ("run.queue_limit", BenchArgs { queue_limit: Some(5), ..own() }),
            ("run.ageing", BenchArgs { aging: Some(1.0), ..own() }),
            ("run.habits.templates.0.", BenchArgs { config: Some(config), ..own() }),
            ("run.rules.promotion", BenchArgs { promotion: Some(Promotion::OnHit), ..own() }),
            ("run.tiers.0.eviction", BenchArgs { eviction: Some("fifo".to_owned()), ..own() }),
            ("run.tiers.0.options", BenchArgs { cpu_mem_backed: true, ..own() }),
            ("latency_tracing", BenchArgs { enable_latency_tracing: true, ..own() }),
            ("run.tiers.1.backend", BenchArgs { backend: Some("null".to_owned()), ..own() }),
            ("cpu_mem_gb", BenchArgs { cpu_mem_gb: Some(5.0), ..own() }),
            ("run.habits.documents.count", BenchArgs { enable_rag: true, ..own() }),
            ("run.scaling", BenchArgs { enable_autoscaling: true, ..own() }),
            ("generation_mode", BenchArgs { generation_mode: Some(GenerationMode::Fast), ..own() }),
            ("run.max_concurrent_allocs", BenchArgs { max_concurrent_allocs: Some(3), ..own() }),
        ] {
            let said = one.differences(&planned(&changed));
            let is_named = said.iter().any(|line| line.starts_with(&format!("`{field}")));
            assert!(is_named, "{field}: {said:?}");
        }
    }
}
