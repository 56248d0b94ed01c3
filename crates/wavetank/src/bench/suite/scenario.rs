//! The scenarios of the suite, one row each: who asks, which tiers there are, how long it takes
//! (spec/kv-bench.md 17).

use wavetank_bench::ScaleMode;
use wavetank_model::{Error, Result, described};

use crate::bench::args::GenerationMode;
use crate::bench::submission::{SUBMISSION_SECONDS, SUBMISSIONS, Submission};

/// A row of the table.
pub struct Scenario {
    /// The name users type.
    pub name: &'static str,
    /// What it is called in a table.
    pub title: &'static str,
    /// One line of what it is for.
    pub about: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Why it is run.
    pub kind: Kind,
    pub(super) model: Model,
    pub(super) users: Users,
    pub(super) gpu: GpuShare,
    pub(super) cpu: CpuShare,
    pub(super) mode: GenerationMode,
    pub(super) span: Span,
    pub(super) scaling: Option<ScaleMode>,
    /// Entries written at a time; 0 is no limit.
    pub(super) max_concurrent_allocs: Option<u32>,
}

/// Why a scenario is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To compare tiers and loads on this machine.
    Comparison,
    /// As an option of the MLPerf Storage submission: fixed load, several trials, no documents.
    Submission,
}

/// Whose KV it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// The suite's.
    Typed,
    /// Always this one.
    Named(&'static str),
}

/// How many users ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    Baseline,
    High,
    Exactly(u32),
}

/// What a GPU does in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GpuShare {
    /// It makes no sense without one.
    Needed,
    /// Takes part where there is one.
    IfThere,
    None,
}

/// Main memory for entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CpuShare {
    /// Half of the machine's.
    Half,
    /// An eighth of it, at least 1 GiB.
    Eighth,
    /// So many GiB.
    Exactly(u32),
}

/// How long it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    Tier,
    Saturation,
    Realistic,
    Autoscale,
    /// So many seconds, whatever was typed.
    Exactly(u32),
}

described!(Scenario);

/// What most scenarios are.
const USUAL: Scenario = Scenario {
    name: "",
    title: "",
    about: "",
    aliases: &[],
    kind: Kind::Comparison,
    model: Model::Typed,
    users: Users::Baseline,
    gpu: GpuShare::None,
    cpu: CpuShare::Exactly(4),
    mode: GenerationMode::Realistic,
    span: Span::Tier,
    scaling: None,
    max_concurrent_allocs: None,
};
/// A run of a submission.
const fn submitted(at: usize) -> Scenario {
    let Submission { name, title, about, model, users, cpu_mem_gb, max_concurrent_allocs } = SUBMISSIONS[at];
    Scenario {
        name,
        title,
        about,
        kind: Kind::Submission,
        model: Model::Named(model),
        users: Users::Exactly(users),
        cpu: CpuShare::Exactly(cpu_mem_gb),
        mode: GenerationMode::None,
        span: Span::Exactly(SUBMISSION_SECONDS),
        max_concurrent_allocs: Some(max_concurrent_allocs),
        ..USUAL
    }
}

const LARGE: Model = Model::Named("llama3.1-70b-instruct");

/// Every scenario, in the order they run.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "gpu-only",
        title: "GPU only",
        about: "the best case: entries stay in GPU memory as far as they fit",
        aliases: &["gpu"],
        gpu: GpuShare::Needed,
        ..USUAL
    },
    Scenario {
        name: "cpu-only",
        title: "CPU only",
        about: "half of main memory holds entries",
        aliases: &["cpu"],
        cpu: CpuShare::Half,
        ..USUAL
    },
    Scenario {
        name: "storage-only",
        title: "Storage only",
        about: "the drive behind 4 GiB of main memory",
        aliases: &["storage"],
        ..USUAL
    },
    Scenario {
        name: "gpu-cpu",
        title: "GPU + CPU",
        about: "GPU memory and half of main memory",
        aliases: &["gpu+cpu"],
        gpu: GpuShare::Needed,
        cpu: CpuShare::Half,
        ..USUAL
    },
    Scenario {
        name: "cpu-storage",
        title: "CPU + storage",
        about: "many users on an eighth of main memory and the drive",
        aliases: &["cpu+storage"],
        users: Users::High,
        cpu: CpuShare::Eighth,
        ..USUAL
    },
    Scenario {
        name: "gpu-cpu-storage",
        title: "GPU + CPU + storage",
        about: "many users on three tiers",
        aliases: &["gpu+cpu+storage", "three-tier"],
        users: Users::High,
        gpu: GpuShare::Needed,
        cpu: CpuShare::Eighth,
        ..USUAL
    },
    Scenario {
        name: "storage-saturation",
        title: "Storage saturation",
        about: "many users on the drive behind 4 GiB of main memory",
        aliases: &["saturation"],
        users: Users::High,
        span: Span::Saturation,
        ..USUAL
    },
    Scenario {
        name: "production",
        title: "Production",
        about: "a normal day on everything there is",
        aliases: &["realistic"],
        gpu: GpuShare::IfThere,
        cpu: CpuShare::Half,
        span: Span::Realistic,
        ..USUAL
    },
    Scenario {
        name: "autoscale",
        title: "Autoscaling (QoS)",
        about: "adds users as long as latency keeps its target",
        aliases: &["autoscaling", "qos-autoscale"],
        users: Users::Exactly(20),
        gpu: GpuShare::IfThere,
        cpu: CpuShare::Eighth,
        span: Span::Autoscale,
        scaling: Some(ScaleMode::Qos),
        ..USUAL
    },
    Scenario {
        name: "capacity-autoscale",
        title: "Autoscaling (capacity)",
        about: "adds users of a large model until no more tokens come of it",
        aliases: &["capacity"],
        model: LARGE,
        users: Users::Exactly(10),
        mode: GenerationMode::None,
        span: Span::Autoscale,
        scaling: Some(ScaleMode::Capacity),
        ..USUAL
    },
    submitted(0),
    submitted(1),
    submitted(2),
];

