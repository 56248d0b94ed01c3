//! What is typed, and the plan that comes of it.
//!
//! Breaks when a flag does not reach the plan, a rule of spec/kv-bench.md 2 is not kept, or only the first
//! of several errors is said.

use std::path::PathBuf;

use insta::assert_snapshot;
use tempfile::TempDir;
use wavetank_bench::{Ageing, Arrivals, Feed, Load, Reads, Role, Time};
use wavetank_cache::{Promotion, WritePolicy};
use wavetank_model::{Nanos, TierRole};

use super::*;
use crate::bench::args::{GpuTier, ReadPolicy};
use crate::bench::testing::{with_gpu, without_gpu};
use crate::bench::trials::TrialCount;

const GIB: u64 = 1 << 30;

/// No tier but a small storage, so that plans do not depend on the machine.
fn small() -> BenchArgs {
    BenchArgs {
        gpu_mem_gb: Some(0.0),
        cpu_mem_gb: Some(0.0),
        storage_capacity_gb: Some(1.0),
        ..BenchArgs::default()
    }
}

fn plan(args: &BenchArgs) -> BenchPlan {
    BenchPlan::on(&without_gpu(), args).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(args: &BenchArgs) -> String {
    BenchPlan::on(&without_gpu(), args).expect_err("it is refused").to_string()
}

fn tiers(plan: &BenchPlan) -> Vec<(TierRole, &str, Option<u64>)> {
    plan.run.tiers.iter().map(|tier| (tier.role, tier.backend.as_str(), tier.capacity_bytes)).collect()
}

fn file(folder: &TempDir, name: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, "[]").unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn defaults_are_the_reference_s() {
    let plan = plan(&BenchArgs { storage_capacity_gb: Some(10.0), ..BenchArgs::default() });
    assert_eq!(
        tiers(&plan),
        [(TierRole::Cpu, "memory", Some(32 * GIB)), (TierRole::Storage, "direct", Some(10 * GIB)),]
    );
    assert!(plan.temporary_cache && plan.run.tiers[1].location.is_empty());
    assert_eq!(plan.warnings.len(), 1);
    assert!(plan.warnings[0].starts_with("there is no GPU tier: cuda: no NVIDIA driver; --gpu-tier sim"));
    let run = &plan.run;
    assert_eq!((run.users, run.workers_max, run.seed, run.bytes_per_token), (100, 500, 42, 131_072));
    assert_eq!((run.warmup, run.duration), (Nanos::from_seconds(6.0), Nanos::from_seconds(60.0)));
    assert_eq!((run.reads, run.role, run.time), (Reads::PerBatch(32), Role::Both, Time::Wall));
    assert_eq!(
        (run.queue_limit, run.ageing, run.feed),
        (Some(100_000), Ageing::Never, Feed::Users(Load::Open))
    );
    assert_eq!((run.io_threads, run.io_depth, run.pace.0), (2, 32, Nanos::from_ms(30.0)));
    assert_eq!(run.habits, wavetank_bench::Habits::default());
    assert_eq!((run.max_requests, run.max_concurrent_allocs, run.scaling), (None, None, None));
}

#[test]
fn capacity_is_what_is_free_of_the_directory_unless_given() {
    let folder = TempDir::new().unwrap();
    let cache_dir = Some(folder.path().join("not/yet"));
    let plan = plan(&BenchArgs { storage_capacity_gb: None, cache_dir, ..small() });
    assert!(!plan.temporary_cache && plan.run.tiers[0].location.ends_with("not/yet"));
    assert!(plan.run.tiers[0].capacity_bytes.is_some_and(|bytes| bytes > 0));
}

/// Broken by: ranks that together use more than there is, and a rank's share that is not said.
#[test]
fn ranks_share_what_is_free_and_what_is_asked_is_each_ones() {
    let folder = TempDir::new().unwrap();
    let of = |ranks: Option<u32>, storage_capacity_gb| BenchArgs {
        storage_capacity_gb,
        cache_dir: Some(folder.path().to_owned()),
        rank: ranks.map(|ranks| ranks - 1),
        ranks,
        ..small()
    };
    let bytes = |plan: &BenchPlan| plan.run.tiers[0].capacity_bytes.unwrap() as f64;
    let (alone, shared) = (plan(&of(None, None)), plan(&of(Some(4), None)));
    // Others write to the same drive meanwhile.
    assert!((bytes(&alone) / bytes(&shared) - 4.0).abs() < 0.5);
    assert!(shared.warnings.iter().any(|warning| warning.starts_with("storage holds 1/4 of")));
    let asked = plan(&of(Some(4), Some(1.0)));
    assert_eq!((bytes(&asked) as u64, asked.warnings.len()), (GIB, 0));
    let run = asked.own_run();
    assert_eq!((run.seed, asked.run.seed), (45, 42));
    assert_eq!(PathBuf::from(&run.tiers[0].location), folder.path().canonicalize().unwrap().join("rank_3"));
}

/// Broken by: all ranks of a host on its first GPU, or on one that it does not have.
#[test]
fn ranks_of_a_host_take_a_gpu_each() {
    let ranked = |local: &'static str| Machine {
        gpu: |number| match number {
            0..2 => (with_gpu().gpu)(number),
            _ => (without_gpu().gpu)(number),
        },
        variable: match local {
            "1" => |name| Some(if name.ends_with("SIZE") { "8" } else { "1" }.to_owned()),
            _ => |name| Some(if name.ends_with("SIZE") { "8" } else { "5" }.to_owned()),
        },
        ..with_gpu()
    };
    let device = |machine: Machine, gpu_device| {
        let args = BenchArgs { gpu_mem_gb: Some(1.0), gpu_device, ..small() };
        BenchPlan::on(&machine, &args).unwrap().run.tiers[0].location.clone()
    };
    assert_eq!(device(ranked("1"), None), "1");
    assert_eq!(device(ranked("5"), None), "0", "there is no sixth");
    assert_eq!(device(ranked("1"), Some(0)), "0", "what is typed wins");
}

