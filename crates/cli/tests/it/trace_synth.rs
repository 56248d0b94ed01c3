//! `wavetank trace synth`: conversations by distributions, seeded.

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::Sandbox;

fn synth(sandbox: &Sandbox, line: &str) -> Vec<Value> {
    let run = sandbox.run(&format!("trace synth s.jsonl {line}"));
    assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
    assert_eq!(sandbox.run("trace lint s.jsonl").code, Some(0), "{line}");
    sandbox.read("s.jsonl").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_small_one() {
    let sandbox = Sandbox::empty();
    let line = "--requests 6 --turns 3 --input-dist normal:700,50 --output-dist 20 --rate 2 \
                --arrivals constant --shared-prefixes 2 --prefix-dist 512 --pause-dist exponential:1000";
    synth(&sandbox, line);
    assert_snapshot!("small", sandbox.read("s.jsonl"));
    let first = sandbox.read("s.jsonl");
    synth(&sandbox, line);
    assert_eq!(sandbox.read("s.jsonl"), first, "the same seed");
    synth(&sandbox, &format!("{line} --seed 7"));
    assert_ne!(sandbox.read("s.jsonl"), first, "another seed");
}

#[test]
fn distributions_are_met() {
    let sandbox = Sandbox::empty();
    sandbox.write("lengths.txt", "100\n300\n");
    let line =
        "--requests 2000 --shared-prefixes 0 --input-dist empirical:lengths.txt --output-dist uniform:1,9";
    let rows = synth(&sandbox, line);
    let mean = |key: &str| rows.iter().map(|row| row[key].as_f64().unwrap()).sum::<f64>() / 2000.0;
    assert!((mean("input_length") - 200.0).abs() < 8.0, "{}", mean("input_length"));
    assert!((mean("output_length") - 5.0).abs() < 0.25, "{}", mean("output_length"));
    assert!(rows.iter().all(|row| row.get("session_id").is_none()), "single turns have no session");
    let burst = synth(&sandbox, "--requests 50 --arrivals burst");
    assert!(burst.iter().all(|row| row["timestamp"] == 0));
    let gamma = synth(&sandbox, "--requests 50 --arrivals gamma --smoothness 4 --rate 10");
    assert!(gamma.iter().any(|row| row["timestamp"] != 0));
    let fresh = synth(&sandbox, "--requests 50 --turns 5 --growth prefix --input-dist 100 --prefix-dist 512");
    assert!(fresh.iter().all(|row| row["input_length"] == 612));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let sandbox = Sandbox::empty();
    let mut said = String::new();
    for line in [
        "--requests 0",
        "--requests 5 --turns none",
        "--requests 5 --input-dist normal:5",
        "--requests 5 --input-dist empirical:missing",
        "--requests 5 --arrivals sometimes",
        "--requests 5 --arrivals burst --rate 5",
        "--requests 5 --rate=-1",
        "--requests 5 --smoothness 2",
        "--requests 5 --growth wild",
        "--requests 5 --trace-block-size 0",
        "--requests 5 --shared-prefixes 65",
    ] {
        let run = sandbox.run(&format!("trace synth s.jsonl {line}"));
        assert_eq!((run.code, &*run.stdout), (Some(2), ""), "{line}");
        said += &run.stderr;
    }
    assert_snapshot!("refused", said);
    assert_eq!(sandbox.names_in(""), [""; 0]);
}
