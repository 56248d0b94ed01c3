//! `wavetank trace replay`, recorded and made again; its files, its flags, and storages side by side.

use insta::assert_snapshot;
use serde_json::Value;
use wavetank_model::{
    KeyFamily, KeyId, KeyTable, Layout, LayoutId, Nanos, ObjectKey, Prefetch, Recorded, Row, StorageCall,
    WriteMode,
};
use wavetank_trace::calls::lct::{Header, LctOptions, Recording};

use crate::sandbox::Sandbox;

/// Memory for 24 objects, and a tier behind for 40.
const CONFIG: &str = r#"{"l1_manager_config": {"eviction": {"eviction_policy": "LRU", "eviction_ratio": 0.3,
    "trigger_watermark": 0.5}, "memory_config": {"align_bytes": 4096, "size_in_bytes": 98304},
    "read_ttl_seconds": 300, "write_ttl_seconds": 600},
    "l2_adapter_config": {"adapters": ["<x object at 0x7>"]}}"#;
pub(crate) const L2: &str = concat!(
    r#"--l2-adapter {"type":"mock","max_size_gb":0.00015,"mock_bandwidth_gb":0.01,"#,
    r#""eviction":{"eviction_policy":"LRU","trigger_watermark":0.8,"eviction_ratio":0.2}}"#
);
const KEYS: u32 = 40;
const REQUESTS: u64 = 60;

fn table() -> KeyTable {
    let mut table = KeyTable::default();
    let family = KeyFamily { model_name: "tiny", kv_rank: 0x0100_0100, object_group_id: 0, cache_salt: "" };
    for chunk in 0..KEYS {
        table.key_id(ObjectKey { chunk_hash: &[chunk as u8; 32], family });
    }
    let dtypes = Box::new(["torch.bfloat16".into()]);
    table.layout_id(Layout { shapes: Box::new([Box::new([2, 16, 64])]), dtypes });
    table
}

/// A caller that asks for four chunks at a time, releases two and stores all.
fn calls() -> Vec<Recorded> {
    let layout = LayoutId(0);
    let request = |number: u64| {
        let first = (number * number * 7 % u64::from(KEYS - 4)) as u32;
        let keys = |from: u32, to: u32| (first + from..first + to).map(KeyId).collect::<Box<[KeyId]>>();
        let row = Row { keys: keys(0, 4), group: 0, layout, window: -1 };
        let asked = Prefetch { request: "r".into(), ..Prefetch::of([row]) };
        [
            StorageCall::SubmitPrefetch(Box::new(asked)),
            StorageCall::ReadEnter { keys: keys(0, 2) },
            StorageCall::ReadExit { keys: keys(0, 2) },
            StorageCall::FinishRead { keys: keys(0, 2), locks: 1 },
            StorageCall::ReserveWrite { keys: keys(0, 4), layout, mode: WriteMode::New },
            StorageCall::FinishWrite { keys: keys(0, 4) },
        ]
        .into_iter()
        .zip(1..)
        .map(move |(call, step)| Recorded::plain(Nanos(number * 100_000_000 + step * 1_000_000), call))
    };
    (0..REQUESTS).flat_map(request).collect()
}

pub(crate) fn sandbox() -> Sandbox {
    let sandbox = Sandbox::empty();
    let header = Header::storage(1_794_704_663.5, CONFIG.to_owned());
    let mut file = Recording::create(&sandbox.path("x.lct"), header, LctOptions::default()).expect("a file");
    calls().iter().for_each(|call| file.write(call, &table()).expect("room"));
    file.finish().expect("room");
    sandbox
}

pub(crate) fn run(sandbox: &Sandbox, line: &str, code: i32) -> String {
    let run = sandbox.run(&format!("trace replay {line}"));
    assert_eq!(run.code, Some(code), "{line}: {}{}", run.stdout, run.stderr);
    run.stdout
}

pub(crate) fn json(sandbox: &Sandbox, name: &str) -> Value {
    let mut report: Value = serde_json::from_str(&sandbox.read(name)).expect("JSON");
    let fields = report.as_object_mut().expect("an object");
    fields.retain(|field, _| !["wall", "recorded"].contains(&field.as_str()));
    report
}

pub(crate) fn bytes(sandbox: &Sandbox, name: &str) -> Vec<u8> {
    std::fs::read(sandbox.path(name)).expect("a file")
}

