//! From what was typed to the tiers of a plan.

use serde_json::{Map, json};
use wavetank_sim::{TierLoad, TierScope, TierUnit, TierWrite};

use super::*;
use crate::profile::tier::{file_text, testing};
use crate::{Plan, ReplayArgs, json_arg};

const KV: &str = r#"{"kv_bytes_per_token": 1000}"#;

fn args(engine: &str, tiers: &[&str]) -> ReplayArgs {
    ReplayArgs {
        input_tokens: Some(100),
        output_tokens: Some(1),
        request_count: Some(1),
        extra_engine_args: Some(engine.to_owned()),
        tiers: tiers.iter().map(|text| json!(text)).collect(),
        ..ReplayArgs::default()
    }
}

fn planned(args: &ReplayArgs) -> Vec<TierConfig> {
    Plan::of(args).unwrap().simulation.engine.tiers
}

fn refused(args: &ReplayArgs) -> String {
    Plan::of(args).expect_err("refused").to_string()
}

/// Broken by: a part that does not reach the plan, or another default.
#[test]
fn flags_become_tiers() {
    let found = planned(&args(KV, &["cpu=64GiB:32GB/s", "disk=2TiB:100us+10GB/s,shared,write=through"]));
    let expected = json!([
        {
            "name": "cpu", "capacity_bytes": 64u64 << 30, "medium": { "name": "queued", "gbps": 32.0 },
            "scope": "worker", "write": "through", "load": "delay", "unit": "batch",
        },
        {
            "name": "disk", "capacity_bytes": 2u64 << 40,
            "medium": { "name": "queued", "latency_us": 100.0, "gbps": 10.0 },
            "scope": "shared", "write": "through", "load": "delay", "unit": "object",
        },
    ]);
    assert_eq!(json!(found), expected);
    let plain = planned(&args(KV, &["cpu=1GiB:1GB/s", "disk=1TiB:1GB/s"]));
    assert_eq!((plain[1].write, plain[1].load), (TierWrite::Evict, TierLoad::Delay));
}

/// Broken by: another engine's way to load, or one that a shared tier cannot have.
#[test]
fn sglang_overlaps_its_first_tier() {
    let sglang = r#"{"engine_type": "sglang", "kv_bytes_per_token": 1000}"#;
    let loads = |tiers: &[&str]| -> Vec<TierLoad> {
        planned(&args(sglang, tiers)).iter().map(|tier| tier.load).collect()
    };
    assert_eq!(loads(&["a=1G:1GB/s", "b=1G:1GB/s"]), [TierLoad::Overlap, TierLoad::Delay]);
    assert_eq!(loads(&["a=1G:1GB/s,shared"]), [TierLoad::Delay]);
    assert_eq!(loads(&["a=1G:1GB/s,load=delay"]), [TierLoad::Delay]);
    let shared = refused(&args(sglang, &["a=1G:1GB/s,shared,load=overlap"]));
    assert!(shared.starts_with("--tier a: loads from a shared tier cannot overlap"), "{shared}");
}

/// Broken by: a way to write a medium that means something else.
#[test]
fn a_medium_is_a_speed_a_row_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let profile = testing::profile();
    std::fs::write(at("p.toml"), file_text(&profile, std::path::Path::new("p.toml")).unwrap()).unwrap();
    std::fs::write(at("m.toml"), "name = \"constant\"\nlatency_us = 5\ngbps = 2.5\n").unwrap();
    std::fs::write(at("n.toml"), "name = \"measured\"\nprofile = \"p.toml\"\n").unwrap();
    let queued = |parameters: Value| (json!("queued"), parameters);
    let whole = (json!("measured"), json!({ "profile": profile }));
    for (typed, (name, parameters)) in [
        ("500MB/s".to_owned(), queued(json!({ "gbps": 0.5 }))),
        ("0.1ms+1GiB/s".to_owned(), queued(json!({ "gbps": 1.073741824, "latency_us": 100.0 }))),
        ("queued:gbps=3;order=fifo".to_owned(), queued(json!({ "gbps": 3, "order": "fifo" }))),
        (
            "constant:latency_us=100+gbps=10".to_owned(),
            (json!("constant"), json!({ "latency_us": 100, "gbps": 10 })),
        ),
        (at("m.toml"), (json!("constant"), json!({ "latency_us": 5, "gbps": 2.5 }))),
        (at("p.toml"), whole.clone()),
        (at("n.toml"), whole.clone()),
        (format!("measured:profile={}", at("p.toml")), whole),
    ] {
        let found = medium::of_text(&typed).unwrap();
        let expected: Map<String, Value> = parameters.as_object().unwrap().clone();
        assert_eq!((json!(found.name), found.parameters), (name, expected), "{typed}");
    }
}

