//! Which flags go together, and what is said when they do not.

use wavetank_sim::EngineConfig;

use super::*;

fn trace() -> ReplayArgs {
    ReplayArgs { trace_files: vec!["mooncake:t.jsonl".to_owned()], ..ReplayArgs::default() }
}

fn synthetic() -> ReplayArgs {
    ReplayArgs {
        input_tokens: Some(100),
        output_tokens: Some(10),
        request_count: Some(5),
        ..ReplayArgs::default()
    }
}

fn refused(args: ReplayArgs) -> String {
    Plan::of(&args).expect_err("refused").to_string()
}

fn warned(args: ReplayArgs) -> Vec<String> {
    Plan::of(&args).expect("accepted").warnings
}

#[test]
fn defaults_are_the_references() {
    let plan = Plan::of(&trace()).unwrap();
    assert_eq!(plan.simulation.engine, EngineConfig::default());
    assert_eq!((plan.simulation.num_workers, plan.simulation.router_mode.as_str()), (1, "round_robin"));
    assert_eq!((plan.simulation.seed, plan.simulation.load), (42, Load::Schedule));
    assert!(plan.warnings.is_empty());
    let WorkloadPlan::Synthetic(load) = Plan::of(&synthetic()).unwrap().workload else { panic!("synthetic") };
    assert_eq!(load.arrivals, Process::Constant { interval_ms: 1.0 });
}

#[test]
fn a_plan_survives_its_json() {
    for args in [trace(), ReplayArgs { request_rate: Some(2.5), ..synthetic() }] {
        let plan = Plan::of(&args).unwrap();
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }
}

#[test]
fn there_is_one_workload() {
    assert!(refused(ReplayArgs::default()).contains("nothing to replay"));
    let both = ReplayArgs { trace_files: trace().trace_files, ..synthetic() };
    assert!(refused(both).contains("--input-tokens: belongs to synthetic load"));
    let seeded = ReplayArgs { arrival_seed: Some(1), ..trace() };
    assert!(refused(seeded).contains("--arrival-seed: belongs to synthetic load"));
    let two = vec!["mooncake:a".into(), "burstgpt:b".into()];
    let two = ReplayArgs { trace_files: two, ..ReplayArgs::default() };
    assert!(refused(two).contains("burstgpt:b: is burstgpt, and mooncake was named before"));
    let missing = ReplayArgs { output_tokens: None, ..synthetic() };
    assert!(refused(missing).contains("--output-tokens: is missing"));
}

#[test]
fn zero_and_nonsense_are_refused_by_name() {
    let cases: Vec<(&str, ReplayArgs)> = vec![
        ("--input-tokens", ReplayArgs { input_tokens: Some(0), ..synthetic() }),
        ("--output-tokens", ReplayArgs { output_tokens: Some(0), ..synthetic() }),
        ("--request-count", ReplayArgs { request_count: Some(0), ..synthetic() }),
        ("--turns-per-session", ReplayArgs { turns_per_session: Some(0), ..synthetic() }),
        ("--shared-prefix-ratio", ReplayArgs { shared_prefix_ratio: Some(1.5), ..synthetic() }),
        ("--inter-turn-delay-ms", ReplayArgs { inter_turn_delay_ms: Some(f64::NAN), ..synthetic() }),
        ("--arrival-interval-ms", ReplayArgs { arrival_interval_ms: Some(-1.0), ..synthetic() }),
        ("--request-rate", ReplayArgs { request_rate: Some(0.0), ..synthetic() }),
        ("--num-workers", ReplayArgs { num_workers: Some(0), ..trace() }),
        ("--replay-concurrency", ReplayArgs { replay_concurrency: Some(0), ..trace() }),
        ("--trace-block-size", ReplayArgs { trace_block_size: Some(0), ..trace() }),
        ("--arrival-speedup-ratio", ReplayArgs { arrival_speedup_ratio: Some(0.0), ..trace() }),
        ("--max-sim-time-seconds", ReplayArgs { max_sim_time_seconds: Some(-2.0), ..trace() }),
        ("--sla-itl-ms", ReplayArgs { sla_itl_ms: Some(f64::INFINITY), ..trace() }),
    ];
    for (flag, args) in cases {
        let message = refused(args);
        assert!(message.starts_with(&format!("{flag}: must be")), "{flag}: {message}");
    }
}

