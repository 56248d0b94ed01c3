//! The YAML configuration of a storage benchmark.

use wavetank::{BenchArgs, BenchPlan, GenerationMode};

use super::{Entry, inputs};
use crate::said::{Met, refused_anywhere};
use crate::scratch::Scratch;
use crate::texts;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "bench_config",
    about: "the YAML configuration of a storage benchmark",
    samples: &["crates/fuzz/samples/bench_config"],
    seeds: || {
        inputs(&[
            "",
            "rag: {top_k_chunks: 3}\n",
            "a: &a [1, 2]\nb: *a\n<<: *a\n",
            // What grows by tenfold with each line.
            "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
             c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n",
        ])
    },
    changed: texts::changed,
    check,
    most_memory: 256 << 20,
};

/// What is a plan is written and read as it is.
fn check(bytes: &[u8]) -> Met {
    let file = Scratch::of("config.yaml", bytes);
    let args = BenchArgs {
        config: Some(file.path().to_owned()),
        cache_dir: Some(file.folder().to_owned()),
        storage_capacity_gb: Some(1.0),
        gpu_mem_gb: Some(0.0),
        cpu_mem_gb: Some(1.0),
        num_users: Some(10),
        duration: Some(10.0),
        generation_mode: Some(GenerationMode::None),
        enable_rag: true,
        ..BenchArgs::default()
    };
    let plan = match BenchPlan::of(&args) {
        Ok(plan) => plan,
        Err(error) => return refused_anywhere(&error),
    };
    let text = serde_json::to_vec(&plan).expect("a plan is plain data");
    let again = BenchPlan::read(Scratch::of("plan.json", &text).path()).expect("what is written is a plan");
    assert!(again == plan, "{again:?} is not {plan:?}");
    Met::Read(format!("{} warnings", plan.warnings.len()))
}