#[test]
fn what_is_no_medium_is_refused_with_what_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("broken.toml"), "name = ").unwrap();
    std::fs::write(at("other.toml"), "colour = 1\n").unwrap();
    for (typed, part) in [
        ("nowhere.toml".to_owned(), "\"nowhere.toml\" is no medium and no file\nhint: a medium is a speed"),
        ("fast".to_owned(), "\"fast\" is no medium and no file"),
        ("32GB".to_owned(), "\"32GB\" is no medium"),
        ("0GB/s".to_owned(), "\"0GB/s\" is no medium"),
        ("-1us+1GB/s".to_owned(), "\"-1us+1GB/s\" is no medium"),
        ("queud:gbps=3".to_owned(), "\"queud:gbps=3\" is no medium and no file\nhint: did you mean queued?"),
        ("queued".to_owned(), "medium \"queued\": missing field `gbps`"),
        ("queued:gbps=0".to_owned(), "medium \"queued\": a bandwidth must be above 0 GB/s"),
        ("queued:gbps".to_owned(), "\"gbps\" of medium \"queued\" is no KEY=VALUE"),
        ("queued:gbps=1+gbps=2".to_owned(), "\"gbps\" of medium \"queued\" is given twice"),
        ("queued:gbps=1+speed=2".to_owned(), "medium \"queued\": unknown field `speed`"),
        ("measured:profile=nowhere.toml".to_owned(), "nowhere.toml: cannot open"),
        (at("broken.toml"), "broken.toml:1: not a profile of a tier"),
        (at("other.toml"), "other.toml: neither a profile of a tier nor a medium"),
    ] {
        let message = medium::of_text(&typed).expect_err(&typed).to_string();
        assert!(message.contains(part), "{typed}: {message}");
        let whole = refused(&args(KV, &[&format!("cpu=1G:{typed}")]));
        assert!(whole.starts_with(&format!("--tier cpu=1G:{typed}: no tier: \"medium\": ")), "{whole}");
    }
}

