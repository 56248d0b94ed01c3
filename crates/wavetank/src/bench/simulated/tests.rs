//! Benchmarks on media beside the same ones on devices.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use wavetank_bench::{Load, Unwatched};
use wavetank_model::TierRoom;
use wavetank_store::Key;
use wavetank_store::backend::{Birth, NewEntry, Piece};
use wavetank_store::buffer::{Mover, Region};

use super::*;
use crate::bench::args::GenerationMode;
use crate::bench::finished::Benched;
use crate::bench::run::{BenchFiles, BenchObserver, bench};
use crate::bench::testing::without_gpu;
use crate::bench::trials::TrialCount;

/// Users who ask for entries of a quarter of a MiB to 2, and documents that fit: they are written eight at a
/// time, and what leaves then is a matter of time.
const SCALED: &str = "user_templates:
  chatbot: {context_range: [11, 80], generation_range: [5, 20], think_time_range: [0.0, 0.001]}
  coding: {context_range: [11, 80], generation_range: [10, 50], think_time_range: [0.0, 0.001]}
  document: {context_range: [11, 80], generation_range: [20, 80], think_time_range: [0.0, 0.001]}
rag: {chunk_size_tokens: 32, small_model_doc_tokens_min: 100, small_model_doc_tokens_max: 200}
";
const MEMORY: &str = r#"cpu={"name": "queued", "gbps": 8.0, "latency_us": 2.0}"#;
const DRIVE: &str = r#"disk={"name": "queued", "gbps": 1.0, "latency_us": 100.0}"#;

/// One request after the other, through a little memory to a small drive.
fn args(folder: &Path) -> BenchArgs {
    std::fs::write(folder.join("scaled.yaml"), SCALED).unwrap();
    BenchArgs {
        model: Some("tiny-1b".to_owned()),
        config: Some(folder.join("scaled.yaml")),
        num_users: Some(1),
        load: Some(Load::Closed),
        max_requests: Some(120),
        duration: Some(300.0),
        cpu_mem_gb: Some(0.008),
        storage_capacity_gb: Some(0.06),
        cache_dir: Some(folder.join("cache")),
        generation_mode: Some(GenerationMode::None),
        enable_rag: true,
        rag_num_docs: Some(4),
        ..BenchArgs::default()
    }
}

/// Broken by: a thread that asks in no time, or one that is held up beside others by what it does.
#[test]
fn a_single_thread_spends_time_on_what_it_asks_for() {
    let profile = crate::profile::tier::testing::profile();
    let spent = std::time::Duration::from_nanos((profile.points[0].busy_us * 1000.0) as u64);
    let Value::Object(parameters) = serde_json::json!({ "profile": profile }) else { unreachable!() };
    let medium = MediumConfig { name: MEASURED.to_owned(), parameters };
    for (holds_up, expected) in [(true, spent), (false, std::time::Duration::ZERO)] {
        let clock = wavetank_store::Clock::modelled();
        let timeline = Arc::new(Timeline::of(clock.clone(), vec![medium.build(1).unwrap()]));
        let nature = Nature { room: None, is_backed: false, is_inline: false, holds_up };
        let device: Arc<dyn Backend> = Arc::new(Device::new(&timeline, 0, nature));
        let region = Region::new(1).unwrap();
        let mut port = device.port(&region, 1).unwrap();
        let key = Key::new(b"a".as_slice());
        let entry =
            NewEntry { key: &key, bytes: profile.points[0].bytes, recipe: None, birth: Birth::default() };
        let held = port.create(&entry).unwrap();
        let (start, piece) = (clock.now(), Piece { token: 1, offset: 0, len: entry.bytes as usize });
        port.read(&held, piece, region.take(Mover::Device).unwrap());
        assert_eq!(clock.since(start), expected);
    }
}