/// Broken by: a header without the whole plan, background work that is not written or not followed, a record
/// out of its order.
#[test]
fn a_recorded_replay_is_followed_exactly() {
    let sandbox = sandbox();
    for (number, flags) in [
        format!("{L2} --store-delay-ms 3"),
        format!("{L2} --tick-phase-s 0.3 --l2-prefetch-policy retain --eviction-policy arc --to 4.5"),
        format!("{L2} --mode closed --l2-store-policy skip_l1"),
        "--l1-size-gb inf --loop 3 --from 2".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        run(&sandbox, &format!("x.lct {flags} --trace-output b.lct --output a.json"), 0);
        let told = run(&sandbox, "b.lct --strict --trace-output c.lct --output b.json", 0);
        assert!(told.contains("Background work as recorded"), "{number}: {told}");
        assert!(bytes(&sandbox, "b.lct") == bytes(&sandbox, "c.lct"), "{flags}");
        let (a, b) = (json(&sandbox, "a.json"), json(&sandbox, "b.json"));
        assert_eq!(a["plan"]["storage"], b["plan"]["storage"], "{flags}");
        assert_eq!(b["config"]["matches"], true, "{flags}");
        if number < 3 {
            assert_eq!(a["tally"]["background"], b["tally"]["background"], "{flags}");
            assert_eq!(a["tally"]["hits_l1"], b["tally"]["hits_l1"], "{flags}");
        }
    }
}

/// Broken by: a time of day, an address or an order of a hash in what is written.
#[test]
fn a_replay_in_virtual_time_is_the_same_twice() {
    let sandbox = sandbox();
    let line = format!("x.lct {L2}");
    let one = run(&sandbox, &format!("{line} --trace-output 1.lct --jsonl-out 1.jsonl --output 1.json"), 0);
    let two = run(&sandbox, &format!("{line} --trace-output 2.lct --jsonl-out 2.jsonl --output 2.json"), 0);
    assert_eq!(one, two);
    assert_eq!(json(&sandbox, "1.json"), json(&sandbox, "2.json"));
    assert_eq!(sandbox.read("1.jsonl"), sandbox.read("2.jsonl"));
    assert!(bytes(&sandbox, "1.lct") == bytes(&sandbox, "2.lct"));
}

/// Broken by: recorded work that is followed on other storage, or times of passes that are not used there.
#[test]
fn on_other_storage_recorded_passes_say_when_loops_look() {
    let sandbox = sandbox();
    run(&sandbox, &format!("x.lct {L2} --tick-phase-s 0.25 --store-delay-ms 4 --trace-output b.lct"), 0);
    let other = run(&sandbox, "b.lct --l1-size-gb 0.0002 --output o.json", 0);
    assert!(other.contains("simulated: not as recorded: l1_manager_config.memory_config.size_in_bytes"));
    let plan = &json(&sandbox, "o.json")["plan"];
    let ticks = plan["tempo"]["clock"].as_array().expect("loops");
    assert_eq!((ticks.len(), &ticks[0]["at"][0]), (2, &Value::from(251_000_000)));
    assert_eq!(plan["storage"]["store_delay"], 4_000_000);
    let same = run(&sandbox, "b.lct --eviction-policy lru", 0);
    assert!(same.contains("as recorded: the storage is as recorded"), "{same}");
    let asked = run(&sandbox, "b.lct --background simulated", 0);
    assert!(asked.contains("Background work simulated: asked for"), "{asked}");
    let forced = run(&sandbox, "b.lct --l1-size-gb 0.0002 --background recorded", 0);
    assert!(forced.contains("Background work as recorded: asked for"), "{forced}");
    let closed = run(&sandbox, "b.lct --mode closed", 0);
    assert!(closed.contains("simulated: it is followed in open mode only (--mode)"), "{closed}");
}

/// Broken by: calls that are counted twice or not at all, or made after the end.
#[test]
fn parts_and_rounds_are_counted() {
    let sandbox = sandbox();
    let tally = |flags: &str| {
        run(&sandbox, &format!("x.lct {L2} {flags} --output t.json -q"), 0);
        json(&sandbox, "t.json")["tally"].clone()
    };
    let calls = |flags: &str| tally(flags)["calls"].as_u64().expect("a count");
    assert_eq!((calls(""), calls("--to 3.0"), calls("--from 3.0")), (360, 180, 180));
    assert_eq!(
        (calls("--loop 3"), calls("--loop 3 --from 5.9061"), calls("--from 1 --to 2")),
        (1080, 720, 60)
    );
    // What a part finds is what the whole finds in that part, as what comes before warms the tiers.
    let (whole, first, rest) = (tally(""), tally("--to 2.5"), tally("--from 2.5"));
    for name in ["asked", "hits_l1", "hits_l2", "stored", "released", "refused_resident"] {
        let number = |tally: &Value| tally[name].as_u64().expect("a count");
        assert_eq!(number(&first) + number(&rest), number(&whole), "{name}");
    }
    let evicted = |tally: &Value| tally["background"]["l1"]["evicted"].as_u64().expect("a count");
    assert_eq!(evicted(&first) + evicted(&rest), evicted(&whole));
    assert!(evicted(&rest) > 0 && whole["hits_l2"].as_u64() > Some(0));
}

