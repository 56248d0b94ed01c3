//! What is tried with a plan, by the plans that come of it.

use serde_json::{Value, json};
use wavetank::ReplayArgs;
use wavetank_sim::media::MediumConfig;
use wavetank_sim::{TierConfig, TierScope};

use super::*;

fn plan(args: ReplayArgs) -> Plan {
    let (input_tokens, output_tokens, request_count) = (Some(100), Some(10), Some(4));
    Plan::of(&ReplayArgs { input_tokens, output_tokens, request_count, ..args }).unwrap()
}

fn words(plan: &Plan) -> Vec<String> {
    perturbations(plan).into_iter().map(|it| it.what).collect()
}

fn tier(name: &str, gib: u64, scope: TierScope, medium: &str, parameters: Value) -> TierConfig {
    let Value::Object(parameters) = parameters else { panic!("parameters are an object") };
    TierConfig {
        name: name.to_owned(),
        capacity_bytes: gib << 30,
        medium: MediumConfig { name: medium.to_owned(), parameters },
        scope,
        write: Default::default(),
        load: Default::default(),
        unit: Default::default(),
    }
}

#[test]
fn a_fleet_has_memory_and_workers() {
    let one = plan(ReplayArgs {
        extra_engine_args: Some(r#"{"num_gpu_blocks": 1000}"#.to_owned()),
        ..ReplayArgs::default()
    });
    let memory = ["250 blocks more GPU memory per worker", "250 blocks less GPU memory per worker"];
    assert_eq!(words(&one), [memory[0], memory[1], "one worker more"]);
    let tried = perturbations(&one);
    let blocks = tried.iter().map(|it| it.plan.simulation.engine.num_gpu_blocks);
    assert_eq!(blocks.collect::<Vec<_>>(), [1250, 750, 1000]);
    let mut two = one.clone();
    two.simulation.num_workers = 2;
    two.simulation.engine.transfer.kv_bytes_per_token = 1 << 17;
    assert_eq!(
        words(&two)[0],
        "1.95 GiB more GPU memory per worker",
        "1000/4 blocks of 64 tokens of 128 KiB"
    );
    assert_eq!(words(&two)[2..], ["one worker more", "one worker fewer"]);
}

#[test]
fn pools_of_a_disaggregated_fleet_are_tried_each() {
    let prefill = r#"{"worker_type": "prefill", "kv_bytes_per_token": 1024, "kv_transfer_bandwidth": 4}"#;
    let split = plan(ReplayArgs {
        prefill_engine_args: Some(prefill.to_owned()),
        decode_engine_args: Some(r#"{"worker_type": "decode"}"#.to_owned()),
        router_mode: Some("kv_router".to_owned()),
        num_decode_workers: Some(2),
        kv_link_gbps: Some(10.0),
        ..ReplayArgs::default()
    });
    let tried = perturbations(&split);
    let named = |what: &str| tried.iter().find(|it| it.what == what).unwrap_or_else(|| panic!("{what}"));
    let links = named("KV links twice as fast");
    assert_eq!((links.amount, links.unit), (4.0, "GB/s"));
    assert_eq!(links.plan.simulation.engine.transfer.kv_transfer_bandwidth, 8.0);
    let shared = links.plan.simulation.decode.as_ref().unwrap().link.shared.unwrap();
    assert_eq!(shared.gigabytes_per_second, 20.0);
    let decode = &named("one decode worker fewer").plan.simulation;
    assert_eq!((decode.num_workers, decode.decode.as_ref().unwrap().num_workers), (1, 1));
    assert_eq!(named("one prefill worker more").plan.simulation.num_workers, 2);
    assert!(!words(&split).contains(&"one prefill worker fewer".to_owned()));
    assert!(tried.iter().all(|it| it.plan.check().is_ok()));
}

/// Broken by: a tier of the other pool that is changed, or a capacity that speed changes.
#[test]
fn tiers_are_larger_and_faster() {
    let mut plan = plan(ReplayArgs::default());
    plan.simulation.engine.tiers = vec![
        tier("cpu", 64, TierScope::Worker, "constant", json!({ "gbps": 25.0, "latency_us": 10.0 })),
        tier("disk", 2048, TierScope::Shared, "queued", json!({ "gbps": 3.0, "read_gbps": 6.0 })),
    ];
    let tried = perturbations(&plan);
    let of = |what: &str| {
        let found = tried.iter().find(|it| it.what == what).unwrap_or_else(|| panic!("{what}"));
        &found.plan.simulation.engine.tiers
    };
    assert_eq!(of("64.00 GiB more cpu per worker")[0].capacity_bytes, 128 << 30);
    assert_eq!(of("32.00 GiB less cpu per worker")[0].capacity_bytes, 32 << 30);
    assert_eq!(of("2,048.00 GiB more disk")[1].capacity_bytes, 4096 << 30);
    assert_eq!(of("2,048.00 GiB more disk")[0], plan.simulation.engine.tiers[0]);
    let fast = &of("cpu twice as fast")[0];
    assert_eq!(Value::Object(fast.medium.parameters.clone()), json!({ "gbps": 50.0, "latency_us": 10.0 }));
    assert_eq!(fast.capacity_bytes, 64 << 30);
    let slow = &of("disk half as fast")[1];
    assert_eq!(Value::Object(slow.medium.parameters.clone()), json!({ "gbps": 1.5, "read_gbps": 3.0 }));
    let cpu = tried.iter().filter(|it| it.tier.as_deref() == Some("cpu"));
    assert_eq!(cpu.count(), 4);
}

#[test]
fn names_are_one_of_a_kind() {
    let names: Vec<&str> = ALL.iter().map(|row| row.name).collect();
    assert!(names.is_sorted());
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}