/// Broken by: memory that is there before the first entry and taken for new, or the other way round.
#[test]
fn memory_that_is_backed_is_never_new() {
    let mut profile = crate::profile::tier::testing::profile();
    let mut used = profile.points.remove(2);
    (used.depth, used.ended_at_once) = (1, 1.0);
    let mut new = used.clone();
    new.room = TierRoom::New;
    let mut slow = used.write.clone().unwrap();
    slow.mean_us *= 1000.0;
    slow.quantiles_us = slow.quantiles_us.map(|us| us * 1000.0);
    new.write = Some(slow);
    profile.points.extend([used, new]);
    let Value::Object(parameters) = serde_json::json!({ "profile": profile }) else { unreachable!() };
    let medium = MediumConfig { name: MEASURED.to_owned(), parameters };
    let [backed, fresh] = [true, false].map(|is_backed| {
        let clock = wavetank_store::Clock::modelled();
        let timeline = Arc::new(Timeline::of(clock.clone(), vec![medium.build(1).unwrap()]));
        let nature = Nature { room: None, is_backed, is_inline: true, holds_up: true };
        let device: Arc<dyn Backend> = Arc::new(Device::new(&timeline, 0, nature));
        let region = Region::new(1).unwrap();
        let mut port = device.port(&region, 1).unwrap();
        let key = Key::new(b"a".as_slice());
        let entry = NewEntry { key: &key, bytes: 65_536, recipe: None, birth: Birth::default() };
        let held = port.create(&entry).unwrap();
        let (start, piece) = (clock.now(), Piece { token: 1, offset: 0, len: 65_536 });
        port.write(&held, piece, region.take(Mover::Device).unwrap(), None);
        clock.since(start)
    });
    assert!(fresh > backed * 100, "{fresh:?} {backed:?}");
}

fn simulated(args: &BenchArgs) -> BenchArgs {
    BenchArgs { simulate: [MEMORY, DRIVE].map(str::to_owned).to_vec(), ..args.clone() }
}

fn run(args: &BenchArgs) -> Benched {
    let plan = BenchPlan::on(&without_gpu(), args).unwrap_or_else(|error| panic!("{error}"));
    run_plan(&plan)
}

fn run_plan(plan: &BenchPlan) -> Benched {
    let stop = AtomicBool::new(false);
    let observer = BenchObserver { watch: &mut Unwatched, stop: &stop, news: &mut |_| {} };
    bench(plan, observer, BenchFiles::default()).unwrap()
}

fn refusal(args: &BenchArgs) -> String {
    BenchPlan::on(&without_gpu(), args).expect_err("it is refused").to_string()
}

/// Everything that was counted and nothing that took time.
fn counted(report: &Value) -> Vec<Value> {
    let tier = |tier: &Value| {
        let at = |pointer: &str| tier.pointer(pointer).unwrap().clone();
        json!([
            tier["hits"],
            tier["evictions"],
            tier["dropped_copies"],
            tier["entries"],
            tier["bytes"],
            at("/reads/operations"),
            at("/reads/bytes"),
            at("/writes/operations"),
            at("/writes/bytes"),
            at("/demotions_in/bytes"),
            at("/promotions_in/bytes"),
        ])
    };
    let tiers = report["summary"]["tiers"].as_array().unwrap().iter().map(tier);
    tiers
        .chain([report["accounting"].clone(), report["requests_completed"].clone()])
        .filter(|row| !row.is_null())
        .collect()
}

fn without_kernel(mut report: Value) -> Value {
    report["accounting"].as_object_mut().unwrap().remove("kernel");
    report
}

/// Broken by: room that a device counts and its model does not, an order of requests that follows time, a
/// window that leaves something out.
#[test]
fn one_at_a_time_does_what_devices_do() {
    for (promotion, backend) in [("never", "buffered"), ("on_hit", "direct"), ("on_second_hit", "memory")] {
        let folder = tempfile::tempdir().unwrap();
        let args = BenchArgs {
            promotion: Some(crate::bench::args::choice(promotion).unwrap()),
            backend: Some(backend.to_owned()),
            cache_dir: (backend != "memory").then(|| folder.path().join("cache")),
            ..args(folder.path())
        };
        let (model, real) = (run(&simulated(&args)), run(&args));
        let (model, real) = (without_kernel(model.report), without_kernel(real.report));
        let rows = counted(&real);
        assert!(rows[1][0].as_u64().unwrap() > 20, "the drive is hit: {rows:?}");
        assert_eq!(counted(&model), rows, "{backend}, {promotion}");
    }
}