/// A name for several scenarios, and which they are.
type Group = (&'static str, fn(&Scenario) -> bool);

const GROUPS: &[Group] = &[
    ("all", |_| true),
    ("comparison", |scenario| scenario.kind == Kind::Comparison),
    ("mlperf", |scenario| scenario.kind == Kind::Submission),
    ("mlperf-submission", |scenario| scenario.kind == Kind::Submission),
];

/// The numbers (from 0) of the scenarios that a list of names stands for, in the order they run; every name
/// that is not known is an error of its own.
pub(super) fn select(list: &str) -> (Vec<usize>, Vec<Error>) {
    let mut taken = [false; ALL.len()];
    let mut errors = Vec::new();
    for word in list.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty()) {
        match named(word) {
            Ok(numbers) => numbers.into_iter().for_each(|at| taken[at] = true),
            Err(error) => errors.push(error),
        }
    }
    let numbers: Vec<usize> = (0..ALL.len()).filter(|at| taken[*at]).collect();
    if numbers.is_empty() && errors.is_empty() {
        errors.push(unknown(list));
    }
    (numbers, errors)
}

fn named(word: &str) -> Result<Vec<usize>> {
    let plain = word.to_lowercase().replace('_', "-");
    let group = GROUPS.iter().find(|(name, _)| *name == plain);
    let is_meant = |scenario: &Scenario| match group {
        Some((_, holds)) => holds(scenario),
        None => scenario.name == plain || scenario.aliases.contains(&plain.as_str()),
    };
    let numbers: Vec<usize> = (0..ALL.len()).filter(|at| is_meant(&ALL[*at])).collect();
    if numbers.is_empty() { Err(unknown(word)) } else { Ok(numbers) }
}

fn unknown(word: &str) -> Error {
    let names = ALL.iter().map(|scenario| scenario.name).chain(GROUPS.iter().map(|(name, _)| *name));
    Error::usage(format!("unknown scenario \"{word}\""))
        .hint(format!("known: {}", names.collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(list: &str) -> Vec<&'static str> {
        let (numbers, errors) = select(list);
        assert!(errors.is_empty(), "{errors:?}");
        numbers.into_iter().map(|at| ALL[at].name).collect()
    }

    #[test]
    fn every_name_means_one_scenario() {
        let words: Vec<&str> = ALL.iter().flat_map(|row| [&[row.name], row.aliases].concat()).collect();
        let different: BTreeSet<&&str> = words.iter().collect();
        assert_eq!(different.len(), words.len());
        for word in words {
            assert_eq!(names(word).len(), 1, "{word}");
        }
        for row in ALL {
            assert!(row.name.len() <= 20 && !row.title.is_empty() && !row.about.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn lists_groups_and_spellings() {
        assert_eq!(names("production,autoscale"), ["production", "autoscale"]);
        assert_eq!(names("CAPACITY, Storage_Only"), ["storage-only", "capacity-autoscale"]);
        assert_eq!(names("gpu+cpu"), ["gpu-cpu"]);
        assert_eq!(
            names("mlperf_submission"),
            ["mlperf-stress-8b", "mlperf-throughput-8b", "mlperf-stress-70b"]
        );
        assert_eq!((names("all").len(), names("comparison").len()), (13, 10));
    }

    #[test]
    fn every_wrong_name_is_said() {
        let (_, errors) = select("cpu,tape,drum");
        let said: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(said[0].starts_with("unknown scenario \"tape\"\nhint: known: gpu-only, "), "{said:?}");
        assert!(said[1].starts_with("unknown scenario \"drum\""), "{said:?}");
        assert_eq!(select(" , ").1.len(), 1);
    }
}