/// Broken by: a plan that has what no worker can do, or a message without its flag.
#[test]
fn what_cannot_be_simulated_is_refused() {
    let cpu = "cpu=1GiB:1GB/s";
    let online = ReplayArgs { replay_mode: Some("online".to_owned()), ..args(KV, &[cpu]) };
    let pools = |tiers: &str| ReplayArgs {
        extra_engine_args: None,
        prefill_engine_args: Some(r#"{"worker_type":"prefill","kv_bytes_per_token":9}"#.to_owned()),
        decode_engine_args: Some(format!(r#"{{"worker_type":"decode","tiers":[{tiers}]}}"#)),
        router_mode: Some("kv_router".to_owned()),
        ..args("", &[])
    };
    let none = args("{}", &[cpu]);
    for (args, part) in [
        (
            &none,
            "--tier: tiers need the bytes of KV per token\nhint: give \"kv_bytes_per_token\", or \"model\"",
        ),
        (&online, "--tier: live workers have no tiers"),
        (&pools("\"cpu=1GiB:1GB/s\""), "--decode-engine-args: decode workers have no tiers"),
        (&args(KV, &[cpu, cpu]), "--tier: two tiers are called \"cpu\""),
        (&args(KV, &["gpu=1G:1GB/s"]), "--tier: \"gpu\" is no name of a tier"),
        (&args(KV, &["a b=1G:1GB/s"]), "--tier: \"a b\" is no name of a tier"),
        (&args(KV, &["=1G:1GB/s"]), "--tier: \"\" is no name of a tier"),
        (&args(KV, &["cpu=1KB:1GB/s"]), "--tier cpu: 1000 bytes hold no block of 64000 bytes"),
        (
            &args(KV, &["cpu=64:1GB/s"]),
            "--tier cpu=64:1GB/s: no tier: \"capacity\": must be a number and a unit",
        ),
        (&args(KV, &[cpu; 9]), "--tier: 9 tiers: 8 are the most"),
        (
            &args(r#"{"kv_bytes_per_token": 9, "enable_prefix_caching": false}"#, &[cpu]),
            "--tier: nothing is found without prefix caching",
        ),
    ] {
        let message = refused(args);
        assert!(message.starts_with(part), "{part}: {message}");
    }
    assert_eq!(planned(&ReplayArgs { tiers: vec![json!(cpu)], ..pools("") }).len(), 1);
    let ahead = refused(&args(r#"{"kv_bytes_per_token": 9, "async_scheduling": true}"#, &[cpu]));
    assert!(ahead.starts_with("--tier: tiers are not simulated with passes"), "{ahead}");
    let behind = refused(&args(KV, &["cpu=1GiB:1GB/s,shared", "disk=1GiB:1GB/s"]));
    assert!(behind.starts_with("--tier: tier \"disk\" of each worker cannot be behind one"), "{behind}");
    let measured =
        ReplayArgs { timing: Some("grid:llama31-8b-h200-tp1-bf16".to_owned()), ..args(KV, &[cpu]) };
    let plan = Plan::of(&measured).unwrap();
    assert!(!plan.simulation.engine.async_scheduling);
    assert!(plan.warnings.iter().any(|note| note.contains("scheduled ahead")), "{:?}", plan.warnings);
}

/// Broken by: tables that mean something else than texts, or a wrong key that passes.
#[test]
fn tables_say_what_texts_say() {
    let text = planned(&args(KV, &["cpu=1GiB:32GB/s", "disk=2TiB:1ms+1GB/s,shared"]));
    let tables = json!([
        "cpu=1GiB:32GB/s",
        { "name": "disk", "capacity": "2TiB", "shared": true,
          "medium": { "name": "queued", "latency_us": 1000.0, "gbps": 1.0 } },
    ]);
    let engine = json!({ "kv_bytes_per_token": 1000, "tiers": tables }).to_string();
    assert_eq!(planned(&args(&engine, &[])), text);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiers.toml").display().to_string();
    let toml = "[[tier]]\nname = 'cpu'\ncapacity = '1GiB'\nmedium = '32GB/s'\n[[tier]]\nname = 'disk'\n\
                capacity = '2TiB'\nshared = true\n\
                medium = { name = 'queued', latency_us = 1000.0, gbps = 1.0 }\n";
    std::fs::write(&path, toml).unwrap();
    assert_eq!(planned(&args(KV, &[&format!("@{path}")])), text);
    std::fs::write(&path, toml.replace("shared", "share")).unwrap();
    let wrong = refused(&args(KV, &[&format!("@{path}")]));
    assert!(
        wrong.contains("tiers.toml: tier 2: no tier: unknown key \"share\"\nhint: keys of a tier: capacity")
    );
    std::fs::write(&path, "[tier]\n").unwrap();
    assert!(refused(&args(KV, &[&format!("@{path}")])).contains("there is no [[tier]]"));
    let open = refused(&args(r#"{"tiers": [{}]}"#, &[]));
    assert!(
        open.contains("--extra-engine-args: \"tiers\"[0]: no tier") && open.contains("\"medium\" is missing")
    );
    let both = refused(&args(&engine, &["cpu=1GiB:1GB/s"]));
    assert!(both.starts_with("--tier: cannot be combined with \"tiers\""), "{both}");
}

fn offloaded(keys: Value) -> Vec<TierConfig> {
    let mut object = json!({ "kv_bytes_per_token": 1000, "block_size": 16, "num_g2_blocks": 100 });
    keys.as_object().unwrap().iter().for_each(|(key, value)| object[key] = value.clone());
    planned(&args(&object.to_string(), &[]))
}

/// Broken by: a key of the reference that changes nothing, or is another tier.
#[test]
fn the_keys_of_the_reference_are_tiers() {
    let host = offloaded(json!({}));
    let expected = json!([{
        "name": "g2", "capacity_bytes": 1_600_000, "scope": "worker", "write": "through", "load": "delay",
        "unit": "batch", "medium": { "name": "queued", "gbps": 32.0, "order": "fifo" },
    }]);
    assert_eq!(json!(host), expected);
    let all = json!({ "num_g3_blocks": 500, "enable_g4_storage": true });
    let [_, disk, objects] = &offloaded(all.clone())[..] else { panic!("three tiers") };
    assert_eq!((disk.name.as_str(), disk.capacity_bytes, disk.write), ("g3", 8_000_000, TierWrite::Evict));
    let speed = json!({ "name": "queued", "latency_us": 100.0, "gbps": 10.0, "order": "share" });
    assert_eq!(json!(disk.medium), speed);
    assert_eq!((objects.scope, objects.unit), (TierScope::Shared, TierUnit::Object));
    for (key, value) in [
        ("num_g2_blocks", json!(7)),
        ("num_g3_blocks", json!(7)),
        ("enable_g4_storage", json!(false)),
        ("bandwidth_g1_to_g2_gbps", json!(7)),
        ("bandwidth_g2_to_g1_gbps", json!(0)),
        ("bandwidth_g2_to_g3_gbps", json!(7)),
        ("bandwidth_g3_to_g2_gbps", json!(-1)),
        ("bandwidth_g2_to_g4_gbps", json!(7)),
        ("bandwidth_g4_to_g2_gbps", json!(7)),
        ("offload_batch_size", json!(8)),
    ] {
        let mut changed = all.clone();
        changed[key] = value;
        assert_ne!(offloaded(changed), offloaded(all.clone()), "{key}");
    }
}

#[test]
fn keys_of_the_reference_that_do_not_fit_are_said() {
    let warned = |json: &str| {
        let mut notes = Vec::new();
        let typed = json_arg::read("--extra-engine-args", Some(json)).unwrap();
        of(&typed, &[], &EngineConfig::default(), &mut notes).unwrap();
        notes.join("\n")
    };
    assert!(warned(r#"{"bandwidth_g3_to_g2_gbps": 3}"#).contains("there is no \"num_g3_blocks\""));
    assert!(warned(r#"{"offload_batch_size": 3}"#).contains("\"offload_batch_size\" has no effect"));
    let alone = refused(&args(r#"{"kv_bytes_per_token": 9, "num_g3_blocks": 5}"#, &[]));
    assert!(alone.contains("\"num_g3_blocks\" needs \"num_g2_blocks\""), "{alone}");
    let bytes = refused(&args(r#"{"num_g2_blocks": 5}"#, &[]));
    assert!(bytes.contains("tiers need the bytes of KV per token"), "{bytes}");
    let both = refused(&args(r#"{"num_g2_blocks": 5}"#, &["cpu=1G:1GB/s"]));
    assert!(both.starts_with("--tier: cannot be combined with \"num_g2_blocks\""), "{both}");
    let text = refused(&args(r#"{"num_g2_blocks": "5"}"#, &[]));
    assert!(text.contains("\"num_g2_blocks\": must be a whole number"), "{text}");
}

/// Broken by: a note on bytes that are used, or a plan that needs its files again.
#[test]
fn a_plan_with_tiers_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    std::fs::write(&path, file_text(&testing::profile(), &path).unwrap()).unwrap();
    let args = args(KV, &[&format!("disk=1TiB:{}", path.display())]);
    assert_eq!(args.files().collect::<Vec<_>>(), [path.as_path()]);
    let plan = Plan::of(&args).unwrap();
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    assert!(plan.has_chance());
    drop(folder);
    let read: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(read, plan);
    read.check().unwrap();
}

/// Broken by: a file that is looked for elsewhere than beside the spec.
#[test]
fn files_of_tiers_can_be_elsewhere() {
    let within = |path: &str| format!("/spec/{path}");
    for (name, value, expected) in [
        ("tier", json!("a=1G:p.toml,shared"), json!("/spec/p.toml")),
        ("tier", json!(["a=1G:measured:profile=p.toml"]), json!("measured:profile=/spec/p.toml")),
        ("tier", json!([{ "medium": "p.toml" }]), json!("/spec/p.toml")),
        ("tier", json!([{ "medium": "3GB/s" }]), json!("3GB/s")),
        ("extra_engine_args", json!({ "tiers": [{ "medium": "p.toml" }] }), json!("/spec/p.toml")),
        ("extra_engine_args.tiers", json!([{ "medium": "p.toml" }]), json!("/spec/p.toml")),
    ] {
        let mut found = relocated(name, &value, &within);
        if let Some(tiers) = found.get_mut("tiers") {
            found = tiers.take();
        }
        let tier = if found.is_array() { found[0].clone() } else { found };
        assert_eq!(tier["medium"], expected, "{name} {value}");
    }
    assert_eq!(relocated("tier.a.medium", &json!("p.toml"), &within), json!("/spec/p.toml"));
    assert_eq!(relocated("tier", &json!("@t.toml"), &within), json!("@/spec/t.toml"));
    assert_eq!(relocated("timing", &json!("p.toml"), &within), json!("p.toml"));
}
