//! The folder of a measured run that `validate` reads: description, workload, measurements and tables of its
//! kernels, in one input with a byte between them.

use std::fs;

use wavetank_study::validate::Case;

use super::Entry;
use crate::said::{Met, refused};
use crate::scratch::Scratch;
use crate::texts;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "run_folder",
    about: "folders of measured runs, as `validate` reads them",
    samples: &[],
    seeds,
    changed: texts::changed,
    check,
    most_memory: 256 << 20,
};

/// What separates files.
const BETWEEN: u8 = 0x1e;
const NAMES: [&str; 7] = [
    "run.json",
    "workload.jsonl",
    "measured.csv",
    "profile/attention.csv",
    "profile/dense.csv",
    "profile/per_sequence.csv",
    "profile/skew.csv",
];

const RUN: &str = r#"{"model": "m", "hardware": "h", "vllm_version": "0.19.0", "trace_block_size": 16,
    "engine": {"tensor_parallel_size": 1, "data_parallel_size": 1, "max_num_seqs": 128,
    "max_num_batched_tokens": 2048, "max_model_len": 4096},
    "kv_cache": {"num_gpu_blocks": 64, "block_size": 16},
    "model_config": {"hidden_size": 64, "num_hidden_layers": 2}}"#;
const WORKLOAD: &str = r#"{"timestamp":0,"input_length":20,"output_length":3,"hash_ids":[1,2]}
{"timestamp":100,"input_length":20,"output_length":2,"hash_ids":[1,3]}
"#;
const MEASURED: &str = "index,input_tokens,output_tokens,queued_s,scheduled_s,first_token_s,last_token_s
0,20,3,0.0,0.1,0.2,0.3
1,20,2,0.1,0.2,0.3,0.4
";
const DENSE: &str = "layer,tokens,time_us\nqkv_proj,1,2\nqkv_proj,512,900\n";
const SEQUENCE: &str = "layer,sequences,time_us\nsampler,1,3\nsampler,256,768\n";
const SKEW: &str = "regime,n,kp,kv_mean,t_mean_us,t_max_us,t_skew_us\npure,256,0,100,10,20,10\n";

/// Times of attention by prompt tokens, their context, requests that decode and their lengths.
fn attention() -> String {
    let mut table = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n".to_owned();
    for (chunk, context) in [(0, 0), (16, 0), (16, 2048), (1024, 0), (1024, 2048)] {
        for (batch, length) in [(0, 0), (1, 16), (1, 8192), (256, 16), (256, 8192)] {
            if chunk + batch > 0 {
                let time = 1 + (chunk * context + batch * length) / 1000;
                table += &format!("{chunk},{context},{batch},{length},{time}\n");
            }
        }
    }
    table
}

fn seeds() -> Vec<Vec<u8>> {
    let joined = |parts: &[&str]| parts.join(&char::from(BETWEEN).to_string()).into_bytes();
    let timed = RUN.replace(r#""model": "m""#, r#""model": "m", "timing": {"name": "polynomial"}"#);
    vec![
        joined(&[RUN, WORKLOAD, MEASURED, &attention(), DENSE, SEQUENCE, SKEW]),
        joined(&[&timed, WORKLOAD, MEASURED]),
        joined(&[&timed, WORKLOAD]),
        joined(&["{}", WORKLOAD, ""]),
    ]
}

fn check(bytes: &[u8]) -> Met {
    let mut parts = bytes.splitn(NAMES.len(), |byte| *byte == BETWEEN).zip(NAMES);
    let (first, name) = parts.next().expect("a slice has a first part");
    let folder = Scratch::of(name, first);
    fs::create_dir(folder.folder().join("profile")).expect("there is room for a folder");
    for (part, name) in parts {
        fs::write(folder.folder().join(name), part).expect("there is room for an input");
    }
    match Case::open(folder.folder()) {
        Ok(case) => Met::Read(format!("{} of {}", case.is_measured(), case.inputs().len())),
        Err(error) => refused(&error, &folder.folder().display().to_string()),
    }
}
