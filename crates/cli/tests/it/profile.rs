//! `wavetank profile timing`, through the binary.

use insta::assert_snapshot;

use crate::sandbox::Sandbox;

/// Passes of three sizes and contexts; one prompt is slower than a longer one.
fn passes() -> String {
    let mut text =
        "kind,prefill_batch,prefill_tokens,prefill_context,decode_batch,decode_context,ms\n".to_owned();
    for (tokens, ms) in [(16, 5.0), (256, 9.0), (1024, 20.0)] {
        for context in [0, 1024, 2048] {
            let attention = f64::from(tokens) * f64::from(context) / 1e6;
            text += &format!("prefill,1,{tokens},{context},0,0,{}\n", ms + attention);
        }
    }
    for requests in [1, 8, 64] {
        for length in [16, 1024, 4096] {
            let slow = if (requests, length) == (8, 16) { 0.5 } else { 0.0 };
            let ms = 4.5 + slow + f64::from(requests) * f64::from(length) / 5e4;
            text += &format!("decode,0,0,0,{requests},{length},{ms}\n");
        }
    }
    text
}

#[test]
fn tables_of_a_csv() {
    let sandbox = Sandbox::empty();
    sandbox.write("p.csv", passes());
    let run = sandbox.run("profile timing p.csv -o p.json");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(run.stdout);
    let again = sandbox.run("profile timing p.json");
    assert_eq!((again.code, again.stdout), (Some(0), run.stdout));
    assert!(sandbox.read("p.json").starts_with("{\n\"schema\":\"wavetank-profile/1\",\n\"unit\":\"ms\",\n"));
}

#[test]
fn built_in_tables() {
    let sandbox = Sandbox::empty();
    for (name, table) in [("llama31-8b-h200-tp1-bf16", "decode attention"), ("rtx4090-llama-3.1-8b", "dense")]
    {
        let run = sandbox.run(&format!("profile timing {name}"));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{name}");
        assert!(run.stdout.contains(table), "{}", run.stdout);
    }
}

#[test]
fn what_cannot_be_read_or_written_is_named() {
    let sandbox = Sandbox::empty();
    sandbox.write("p.csv", passes());
    sandbox.write("bad.csv", "kind,ms\n");
    sandbox.write("bad.json", "{}");
    sandbox.write("bad.npz", "no");
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    for (line, expected) in [
        ("missing.csv", "missing.csv: cannot open"),
        ("bad.csv", "bad.csv:1: the header is wrong"),
        ("bad.json", "bad.json:1: not a timing profile"),
        ("bad.npz", "bad.npz: not an .npz file"),
        ("empty", "attention.csv or attention.csv.gz is missing"),
        ("p.csv -o p.csv", "is the same file as the tables"),
        (
            "rtx4090-llama-3.1-8b -o k.json",
            "tables of \"kernels\" cannot be written as a profile of \"grid\"",
        ),
    ] {
        let run = sandbox.run(&format!("profile timing {line}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}");
        assert!(run.stderr.contains(expected), "{line}: {}", run.stderr);
    }
    assert!(!sandbox.path("k.json").exists());
}