/// Broken by: an expectation that is not switched off, one that is made up, or calls without one that count
/// as met.
#[test]
fn outcomes_are_compared_with_what_was_asked_for() {
    let sandbox = sandbox();
    run(&sandbox, &format!("x.lct {L2} --strict"), 1);
    run(&sandbox, &format!("x.lct {L2} --expect implied --strict"), 1);
    let unknown = run(&sandbox, &format!("x.lct {L2} --expect recorded"), 0);
    assert!(unknown.contains("Other than recorded: 0 of 0 prefetches compared"), "{unknown}");
    assert!(unknown.contains("Not compared: 60 prefetches"), "{unknown}");
    // Nothing is compared, so nothing was met.
    for flags in ["--expect recorded", "--loop 2 --from 5.9065", "--expect none", "--mode closed"] {
        run(&sandbox, &format!("x.lct {L2} {flags} --strict"), 2);
    }
    let twice = run(&sandbox, &format!("x.lct {L2} --loop 2"), 0);
    assert!(twice.contains(" of 60 prefetches compared") && twice.contains("Not compared: 60"), "{twice}");
    run(&sandbox, &format!("x.lct {L2} --trace-output b.lct"), 0);
    run(&sandbox, "b.lct --expect recorded --strict", 0);
    run(&sandbox, "b.lct --expect implied --strict", 1);
    let whole = bytes(&sandbox, "b.lct");
    sandbox.write("cut.lct", &whole[..whole.len() - 7]);
    run(&sandbox, "cut.lct", 0);
    let cut = sandbox.run("trace replay cut.lct --strict");
    assert_eq!(cut.code, Some(1));
    assert!(cut.stderr.contains("not all of the recording could be read"), "{}", cut.stderr);
}

#[test]
fn what_is_written_has_the_columns_of_the_reference() {
    let sandbox = sandbox();
    let line = format!("x.lct {L2} --to 0.5 --output-dir out --json --jsonl-out calls.jsonl --verbose");
    let verbose = sandbox.run(&format!("trace replay {line}"));
    assert_eq!(verbose.code, Some(0), "{}", verbose.stderr);
    assert_snapshot!("screen", verbose.stdout);
    assert_snapshot!("verbose", verbose.stderr);
    assert_snapshot!("operations", sandbox.read("out/trace_replay_ops.csv"));
    assert_snapshot!("summary", sandbox.read("out/trace_replay_summary.json"));
    let lines = sandbox.read("calls.jsonl");
    assert_snapshot!("jsonl", lines.lines().take(6).collect::<Vec<_>>().join("\n"));
    assert_eq!(lines.lines().count(), verbose.stderr.lines().count());
    run(&sandbox, "x.lct --quiet --no-csv --json", 0);
    assert_eq!(sandbox.names_in("out"), ["trace_replay_ops.csv", "trace_replay_summary.json"]);
    assert!(sandbox.names_in("").contains(&"trace_replay_summary.json".to_owned()));
    assert!(!sandbox.names_in("").contains(&"trace_replay_ops.csv".to_owned()));
}