/// Broken by: a draw, a wall clock or an order of threads in a simulated run.
#[test]
fn a_simulation_is_the_same_every_time_and_takes_no_time() {
    let folder = tempfile::tempdir().unwrap();
    let args = BenchArgs {
        num_users: Some(16),
        generation_mode: Some(GenerationMode::Realistic),
        io_threads: Some(4),
        ..simulated(&args(folder.path()))
    };
    let plan = BenchPlan::on(&without_gpu(), &args).unwrap();
    let report = |benched: Benched| {
        let mut report = benched.report;
        report.as_object_mut().unwrap().remove("wall");
        report
    };
    let first = report(run_plan(&plan));
    let again: BenchPlan = serde_json::from_value(first["plan"].clone()).unwrap();
    assert_eq!(first, report(run_plan(&again)));
    assert!(first["summary"]["elapsed_time"].as_f64().unwrap() > 2.0, "tokens take 30 ms each");
    assert!(!folder.path().join("cache").exists(), "nothing is stored");
}

/// A read that meets nobody takes what its medium says: 100 us, and a nanosecond a byte.
#[test]
fn times_are_those_of_the_medium() {
    let folder = tempfile::tempdir().unwrap();
    let args = BenchArgs { cpu_mem_gb: Some(0.0), ..args(folder.path()) };
    let benched = run(&BenchArgs { simulate: vec![DRIVE.to_owned()], ..args });
    let tier = &benched.report["summary"]["tiers"][0];
    for way in ["reads", "writes"] {
        let number = |at: &str| tier[way].pointer(at).and_then(Value::as_f64).unwrap();
        let expected = 0.1 + number("/bytes") / number("/operations") / 1e6;
        let mean = number("/total_ms/mean");
        assert!((mean / expected - 1.0).abs() < 1e-3, "{way}: {mean} {expected}");
        assert_eq!(number("/host_ms/mean"), 0.0);
    }
}

/// What is simulated says so wherever it is read.
#[test]
fn a_simulation_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let benched = run(&simulated(&args(folder.path())));
    assert_eq!(benched.report["summary"]["clock"], "simulated");
    assert_eq!(benched.report["plan"]["run"]["time"], "modelled");
    assert!(benched.report["harness"].is_null() && benched.report["block_layer"]["sent"].is_null());
    assert!(benched.warnings.iter().any(|line| line.starts_with("simulated: ")), "{:?}", benched.warnings);
    let table = wavetank_report::render::storage::table("t", &benched.summary, &[]);
    assert!(table.starts_with("t (simulated: "), "{table}");
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = simulated(&args(folder.path()));
    let with = |simulate: &[&str]| {
        refusal(&BenchArgs {
            simulate: simulate.iter().map(|typed| (*typed).to_owned()).collect(),
            ..whole.clone()
        })
    };
    assert!(with(&["disk"]).contains("--simulate: \"disk\" is not TIER=PROFILE"));
    assert!(with(&["tape=x"]).contains("unknown tier \"tape\" — hint: known: gpu, cpu, disk"));
    assert!(with(&["disk=/nowhere.toml"]).contains("/nowhere.toml"));
    assert!(with(&[r#"disk={"name": "flash"}"#, MEMORY]).contains("known: constant, measured, queued"));
    assert!(
        with(&[MEMORY]).contains("the storage tier has no medium — hint: add --simulate storage=PROFILE")
    );
    assert!(with(&[MEMORY, DRIVE, DRIVE]).contains("the storage tier is given twice"));
    let gpu = DRIVE.replace("disk", "gpu");
    assert!(with(&[MEMORY, DRIVE, &gpu]).contains("there is no gpu tier"));
    for (flag, args) in [
        ("--verify", BenchArgs { verify: true, ..whole.clone() }),
        ("--keep-cache", BenchArgs { keep_cache: true, ..whole.clone() }),
        ("--enable-latency-tracing", BenchArgs { enable_latency_tracing: true, ..whole.clone() }),
        ("--drop-page-cache", BenchArgs { drop_page_cache: true, ..whole.clone() }),
        ("--trials", BenchArgs { trials: Some(TrialCount::Number(3)), ..whole.clone() }),
        ("--rank", BenchArgs { rank: Some(0), ranks: Some(2), ..whole.clone() }),
        ("--storage-capacity-gb", BenchArgs { storage_capacity_gb: None, ..whole.clone() }),
        ("--simulate", BenchArgs { generation_mode: Some(GenerationMode::Deterministic), ..whole.clone() }),
    ] {
        assert!(refusal(&args).contains(&format!("{flag}: ")), "{flag}: {}", refusal(&args));
    }
    let mut plan = BenchPlan::on(&without_gpu(), &whole).unwrap();
    plan.media.clear();
    let mut findings = Findings::default();
    check(&plan, &mut findings);
    assert!(findings.into_result("no").unwrap_err().to_string().contains("media: go with"));
}
