//! Every table of choices, for `wavetank list`.

use wavetank_cache::eviction;
use wavetank_model::{Described, Error, Result, accelerators, models};
use wavetank_report::compare::formats as results;
use wavetank_sim::{engines, media, queues, routers, scaling, timing};
use wavetank_store::{backends, wrappers};
use wavetank_telemetry::exporters;
use wavetank_trace::{calls, requests};

use crate::bench::{bench_abouts, bench_models, suite};
use crate::{doctor, engine_args, router_args, scaling_args, sglang_args};

/// A table of choices by its name.
pub struct Kind {
    /// As typed after `wavetank list`.
    pub name: &'static str,
    /// What is chosen.
    pub about: &'static str,
    rows: fn() -> Vec<Choice>,
}

/// One row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// As typed.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
}

impl Kind {
    /// Its rows.
    pub fn rows(&self) -> Vec<Choice> {
        (self.rows)()
    }
}

fn rows<T: Described>(table: &[T]) -> Vec<Choice> {
    table.iter().map(|row| Choice { name: row.name(), about: row.about() }).collect()
}

/// Those of the simulation, and the keys of the storage benchmark.
fn model_rows() -> Vec<Choice> {
    let simulated = models().iter().map(|model| Choice { name: &model.name, about: model.about() });
    let keys = bench_models().iter().zip(bench_abouts());
    let keys = keys.map(|(model, about)| Choice { name: &model.name, about });
    let mut rows: Vec<Choice> = simulated.chain(keys).collect();
    rows.sort_by_key(|row| row.name);
    rows
}

fn gpu_rows() -> Vec<Choice> {
    accelerators().iter().map(|gpu| Choice { name: &gpu.name, about: gpu.about() }).collect()
}

fn profile_rows() -> Vec<Choice> {
    let grids = timing::profiles().iter().map(|row| Choice { name: row.name, about: &row.about });
    let kernels = timing::kernel_profiles().iter().map(|row| Choice { name: row.name, about: &row.about });
    let mut rows: Vec<Choice> = grids.chain(kernels).collect();
    rows.sort_by_key(|row| row.name);
    rows
}

fn autoscale_rows() -> Vec<Choice> {
    scaling_args::parameters().map(|row| Choice { name: row.name, about: row.about }).collect()
}

/// Every kind, alphabetical.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "autoscale",
        about: "--autoscale: who changes the number of workers",
        rows: || rows(scaling::ALL),
    },
    Kind { name: "autoscale-args", about: "keys of --autoscale-config", rows: autoscale_rows },
    Kind { name: "backends", about: "what holds a tier's bytes", rows: || rows(backends::ALL) },
    Kind { name: "calls", about: "storage-call trace formats", rows: || rows(calls::ALL) },
    Kind { name: "checks", about: "what doctor looks at", rows: || rows(doctor::ALL) },
    Kind { name: "engine-args", about: "keys of --extra-engine-args", rows: || rows(engine_args::KEYS) },
    Kind { name: "engines", about: "engine_type in the engine arguments", rows: || rows(engines::ALL) },
    Kind { name: "eviction", about: "who leaves a full tier first", rows: || rows(eviction::ALL) },
    Kind { name: "exporters", about: "where spans of serve go", rows: || rows(exporters::ALL) },
    Kind { name: "formats", about: "--trace-format", rows: || rows(requests::ALL) },
    Kind { name: "gpus", about: "gpu in the engine arguments and of roofline", rows: gpu_rows },
    Kind { name: "media", about: "how long a simulated tier takes", rows: || rows(media::ALL) },
    Kind { name: "models", about: "model in the engine arguments, and --model of bench", rows: model_rows },
    Kind {
        name: "profiles",
        about: "--timing grid:NAME, or kernels:NAME where -v says kernels",
        rows: profile_rows,
    },
    Kind {
        name: "queues",
        about: "router_queue_policy in the router configuration",
        rows: || rows(queues::ALL),
    },
    Kind { name: "results", about: "what compare reads", rows: || rows(results::ALL) },
    Kind { name: "router-args", about: "keys of --router-config", rows: || rows(router_args::KEYS) },
    Kind { name: "routers", about: "--router-mode", rows: || rows(routers::ALL) },
    Kind { name: "scenarios", about: "--only of bench suite", rows: || rows(suite::SCENARIOS) },
    Kind {
        name: "sglang-args",
        about: "keys of sglang in the engine arguments",
        rows: || rows(sglang_args::KEYS),
    },
    Kind {
        name: "timing",
        about: "--timing, and timing in the engine arguments",
        rows: || rows(timing::ALL),
    },
    Kind { name: "wrappers", about: "what goes around a backend", rows: || rows(wrappers::ALL) },
];

/// The kind called `name`.
pub fn kind(name: &str) -> Result<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let known: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
        Error::usage(format!("unknown kind \"{name}\"")).hint(format!("known: {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_described() {
        for kind in KINDS {
            assert!(!kind.rows().is_empty(), "{}", kind.name);
            assert!(kind.rows().iter().all(|row| !row.about.is_empty()), "{}", kind.name);
        }
    }

    /// Keys of arguments are in the order of their object, scenarios in the order they run.
    #[test]
    fn tables_of_plugins_are_alphabetical() {
        let is_ordered = |kind: &&Kind| kind.name.ends_with("-args") || kind.name == "scenarios";
        for kind in KINDS.iter().filter(|kind| !is_ordered(kind)) {
            assert!(kind.rows().is_sorted_by_key(|row| row.name), "{}", kind.name);
        }
        assert!(KINDS.is_sorted_by_key(|kind| kind.name));
    }
}
