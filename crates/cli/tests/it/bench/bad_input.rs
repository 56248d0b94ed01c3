//! What cannot be run is said before anything is done: everything at once, what to do about it, exit code 2.

use insta::assert_snapshot;

use super::{SMALL, Stand};

/// What a benchmark that must be refused says.
fn refused(stand: &Stand, arguments: &str) -> String {
    let before = stand.sandbox.names_in("");
    let run = stand.run(arguments);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments}: {}", run.stderr);
    assert_eq!(stand.sandbox.names_in(""), before, "{arguments}: nothing is left behind");
    stand.is_clean(arguments);
    stand.sandbox.steady(&run.stderr)
}

#[test]
fn unknown_names() {
    let stand = Stand::new();
    assert_snapshot!(refused(&stand, "--model llama9-1t --gpu-mem-gb 0"));
    let backend = refused(&stand, "--backend floppy --gpu-mem-gb 0");
    assert!(backend.contains("--backend: unknown backend \"floppy\" — hint: known: buffered, "), "{backend}");
}

#[test]
fn everything_is_said_at_once() {
    let line = "--num-users 0 --duration 0 --gpu-mem-gb -1 --cpu-mem-gb nan --target-saturation 2 \
        --trace-speedup -1 --max-conversations 0 --prefill-only --decode-only --tensor-parallel 8 \
        --eviction random --persona-mix pirates=1 --dataset-path nowhere.json \
        --cache-dir /etc/kv --config nowhere.yaml --validation-trace nowhere.json --enable-latency-tracing";
    assert_snapshot!(refused(&Stand::new(), line));
}

#[test]
fn directories_that_are_none_of_ours() {
    let stand = Stand::new();
    let line = SMALL.replace(" --cache-dir cache", "");
    let mut said = String::new();
    for directory in ["talks.json", "talks.json/kv", "/etc", "/etc/kv", "/"] {
        said += &refused(&stand, &format!("{line} --cache-dir {directory}"));
    }
    assert_snapshot!(said);
}

#[test]
fn files_that_cannot_be_read() {
    let stand = Stand::new();
    let mut said = String::new();
    for (flag, name, content) in [
        ("--dataset-path", "empty.json", ""),
        ("--dataset-path", "cut.json", r#"[{"id":"a","conversations":[{"from":"human","value":"hi"},"#),
        ("--dataset-path", "object.json", r#"{"id":"a"}"#),
        ("--dataset-path", "none.json", "[]"),
        ("--dataset-path", "wrong.json", r#"[{"id":"a","conversations":"hello"}]"#),
        ("--dataset-path", "binary.json", "\u{1}\u{0}"),
        ("--use-burst-trace --burst-trace-path", "no_tokens.csv", "Timestamp,Model\n0,x\n"),
        ("--use-burst-trace --burst-trace-path", "no_rows.csv", "Timestamp,Request tokens,Response tokens\n"),
        ("--validation-trace", "recorded.json", "{}"),
        ("--plan", "no_plan.json", "{\"plan\": {}}"),
    ] {
        stand.sandbox.write(name, content);
        let line = if flag == "--plan" { "" } else { SMALL };
        said += &refused(&stand, &format!("{line} {flag} {name}"));
    }
    assert_snapshot!(said);
}

#[test]
fn an_unknown_key_of_the_configuration() {
    let stand = Stand::new();
    stand.sandbox.write(
        "mine.yaml",
        "decode:\n  batch_size: 32\n  bach_size: 16\nragg: {}\nrag: {top_k_chunks: many}\n",
    );
    assert_snapshot!(refused(&stand, "--model tiny-1b --gpu-mem-gb 0 --config mine.yaml"));
}

/// Where there is no driver, memory that was asked for is missed and said so.
#[test]
fn a_gpu_that_is_not_there() {
    let has_driver = ["/proc/driver/nvidia/version", "/dev/nvidiactl"]
        .iter()
        .any(|path| std::path::Path::new(path).exists());
    if has_driver {
        return;
    }
    let stand = Stand::new();
    let line = SMALL.replace("--gpu-mem-gb 0", "--gpu-mem-gb 16");
    let text = refused(&stand, &line);
    assert!(text.contains("--gpu-mem-gb: ") && text.contains("--gpu-tier sim"), "{text}");
    let line = SMALL.replace("--gpu-mem-gb 0 ", "");
    let report = stand.bench(&format!("{line} --cpu-mem-gb 0 --num-users 2 --generation-mode none")).json();
    let warning = report["warnings"][0].as_str().expect("a warning");
    assert!(warning.starts_with("there is no GPU tier: ") && warning.contains("--gpu-tier sim"), "{warning}");
}
