//! `wavetank loop`: a device measured, simulated, played, compared.

use serde_json::Value;

use crate::documents;
use crate::sandbox::{Run, Sandbox};

/// A profile in a second, of a few points.
const PROFILE: &str = "profile tier drive --backend buffered --sizes 64KiB,1MiB --depths 1,8 \
    --seconds-per-point 0.01 --sustained-seconds 0 --size-gb 0.1 --threads 1 -o drive.toml";
/// Prompts that do not stay in the GPU's memory.
const LOAD: &str = "--input-tokens 2048 --output-tokens 16 --request-count 60 --shared-prefix-ratio 0.9 \
    --num-prefix-groups 8 --arrival-interval-ms 20 --num-workers 2";
const ENGINE: &str = r#"{"num_gpu_blocks":80,"kv_bytes_per_token":512}"#;

fn stand() -> Sandbox {
    let sandbox = Sandbox::on_disk();
    std::fs::create_dir(sandbox.path("drive")).expect("a folder");
    sandbox
}

fn looped(sandbox: &Sandbox, flags: &str) -> Run {
    sandbox.run(&format!(
        "loop drive --backend buffered --capacity 1GiB --report-json out.json {LOAD} {flags} \
         --extra-engine-args {ENGINE}"
    ))
}

/// Broken by: operations that are simulated and not played, or played under other names, or left behind.
#[test]
fn what_is_simulated_is_played() {
    let sandbox = stand();
    assert_eq!(sandbox.run(PROFILE).code, Some(0));
    let run = looped(&sandbox, "--profile drive.toml --html page.html");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(!run.stderr.contains("has no effect"), "{}", run.stderr);
    let report: Value = serde_json::from_str(&sandbox.read("out.json")).unwrap();
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    for operation in ["read", "write"] {
        let count = |side: &str| number(&format!("/residuals/{operation}/{side}_count"));
        assert!(count("simulated") > 0, "{operation}");
        assert_eq!(count("simulated"), count("measured"), "{operation}");
    }
    assert_eq!(number("/played/counts/misses") + number("/played/counts/refused"), 0);
    assert_eq!(number("/played/counts/hits"), number("/residuals/read/simulated_count"));
    let rows = sandbox.read("out.io.csv").lines().count() as u64;
    assert_eq!(rows, number("/operations/played") + 1);
    assert_eq!(sandbox.names_in("drive"), Vec::<String>::new(), "nothing stays on the device");
    assert!(sandbox.read("page.html").contains("Simulated and measured I/O"));
    documents::explain_loop(&report, &run.stdout);
    assert!(!run.stderr.contains("the profile is of"), "it is of this device: {}", run.stderr);
    let again = sandbox.run("trace replay out.io.csv --cache-dir drive --storage-capacity-gb 1");
    assert_eq!(again.code, Some(0), "as the page of loop says: {}", again.stderr);
    let strict = looped(&sandbox, "--profile drive.toml --tolerance 0");
    assert_eq!(strict.code, Some(1), "{}", strict.stderr);
    assert!(strict.stderr.contains("failed: mean of reads is "), "{}", strict.stderr);
}

/// Broken by: a profile of something else, or half of one, that is taken without a word.
#[test]
fn what_a_profile_is_of_is_told() {
    let sandbox = stand();
    assert_eq!(sandbox.run(PROFILE).code, Some(0));
    let half = sandbox.read("drive.toml").replace("partial = false", "partial = true");
    sandbox.write("half.toml", half.replace("\"buffered\"", "\"memory\""));
    let run = looped(&sandbox, "--profile half.toml");
    assert!(run.stderr.contains("warning: the profile is of memory /"), "{}", run.stderr);
    assert!(run.stderr.contains("warning: the profile was ended before"), "{}", run.stderr);
}

/// Broken by: a file that is read, and written over.
#[test]
fn inputs_stay_as_they_are() {
    let sandbox = stand();
    assert_eq!(sandbox.run(PROFILE).code, Some(0));
    sandbox.write("args.json", ENGINE);
    sandbox.write("tiers.toml", "[[tier]]\nname = \"ram\"\ncapacity = \"1MiB\"\nmedium = \"1GB/s\"\n");
    for flags in [
        "--report-json args.json --extra-engine-args @args.json",
        "--html tiers.toml --tier @tiers.toml",
        "--report-json drive.toml",
    ] {
        let words =
            format!("loop drive --backend buffered --capacity 1GiB --profile drive.toml {LOAD} {flags}");
        let run = sandbox.run(&words);
        assert_eq!(run.code, Some(2), "{flags}: {}", run.stderr);
    }
    assert_eq!(sandbox.read("args.json"), ENGINE);
    let quick = looped(&sandbox, "--profile drive.toml --quick");
    assert_eq!(quick.code, Some(2), "{}", quick.stderr);
}

#[test]
fn what_cannot_be_gone_round_is_refused() {
    let sandbox = stand();
    let refused = |words: &str| {
        let run = sandbox.run(words);
        assert_eq!(run.code, Some(2), "{words}: {}", run.stderr);
        run.stderr
    };
    let load = "--input-tokens 100 --output-tokens 5 --request-count 2";
    assert!(refused(&format!("loop drive {load}")).contains("--capacity"));
    assert!(refused(&format!("loop drive --capacity much {load}")).contains("much"));
    assert!(refused(&format!("loop nowhere --capacity 1GiB {load}")).contains("nowhere"));
    let unknown = refused(&format!("loop drive --capacity 1GiB {load}"));
    assert!(unknown.contains("kv_bytes_per_token"), "{unknown}");
    let args = r#"--extra-engine-args {"kv_bytes_per_token":512}"#;
    let late = refused(&format!("loop drive --capacity 1GiB --play-seconds 0 {load} {args}"));
    assert!(late.contains("--play-seconds"), "{late}");
    let missing = refused(&format!("loop drive --capacity 1GiB --profile no.toml {load} {args}"));
    assert!(missing.contains("no.toml"), "{missing}");
    assert_eq!(sandbox.names_in("drive"), Vec::<String>::new());
}