#[test]
fn foreign_and_later_parts_are_refused() {
    let text = |s: &str| Some(s.to_owned());
    let cases: Vec<(&str, ReplayArgs)> = vec![
        (
            "--router-policy-config: is not supported",
            ReplayArgs { router_policy_config: Some("x".into()), ..trace() },
        ),
        ("--model-name: is not supported", ReplayArgs { model_name: text("m"), ..trace() }),
        ("--planner-config: is not supported", ReplayArgs { planner_config: text("{}"), ..trace() }),
        ("--replay-mode: unknown mode", ReplayArgs { replay_mode: text("onlin"), ..trace() }),
        ("kv_router needs more than one worker", ReplayArgs { router_mode: text("kv_router"), ..trace() }),
        ("known: kv_router, least_loaded", ReplayArgs { router_mode: text("sticky"), ..trace() }),
        ("unknown trace format \"csv\"", ReplayArgs { trace_format: text("csv"), ..trace() }),
        ("come as a pair", ReplayArgs { prefill_engine_args: text("{}"), ..trace() }),
        (
            "--prefill-engine-args: \"worker_type\" must be",
            ReplayArgs { prefill_engine_args: text("{}"), decode_engine_args: text("{}"), ..trace() },
        ),
        (
            "cannot be combined with --extra-engine-args",
            ReplayArgs { decode_engine_args: text("{}"), extra_engine_args: text("{}"), ..trace() },
        ),
        ("--num-prefill-workers: belongs to", ReplayArgs { num_prefill_workers: Some(2), ..trace() }),
        ("--aic-system: belongs to", ReplayArgs { aic: vec![("--aic-system", "h200".into())], ..trace() }),
        ("--trace-num-prefix-groups: belongs", ReplayArgs { trace_num_prefix_groups: Some(2), ..trace() }),
        ("--router-config: not a JSON object", ReplayArgs { router_config: text("{"), ..trace() }),
        ("--extra-engine-args: not a JSON object", ReplayArgs { extra_engine_args: text("[]"), ..trace() }),
        (
            "--concurrency-unit: needs",
            ReplayArgs { concurrency_unit: Some(ConcurrencyUnit::Sessions), ..trace() },
        ),
        (
            "--request-rate: cannot be combined",
            ReplayArgs { request_rate: Some(1.0), arrival_interval_ms: Some(1.0), ..synthetic() },
        ),
        (
            "--request-rate: cannot be combined with --replay-concurrency",
            ReplayArgs { request_rate: Some(1.0), replay_concurrency: Some(1), ..synthetic() },
        ),
    ];
    for (expected, args) in cases {
        let message = refused(args);
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn the_aic_load_model_and_its_flags_need_each_other() {
    let config = Some(r#"{"router_prefill_load_model":"aic"}"#.to_owned());
    let routed = ReplayArgs { router_mode: Some("kv_router".into()), num_workers: Some(2), ..trace() };
    let asked = ReplayArgs { router_config: config, ..routed.clone() };
    assert!(refused(asked.clone()).contains("--aic-backend: is missing"));
    let flags = ["--aic-backend", "--aic-system", "--aic-model-path"].map(|flag| (flag, "x".to_owned()));
    let complete = ReplayArgs { aic: flags.to_vec(), ..asked.clone() };
    assert!(refused(complete).contains("no built-in profile of aic_backend x"));
    let known =
        [("--aic-backend", "vllm"), ("--aic-system", "h200_sxm"), ("--aic-model-path", "Llama-3.1-8B")];
    let known = known.map(|(flag, value)| (flag, value.to_owned())).to_vec();
    let plan = Plan::of(&ReplayArgs { aic: known, ..asked }).unwrap();
    let model = plan.simulation.router_config.router_prefill_load_model.unwrap();
    assert_eq!(model.parameters["profile"], "llama31-8b-h200-tp1-bf16");
    assert!(refused(ReplayArgs { aic: flags.to_vec(), ..routed }).contains("--aic-backend: belongs to"));
}

#[test]
fn one_timing_model_for_every_pool() {
    let timed = ReplayArgs { timing: Some("fixed:prefill_ms=2,decode_ms=1".into()), ..trace() };
    assert_eq!(Plan::of(&timed).unwrap().simulation.engine.timing.name, "fixed");
    let twice = ReplayArgs { extra_engine_args: Some(r#"{"timing":"polynomial"}"#.into()), ..timed };
    assert!(refused(twice).contains("--timing: cannot be combined with \"timing\""));
}

/// Broken by: flags that do not reach the plan, or that have no effect and nobody says so.
#[test]
fn what_sessions_share_is_chosen_where_the_format_leaves_it_open() {
    let agents = |ratio, groups| ReplayArgs {
        trace_files: vec!["applied-compute-agentic:t.jsonl".into()],
        replay_concurrency: Some(1),
        trace_shared_prefix_ratio: ratio,
        trace_num_prefix_groups: groups,
        ..trace()
    };
    let plan = Plan::of(&agents(Some(0.5), Some(2))).unwrap();
    let WorkloadPlan::Trace { shared_prefix, .. } = &plan.workload else { panic!("a trace") };
    assert_eq!((shared_prefix.ratio, shared_prefix.groups), (0.5, 2));
    assert!(plan.warnings.is_empty());
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(serde_json::from_value::<Plan>(json).unwrap(), plan);
    assert!(warned(agents(Some(0.5), None))[0].contains("without --trace-num-prefix-groups"));
    assert!(warned(agents(None, Some(2)))[0].contains("without --trace-shared-prefix-ratio"));
    assert!(refused(agents(Some(1.5), Some(2))).contains("--trace-shared-prefix-ratio: "));
}

#[test]
fn what_has_no_effect_is_noted() {
    let note = |args| warned(args).join("\n");
    assert!(
        note(ReplayArgs { router_config: Some("{}".into()), ..trace() }).contains("--router-config has no")
    );
    let hurried = ReplayArgs { replay_concurrency: Some(2), arrival_speedup_ratio: Some(2.0), ..trace() };
    assert!(note(hurried).contains("--arrival-speedup-ratio has no effect"));
    assert!(
        note(ReplayArgs { shared_prefix_ratio: Some(0.5), ..synthetic() }).contains("--num-prefix-groups")
    );
    assert!(note(ReplayArgs { num_prefix_groups: Some(2), ..synthetic() }).contains("--shared-prefix-ratio"));
    assert!(note(ReplayArgs { inter_turn_delay_ms: Some(2.0), ..synthetic() }).contains("one turn"));
    assert!(note(ReplayArgs { arrival_seed: Some(2), ..synthetic() }).contains("not random"));
    assert!(note(ReplayArgs { trace_block_size: Some(2), ..synthetic() }).contains("no trace"));
    let both = ReplayArgs { arrival_interval_ms: Some(2.0), replay_concurrency: Some(2), ..synthetic() };
    assert!(note(both).contains("--arrival-interval-ms has no effect"));
}

#[test]
fn a_damaged_plan_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let mut json = serde_json::to_value(Plan::of(&trace()).unwrap()).unwrap();
    json["simulation"]["engine"]["block_size"] = Value::from(0);
    std::fs::write(&path, serde_json::json!({ "plan": json }).to_string()).unwrap();
    let error = Plan::read(&path).unwrap_err().to_string();
    assert!(error.contains("plan.json") && error.contains("block_size"), "{error}");
    std::fs::write(&path, "{\"x\": 1}").unwrap();
    assert!(Plan::read(&path).unwrap_err().to_string().contains("not a plan"));
}