/// Broken by: a variant that is not on top of the flags given, or that runs with another's.
#[test]
fn storages_side_by_side_are_separate_runs() {
    let sandbox = sandbox();
    let arguments = sandbox.path("x.lct").display().to_string();
    let variants = ["--l1-size-gb 0.0002 --eviction-policy 'arc'", "--l2-adapter none", "--mode closed"];
    let mut command = std::process::Command::new(crate::sandbox::WAVETANK);
    command.args(["trace", "replay", &arguments, "--store-delay-ms", "2", "--output", "all.json"]);
    command.args(L2.splitn(2, ' ')).current_dir(sandbox.path(""));
    command.args(variants.iter().flat_map(|variant| ["--against", variant]));
    let together = command.output().expect("it runs");
    let text = String::from_utf8(together.stdout).expect("text");
    assert_snapshot!("against", text.split("Against").last().expect("a table"));
    let report = json(&sandbox, "all.json");
    for (number, variant) in variants.iter().enumerate() {
        let own = if variant.contains("adapter") { "" } else { L2 };
        // Without a tier behind memory nothing is copied to it.
        let delay = if variant.contains("none") { "" } else { "--store-delay-ms 2" };
        let variant = variant.replace('\'', "");
        run(&sandbox, &format!("x.lct {delay} {own} {variant} --output one.json"), 0);
        let (one, against) = (json(&sandbox, "one.json"), &report["against"][number]);
        assert_eq!((&one["tally"], &one["plan"]), (&against["tally"], &against["plan"]), "{variant}");
    }
}

/// Broken by: a flag that is taken and has no effect.
#[test]
fn what_has_no_effect_or_no_meaning_is_refused() {
    let sandbox = sandbox();
    run(&sandbox, &format!("x.lct {L2} --trace-output b.lct"), 0);
    let mut said = String::new();
    for line in [
        "x.lct --pace max --threads 0",
        "x.lct --pace 0x",
        "x.lct --threads 2",
        "x.lct --payload zeros",
        "x.lct --loop 0",
        "x.lct --loop 9999999",
        "x.lct --from 7",
        "x.lct --from 2 --to 1",
        "x.lct --mode closed --expect implied",
        "x.lct --mode pinned --expect none",
        "x.lct --mode pinned --trace-output c.lct",
        "x.lct --background recorded",
        "b.lct --background recorded --mode closed",
        "b.lct --background recorded --store-delay-ms 1",
        "x.lct --eviction-policy IsolatedLRU",
        "x.lct --store-delay-ms 1",
        "x.lct --l2-prefetch-policy retain",
        "x.lct --l1-size-gb inf --eviction-policy arc",
        "x.lct --l1-size-gb inf --tick-phase-s 0.5",
        "x.lct --l1-size-gb 1e300",
        "x.lct --l1-align-bytes 0",
        "x.lct --l2-adapter none --l2-adapter {}",
        "x.lct --l2-adapter {\"type\":\"mock\",\"mock_bandwidth_gb\":0}",
        "x.lct --against --l2-adapter={type:mock}",
        "x.lct --trace-output x.lct",
        "x.lct --jsonl-out a --output a",
        "x.lct --against --to=3",
        "x.lct --against --mode=other",
        "x.lct --against --l1-size-gb=-1",
        "x.lct --no-csv",
    ] {
        let refused = sandbox.run(&format!("trace replay {line}"));
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{line}");
        said += &format!("{line}\n{}", refused.stderr);
    }
    assert_snapshot!(said);
    assert!(!sandbox.names_in("").contains(&"c.lct".to_owned()));
}

/// Broken by: what left a benchmark's store, or had no room there, that is not followed.
#[test]
fn a_recorded_benchmark_replays_as_it_was() {
    let sandbox = Sandbox::empty();
    let bench = sandbox.run(
        "bench --model tiny-1b --num-users 4 --max-requests 8 --generation-mode deterministic \
         --gpu-mem-gb 0 --cpu-mem-gb 0.05 --storage-capacity-gb 0.3 --backend null \
         --cache-dir c --trace-output r.lct --output bench.json",
    );
    assert_eq!(bench.code, Some(0), "{}", bench.stderr);
    let replayed = run(&sandbox, "r.lct --strict --trace-output b.lct", 0);
    assert!(replayed.contains("Background work as recorded: the storage is as recorded"), "{replayed}");
    run(&sandbox, "b.lct --strict --trace-output c.lct", 0);
    assert!(bytes(&sandbox, "b.lct") == bytes(&sandbox, "c.lct"));
    // Its callers look objects up one by one, and store what they never looked for.
    run(&sandbox, "r.lct --mode closed --output closed.json", 0);
    let closed = &json(&sandbox, "closed.json")["tally"];
    assert!(closed["stored"].as_u64() > Some(0) && closed["used_l1"].as_u64() > Some(0), "{closed}");
    assert_eq!(closed["read_failed"], 0, "{closed}");
    let limited = run(&sandbox, "r.lct --l1-size-gb 0.1", 0);
    assert!(limited.contains("Background work simulated: not as recorded"), "{limited}");
    assert!(limited.contains("objects left by themselves: this is not followed"), "{limited}");
}
