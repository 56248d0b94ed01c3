//! `wavetank trace replay` of recordings of calls, through the binary.

use insta::assert_snapshot;
use wavetank_trace::calls::lct::LctOptions;

use crate::sandbox::Sandbox;
use crate::trace_info::record;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::empty();
    record(&sandbox, "ours.lct", LctOptions::default());
    sandbox
}

/// Nothing was stored before the recording began, so the hits it had are not found.
#[test]
fn what_differs_is_told_and_can_be_put_right() {
    let sandbox = sandbox();
    let open = sandbox.run("trace replay ours.lct --l1-size-gb 1 --output r.json");
    assert_eq!(open.code, Some(0), "{}", open.stderr);
    assert_snapshot!(open.stdout);
    let report: serde_json::Value = serde_json::from_str(&sandbox.read("r.json")).expect("JSON");
    assert_eq!(report["tally"]["release_failed"], 2);
    assert_eq!(report["plan"]["storage"]["l1"]["capacity_bytes"], 1u64 << 30);
    let strict = sandbox.run("trace replay ours.lct --l1-size-gb 1 --strict");
    assert_eq!(strict.code, Some(1));
    assert!(strict.stderr.contains("an outcome is other than recorded"), "{}", strict.stderr);
    let pinned = sandbox.run("trace replay ours.lct --l1-size-gb 1 --mode pinned");
    assert!(pinned.stdout.contains("Released keys: 2, 0 were not held"), "{}", pinned.stdout);
    // Hits are those of the storage, not of the recording.
    let found = "Prefetched keys before they were put right: 0 of 5 found";
    assert!(pinned.stdout.contains(found) && !open.stdout.contains("before they"), "{}", pinned.stdout);
    assert!(pinned.stdout.contains("Put right: 3 put in, 0 taken out"), "{}", pinned.stdout);
    let twice = sandbox.run("trace replay ours.lct --l1-size-gb 1");
    assert_eq!(twice.stdout, open.stdout);
}

/// Broken by: a flag that is taken and has no effect.
#[test]
fn what_cannot_be_done_is_said() {
    let sandbox = sandbox();
    sandbox.write("log.csv", "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n");
    sandbox.write("ticks.json", "{\"l1_ticks_s\": [2.0, 1.0]}");
    let mut said = String::new();
    for line in [
        "ours.lct",
        "ours.lct --l1-size-gb=-1",
        "ours.lct --l1-size-gb 1 --eviction-policy newest",
        "ours.lct --l1-size-gb 1 --eviction-ratio 2",
        "ours.lct --l1-size-gb 1 --l2-adapter {\"type\":\"resp\"}",
        "ours.lct --l1-size-gb 1 --l2-adapter nonsense",
        "ours.lct --l1-size-gb 1 --ticks ticks.json",
        "ours.lct --l1-size-gb 1 --backend null",
        "log.csv --l1-size-gb 1",
        "none.lct --l1-size-gb 1",
    ] {
        let run = sandbox.run(&format!("trace replay {line}"));
        assert_eq!(run.code, Some(2), "{line}: {}", run.stdout);
        said += &format!("{line}\n{}", run.stderr);
    }
    assert_snapshot!(said);
}