#[test]
fn a_gpu_is_real_modelled_or_said_to_be_missing() {
    let of = |tier: Option<GpuTier>, gigabytes: Option<f64>| BenchArgs {
        gpu_tier: tier,
        gpu_mem_gb: gigabytes,
        ..small()
    };
    let gpu = |machine, args: &BenchArgs| {
        let plan = BenchPlan::on(&machine, args).unwrap();
        let tier = plan.run.tiers[0].clone();
        (tier.role == TierRole::Gpu).then_some((tier.backend, tier.capacity_bytes.unwrap() / GIB))
    };
    let is = |name: &str, gigabytes| Some((name.to_owned(), gigabytes));
    assert_eq!(gpu(without_gpu(), &of(None, None)), None);
    assert_eq!(gpu(with_gpu(), &of(None, None)), is("cuda", 16));
    assert_eq!(gpu(with_gpu(), &of(None, Some(0.0))), None);
    assert_eq!(gpu(with_gpu(), &of(Some(GpuTier::Off), None)), None);
    assert_eq!(gpu(with_gpu(), &of(None, Some(100.0))), is("cuda", 17), "20 free, 2.4 of them stay so");
    assert_eq!(gpu(with_gpu(), &of(Some(GpuTier::Sim), Some(100.0))), is("gpu_sim", 100));
    let medium = |tier: &str| format!(r#"{tier}={{"name": "queued", "gbps": 8.0}}"#);
    let simulate = ["gpu", "disk"].map(medium).to_vec();
    let simulated = BenchArgs { simulate, storage_capacity_gb: Some(1.0), ..of(None, Some(8.0)) };
    assert_eq!(gpu(with_gpu(), &simulated), is("cuda", 8), "the plan of the real run");
    assert_eq!(gpu(without_gpu(), &simulated), is("gpu_sim", 8));
    let two = BenchArgs { num_gpus: Some(2), tensor_parallel: Some(2), ..of(Some(GpuTier::Sim), None) };
    assert_eq!(gpu(without_gpu(), &two), is("gpu_sim", 32));
    assert_eq!(plan(&two).run.bytes_per_token, 65_536);
    let large = BenchArgs { cpu_mem_gb: Some(65.0), ..small() };
    assert_eq!(plan(&large).warnings, ["--cpu-mem-gb 65 is more than this machine's 64.0 GiB of memory"]);
    let missing = refusal(&of(None, Some(8.0)));
    let says = ["--gpu-mem-gb: cuda: no NVIDIA driver", "hint: --gpu-tier sim models a GPU"];
    assert!(says.iter().all(|words| missing.contains(words)), "{missing}");
    assert!(refusal(&of(Some(GpuTier::Cuda), None)).contains(": --gpu-tier: cuda: no NVIDIA driver"));
}

#[test]
fn everything_wrong_is_said_at_once() {
    let folder = TempDir::new().unwrap();
    let args = BenchArgs {
        model: Some("llama3.1-8".to_owned()),
        num_users: Some(0),
        duration: Some(100_000.0),
        num_gpus: Some(2),
        tensor_parallel: Some(4),
        gpu_mem_gb: Some(-1.0),
        cpu_mem_gb: Some(f64::NAN),
        cache_dir: Some(PathBuf::from("/etc/kv")),
        backend_options: vec!["durability=1".to_owned(), "durable".to_owned()],
        eviction: Some("random".to_owned()),
        persona_mix: Some("chatbot=1,robot=2".to_owned()),
        target_saturation: Some(1.5),
        dataset_path: Some(file(&folder, "dataset.json")),
        trace: Some("x".to_owned()),
        trace_speedup: Some(-1.0),
        max_conversations: Some(0),
        prefill_only: true,
        decode_only: true,
        enable_latency_tracing: true,
        validation_trace: Some(PathBuf::from("missing.json")),
        trials: Some(TrialCount::Number(0)),
        pass_hit_rate: Some(2.0),
        ..BenchArgs::default()
    };
    assert_snapshot!(refusal(&args));
}

#[test]
fn recordings_come_as_they_should() {
    let folder = TempDir::new().unwrap();
    let (dataset, csv) = (file(&folder, "d.json"), file(&folder, "b.csv"));
    let feed = |args: BenchArgs| plan(&args).run.feed;
    let arrivals = |args: BenchArgs| match feed(args) {
        Feed::Recording { arrivals, .. } => arrivals,
        Feed::Users(_) => panic!("a recording"),
    };
    let talks = BenchArgs { dataset_path: Some(dataset), ..small() };
    let burst = BenchArgs {
        use_burst_trace: true,
        burst_trace_path: Some(folder.path().to_str().unwrap().to_owned()),
        ..small()
    };
    assert_eq!(
        feed(talks.clone()),
        Feed::Recording { arrivals: Arrivals::OnAnswer, cycles: None, shuffle: true }
    );
    let rated = BenchArgs { request_rate: Some(5.0), replay_cycles: Some(2), ..talks.clone() };
    let cycled = plan(&rated);
    assert_eq!(cycled.run.warmup, Nanos::ZERO, "a counted run measures everything");
    let every = Arrivals::Every(Nanos::from_ms(200.0));
    assert_eq!(cycled.run.feed, Feed::Recording { arrivals: every, cycles: Some(2), shuffle: true });
    assert_eq!(arrivals(burst.clone()), Arrivals::Recorded { speedup: 1.0 });
    assert_eq!(
        arrivals(BenchArgs { trace_speedup: Some(10.0), ..burst.clone() }),
        Arrivals::Recorded { speedup: 10.0 }
    );
    assert_eq!(arrivals(BenchArgs { trace_speedup: Some(0.0), ..burst.clone() }), Arrivals::OnAnswer);
    let dataset = plan(&burst).dataset.unwrap();
    assert_eq!((dataset.files, dataset.format.as_str()), (vec![csv.clone()], "burstgpt"));
    assert_eq!((dataset.max_conversations, dataset.context_tokens_max), (None, None));
    let dataset = plan(&talks).dataset.unwrap();
    assert_eq!((dataset.max_conversations, dataset.context_tokens_max), (Some(500), Some(16_384)));
    let trace = BenchArgs { trace: Some(csv), trace_format: Some("mooncake".to_owned()), ..small() };
    assert_eq!(arrivals(trace), Arrivals::Recorded { speedup: 1.0 });
}

#[test]
fn a_log_of_operations_moves_no_bytes_and_takes_no_time() {
    let log = BenchArgs {
        io_trace_log: Some(PathBuf::from("log.csv.zst")),
        cpu_mem_gb: Some(4.0),
        ..BenchArgs::default()
    };
    let logged = plan(&log);
    assert_eq!(
        tiers(&logged),
        [
            (TierRole::Gpu, "null", Some(16 * GIB)),
            (TierRole::Cpu, "null", Some(4 * GIB)),
            (TierRole::Storage, "null", None),
        ]
    );
    assert_eq!(
        (logged.run.time, logged.run.warmup, logged.temporary_cache),
        (Time::Virtual, Nanos::ZERO, false)
    );
    let unlimited = BenchArgs { precondition: true, ..log };
    assert!(refusal(&unlimited).contains("--precondition-size-gb: is needed with --precondition"));
}

#[test]
fn other_backends_are_where_they_are() {
    let redis = BenchArgs { backend: Some("redis".to_owned()), ..small() };
    assert!(refusal(&redis).contains("--storage-location: is needed with --backend redis"));
    let address = Some("redis://localhost:6379".to_owned());
    let plan = plan(&BenchArgs { storage_location: address, ..redis });
    assert_eq!(plan.run.tiers[0].location, "redis://localhost:6379");
    assert!(!plan.temporary_cache);
    let durable = BenchArgs { durable: true, ..small() };
    assert_eq!(super::tests::plan(&durable).run.tiers[0].options["durable"], "true");
    let memory = BenchArgs { backend: Some("memory".to_owned()), ..durable };
    assert!(refusal(&memory).contains("--durable: memory does not say"));
    let unknown = BenchArgs { backend: Some("tape".to_owned()), ..small() };
    assert!(refusal(&unknown).contains("--backend: unknown backend \"tape\" — hint: known: buffered, "));
}

#[test]
fn modes_reach_the_plan() {
    let args = BenchArgs {
        decode_only: true,
        num_users: Some(7),
        precondition: true,
        max_requests: Some(100),
        queue_limit: Some(0),
        aging: Some(0.5),
        read_policy: Some(ReadPolicy::Once),
        promotion: Some(Promotion::OnHit),
        write_policy: Some(WritePolicy::Through),
        persona_mix: Some("coding=2,chatbot=1".to_owned()),
        generation_mode: Some(GenerationMode::Deterministic),
        enable_autoscaling: true,
        scale_interval: Some(5.0),
        cpu_mem_gb: Some(1.0),
        ..small()
    };
    let run = plan(&args).run;
    assert_eq!((run.role, run.habits.prepared, run.precondition_bytes), (Role::Decode, 70, Some(2 * GIB)));
    assert_eq!((run.warmup, run.queue_limit, run.max_requests), (Nanos::ZERO, None, Some(100)));
    assert_eq!((run.ageing, run.reads), (Ageing::Every(Nanos::from_ms(500.0)), Reads::Once));
    assert_eq!((run.rules.promotion, run.rules.write), (Promotion::OnHit, WritePolicy::Through));
    assert_eq!((run.time, run.pace.0), (Time::Virtual, Nanos::from_ms(30.0)));
    assert_eq!((run.habits.mix.0, run.precondition_depth), ([1.0, 2.0, 0.0], 8));
    assert_eq!(run.scaling.unwrap().interval, Nanos::from_seconds(5.0));
}

#[test]
fn what_has_no_effect_is_said() {
    let args = BenchArgs {
        num_gpus: Some(3),
        tensor_parallel: Some(3),
        gpu_device: Some(1),
        request_rate: Some(1.0),
        trace_speedup: Some(2.0),
        burst_trace_path: Some("x".to_owned()),
        autoscaler_mode: Some(wavetank_bench::ScaleMode::Qos),
        rag_num_docs: Some(3),
        precondition_size_gb: Some(3.0),
        pass_read_gbps: Some(1.0),
        storage_location: Some("x".to_owned()),
        write_policy: Some(WritePolicy::Through),
        keep_cache: true,
        trials_ci: Some(3.0),
        trials_max: Some(9),
        cooldown: Some(1.0),
        ..small()
    };
    assert_snapshot!(plan(&args).warnings.join("\n"));
}

/// Broken by: options of a device that nobody is told of where media stand for it.
#[test]
fn options_of_devices_have_no_effect_on_media() {
    let medium = r#"disk={"name": "queued", "gbps": 1.0}"#.to_owned();
    let real = BenchArgs { durable: true, backend_options: vec!["engine=threads".to_owned()], ..small() };
    let simulated = BenchArgs { simulate: vec![medium], ..real.clone() };
    let warnings = |args| plan(args).warnings.join("\n");
    for flag in ["--durable", "--backend-option"] {
        let warning = format!("{flag} has no effect: --simulate has media in place of devices");
        assert!(warnings(&simulated).contains(&warning), "{}", warnings(&simulated));
        assert!(!warnings(&real).contains(&warning));
    }
}

/// Broken by: memory that is asked for and comes as entries do, or that a machine is promised to have.
#[test]
fn memory_is_backed_where_that_is_asked_for() {
    let asks = |gigabytes: f64| BenchArgs { cpu_mem_gb: Some(gigabytes), cpu_mem_backed: true, ..small() };
    assert_eq!(plan(&asks(1.0)).run.tiers[0].options, [("backed".to_owned(), "true".to_owned())].into());
    assert!(plan(&BenchArgs { cpu_mem_backed: false, ..asks(1.0) }).run.tiers[0].options.is_empty());
    let refused = refusal(&asks(58.0));
    assert!(
        refused.contains("--cpu-mem-backed: takes 65.2 GiB for --cpu-mem-gb 58, and 60.0 are to be had"),
        "{refused}"
    );
    let media = [r#"cpu={"name": "queued", "gbps": 9.0}"#, r#"disk={"name": "queued", "gbps": 1.0}"#];
    let simulated = BenchArgs { simulate: media.map(str::to_owned).to_vec(), ..asks(58.0) };
    assert_eq!(plan(&simulated).run.tiers[0].options["backed"], "true");
    let warnings = |args: &BenchArgs| plan(args).warnings.join("\n");
    assert!(warnings(&asks(0.0)).contains("--cpu-mem-backed has no effect: --cpu-mem-gb is 0"));
    let logged = BenchArgs { io_trace_log: Some(PathBuf::from("log.csv")), ..asks(58.0) };
    assert!(warnings(&logged).contains("--cpu-mem-backed has no effect: --io-trace-log moves no bytes"));
}

#[test]
fn a_plan_is_read_back_and_checked() {
    let folder = TempDir::new().unwrap();
    let dataset_path = Some(file(&folder, "d.json"));
    let plan = plan(&BenchArgs { dataset_path, enable_autoscaling: true, aging: Some(1.0), ..small() });
    let path = folder.path().join("plan.json");
    let write = |json: &serde_json::Value| std::fs::write(&path, json.to_string()).unwrap();
    let mut json = serde_json::to_value(&plan).unwrap();
    write(&serde_json::json!({ "plan": json }));
    assert_eq!(BenchPlan::read(&path).unwrap(), plan);
    json["run"]["users"] = 0.into();
    json["run"]["tiers"][0]["backend"] = "tape".into();
    json["dataset"] = serde_json::Value::Null;
    write(&json);
    let refusal = BenchPlan::read(&path).unwrap_err().to_string();
    assert_snapshot!(refusal.replace(path.to_str().unwrap(), "F"));
    json["colour"] = 1.into();
    write(&json);
    assert!(BenchPlan::read(&path).unwrap_err().to_string().contains("unknown field `colour`"));
}
