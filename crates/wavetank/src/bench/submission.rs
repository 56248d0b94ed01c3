//! The runs that a submission to MLPerf Storage is made of, and what holds for all of them (product text,
//! "MLPerf v3.0 Submission Guidelines"; spec/kv-bench.md 17).

use wavetank_bench::Feed;
use wavetank_model::TierRole;

use super::args::{BenchArgs, GenerationMode};
use super::plan::BenchPlan;
use super::trials::TrialCount;

/// Every submission has this seed; ranks add their number to it.
pub const SUBMISSION_SEED: u64 = 42;
/// What is measured of every trial, at least.
pub const SUBMISSION_SECONDS: u32 = 300;

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

    /// The one that `plan` is meant to be: that with the fewest differences, if its load is the same.
    pub(super) fn of(plan: &BenchPlan) -> Option<&'static Self> {
        SUBMISSIONS.iter().find(|one| one.differences(plan).is_empty())
    }

    /// What of `plan` is not as it has to be, one by one.
    pub(super) fn differences(&self, plan: &BenchPlan) -> Vec<String> {
        let run = &plan.run;
        let has_gpu = run.tiers.iter().any(|tier| tier.role == TierRole::Gpu);
        let allocs = run.max_concurrent_allocs.unwrap_or(0);
        let mut found = Vec::new();
        let mut must = |is: bool, what: String| {
            if !is {
                found.push(what);
            }
        };
        must(plan.model.name == self.model, format!("the model is {}, not {}", plan.model.name, self.model));
        must(plan.model.tensor_parallel == 1, "entries are split over GPUs".to_owned());
        must(run.users == self.users, format!("{} users, not {}", run.users, self.users));
        must(!has_gpu, "there is a GPU tier".to_owned());
        let (cpu, asked) = (plan.cpu_mem_gb, f64::from(self.cpu_mem_gb));
        must(cpu == asked, format!("{cpu} GiB of main memory, not {asked}"));
        let asked = self.max_concurrent_allocs;
        must(allocs == asked, format!("{allocs} entries written at a time, not {asked}"));
        let mode = plan.generation_mode;
        must(mode == GenerationMode::None, format!("generation takes time: {mode:?}").to_lowercase());
        must(matches!(run.feed, Feed::Users(_)), "the load is a recording".to_owned());
        must(run.max_requests.is_none(), "it ends after a number of requests".to_owned());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::testing::without_gpu;

    /// Broken by: a submission whose own plan is not accepted, or one that is accepted as another.
    #[test]
    fn each_submission_is_itself_and_no_other() {
        for one in &SUBMISSIONS {
            let plan = BenchPlan::on(&without_gpu(), &one.args()).unwrap();
            assert_eq!(Submission::of(&plan), Some(one));
            for other in SUBMISSIONS.iter().filter(|other| other.name != one.name) {
                assert!(!other.differences(&plan).is_empty(), "{} is {}", one.name, other.name);
            }
            let more = BenchArgs { num_users: Some(one.users + 1), max_requests: Some(9), ..one.args() };
            let plan = BenchPlan::on(&without_gpu(), &more).unwrap();
            let said = one.differences(&plan);
            assert_eq!(said.len(), 2, "{said:?}");
            assert_eq!(Submission::of(&plan), None);
        }
    }
}
