//! Sweeps as a library: rows are what single replays report, whatever runs them and in how many pieces;
//! searches find what trying everything finds.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use wavetank::{Keep, Observer, Plan, ReplayArgs, Unwatched};
use wavetank_study::sweep::{
    Local, Onlooker, Setting, Shard, Spec, Start, Sweep, Swept, merge, metrics, write_output, write_report,
};

/// The repository's examples.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

#[derive(Default)]
struct Count(AtomicUsize);

impl Onlooker for Count {
    fn expect(&self, _points: usize, _kept: usize) {}
    fn done(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn spec(text: &str) -> Spec {
    Spec::parse(text, Path::new(EXAMPLES), "s.toml").expect("a spec")
}

fn swept(spec: &Spec, shard: Shard, threads: usize, store: Option<(&Path, Start)>) -> Swept {
    let sweep = Sweep::prepare(spec, shard, threads).expect("points");
    let (stop, onlooker) = (AtomicBool::new(false), Count::default());
    let runner = &Local::default();
    sweep.run(&Setting { threads, stop: &stop, runner, store, onlooker: &onlooker }).expect("rows")
}

fn whole(spec: &Spec, threads: usize) -> Swept {
    swept(spec, Shard::WHOLE, threads, None)
}

fn written(swept: &Swept, name: &str) -> String {
    let mut bytes = Vec::new();
    write_output(swept, Path::new(name), &mut bytes).expect("a format");
    String::from_utf8(bytes).expect("text")
}

fn report(swept: &Swept) -> Value {
    serde_json::from_str(&written(swept, "x.json")).expect("JSON")
}

const GRID: &str = r#"
[base]
trace = "conversation.jsonl"
trace_block_size = 512
extra_engine_args = { block_size = 64 }
[axes]
router_mode = ["round_robin", "kv_router"]
num-workers = [2, 3]
"extra_engine_args.num_gpu_blocks" = { from = 512, to = 2048, steps = 2, scale = "log" }
arrival_speedup_ratio = [1.0, 1.7]
[pareto]
minimize = ["p99_ttft_ms", "gpu_hours"]
[sla]
p99_ttft_ms = 600
[cost]
gpu = "h200"
"#;

/// Broken by: a tape whose times are not those of the run, an axis that lands in another flag, or a base that
/// is not there for every point.
#[test]
fn a_row_is_what_a_replay_of_its_plan_reports() {
    let spec = spec(GRID);
    let swept = whole(&spec, 2);
    assert_eq!(swept.rows.len(), 16);
    for row in &swept.rows {
        let number = |at: usize| row.values[at].clone();
        let args = ReplayArgs {
            trace_files: vec![format!("{EXAMPLES}/conversation.jsonl")],
            trace_block_size: Some(512),
            router_mode: number(0).as_str().map(str::to_owned),
            num_workers: number(1).as_u64().map(|workers| workers as u32),
            extra_engine_args: Some(json!({ "block_size": 64, "num_gpu_blocks": number(2) }).to_string()),
            arrival_speedup_ratio: number(3).as_f64(),
            ..ReplayArgs::default()
        };
        let stop = AtomicBool::new(false);
        let observer = Observer { watch: &mut Unwatched, stop: &stop, keep: Keep::default() };
        let replayed = wavetank::replay(&Plan::of(&args).unwrap(), observer).unwrap();
        let json = row.json(&["a".into(), "b".into(), "c".into(), "d".into()]);
        let numeric = replayed.report.as_object().unwrap().iter();
        let numeric: Vec<_> =
            numeric.filter(|(key, value)| value.is_number() && *key != "schema_version").collect();
        assert!(numeric.len() > 60);
        for (key, value) in numeric {
            assert_eq!(json["metrics"][key], *value, "{key} of {:?}", row.values);
        }
        assert_eq!(json["metrics"]["counts.completed"], replayed.report["counts"]["completed"]);
        assert_eq!(json["warnings"], replayed.report["warnings"]);
        let meets = replayed.report["p99_ttft_ms"].as_f64().unwrap() <= 600.0;
        assert_eq!(row.meets_sla, Some(meets));
    }
    let meeting = swept.rows.iter().filter(|row| row.meets_sla == Some(true)).count();
    assert!((1..16).contains(&meeting), "the bound divides the points: {meeting}");
    assert!(swept.rows.iter().any(|row| row.is_on_front));
}

fn rows(swept: &Swept) -> String {
    report(swept)["rows"].to_string()
}

/// Broken by: rows in the order they finish, a front of one shard, or results that depend on who ran before.
#[test]
fn threads_order_and_shards_change_no_byte() {
    let spec = spec(GRID);
    let one = whole(&spec, 1);
    let (csv, json) = (written(&one, "x.csv"), rows(&one));
    let two = whole(&spec, 2);
    assert_eq!((written(&two, "x.csv"), rows(&two)), (csv.clone(), json.clone()));
    let parts: Vec<(String, Value)> = [3, 1, 2]
        .map(|number| {
            let part = swept(&spec, Shard { number, of: 3 }, 2, None);
            assert!(part.rows.len() < 16 && !part.rows.is_empty());
            (format!("{number}.json"), report(&part))
        })
        .into();
    let merged = merge(&parts).unwrap();
    assert_eq!((written(&merged, "x.csv"), rows(&merged)), (csv, json));
    let without_wall = |swept: &Swept| {
        let mut report = report(swept);
        report["wall"] = Value::Null;
        report
    };
    assert_eq!(without_wall(&merged), without_wall(&one));
}

/// Broken by: a report that is laid out otherwise when it was read, or rows that share a line.
#[test]
fn a_report_that_was_read_is_written_as_it_was() {
    let swept = whole(&spec(&GRID.replace("[2, 3]", "[2]")), 2);
    let text = written(&swept, "x.json");
    let Value::Object(report) = report(&swept) else { panic!("a report is an object") };
    let mut again = Vec::new();
    write_report(&report, &mut again).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), text);
    let rows = text.lines().filter(|line| line.starts_with("    {\"meets_sla\":")).count();
    assert_eq!(rows, swept.rows.len());
}

#[test]
fn shards_that_do_not_belong_together_are_refused() {
    let ours = spec(GRID);
    let other = spec(&GRID.replace("[2, 3]", "[2, 4]"));
    let part = |spec: &Spec, number| report(&swept(spec, Shard { number, of: 2 }, 2, None));
    let named = |name: &str, report: Value| (name.to_owned(), report);
    let refused = |shards: &[(String, Value)]| merge(shards).err().unwrap().to_string();
    let one = part(&ours, 1);
    let mixed = refused(&[named("a", one.clone()), named("b", part(&other, 2))]);
    assert!(mixed.starts_with("b: another spec than in a\nhint: "), "{mixed}");
    let twice = refused(&[named("a", one.clone()), named("b", one.clone())]);
    assert!(twice.starts_with("b: point 0 is in a too"), "{twice}");
    assert!(refused(&[named("a", one)]).starts_with("8 of 16 points are in none of these files"));
    assert!(refused(&[named("a", json!({}))]).starts_with("a: not the report of a sweep"));
    assert!(refused(&[]).starts_with("nothing to merge"));
}

/// Broken by: points that are run though they are kept, kept though their trace changed, or rows that differ
/// when they come from the file.
#[test]
fn finished_points_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.jsonl");
    std::fs::copy(format!("{EXAMPLES}/single_turn.jsonl"), &trace).unwrap();
    let text = "[base]\ntrace = 't.jsonl'\n[axes]\nnum_workers = [1, 2, 3]\n";
    let read = |text: &str| Spec::parse(text, folder.path(), "s.toml").unwrap();
    let store = folder.path().join("x.points.jsonl");
    let run = |text: &str, start| swept(&read(text), Shard::WHOLE, 2, Some((&store, start)));
    let first = run(text, Start::Resume);
    assert_eq!(first.ran, 3);
    let again = run(text, Start::Resume);
    assert_eq!((again.ran, rows(&again)), (0, rows(&first)));
    let more = run(&text.replace("3]", "3, 4]"), Start::Resume);
    assert_eq!((more.ran, more.rows.len()), (1, 4));
    assert_eq!(run(text, Start::Fresh).ran, 3);
    // A spec that says the same in other words asks for the same points.
    std::fs::copy(&trace, folder.path().join("u.jsonl")).unwrap();
    assert_eq!(
        run("[base]\ntrace = 'u.jsonl'\n[axes]\nnum-workers = { from = 1, to = 3 }\n", Start::Resume).ran,
        0
    );
    let shorter = std::fs::read_to_string(&trace).unwrap();
    std::fs::write(&trace, shorter.lines().take(100).collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!(run(text, Start::Resume).ran, 3, "another trace");
}

#[test]
fn an_interrupted_sweep_keeps_what_is_done() {
    struct Stopper<'a>(&'a AtomicBool);
    impl Onlooker for Stopper<'_> {
        fn expect(&self, _points: usize, _kept: usize) {}
        fn done(&self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let spec = spec(GRID);
    let (folder, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let store = folder.path().join("x.points.jsonl");
    let sweep = Sweep::prepare(&spec, Shard::WHOLE, 1).unwrap();
    let onlooker = Stopper(&stop);
    let (runner, store) = (&Local::default(), Some((store.as_path(), Start::Resume)));
    let part = sweep.run(&Setting { threads: 1, stop: &stop, runner, store, onlooker: &onlooker }).unwrap();
    assert!(part.is_partial && !part.rows.is_empty() && part.rows.len() < 16, "{}", part.rows.len());
    assert!(part.warnings.last().unwrap().starts_with("interrupted: "));
    assert_eq!(report(&part)["partial"], true);
    let whole = swept(&spec, Shard::WHOLE, 2, store);
    assert_eq!(whole.ran, 16 - part.ran);
    assert_eq!(rows(&whole), rows(&self::whole(&spec, 2)));
}

/// A load that one worker cannot serve in time and a dozen can.
const FLEET: &str = r#"
[base]
input_tokens = 2000
output_tokens = 60
request_count = 400
request_rate = 300
[axes]
num_workers = { from = 1, to = 32 }
[sla]
p99_ttft_ms = 1200
"#;

/// Broken by: a search that trusts the first guess, counts kept points as none, or leaves its proof out.
#[test]
fn the_smallest_fleet_is_the_grids() {
    let grid = whole(&spec(FLEET), 2);
    let smallest = grid.rows.iter().find(|row| row.meets_sla == Some(true)).expect("a fleet that meets it");
    assert!((3..30).contains(&smallest.point), "worth a search: {}", smallest.point);
    let search_spec = spec(&format!("{FLEET}[search]\ngoal = 'smallest_fleet'\n"));
    let found = whole(&search_spec, 2);
    let search = found.search().unwrap().clone();
    assert_eq!(search["answer"]["point"], json!(smallest.point), "{search:#}");
    assert_eq!(search["gpus"], json!(smallest.point + 1));
    let runs = search["runs"].as_u64().unwrap();
    assert_eq!((found.rows.len() as u64, search["grid"].clone()), (runs, json!(32)));
    assert!(runs <= 10, "{runs}");
    let (stop, told) = (AtomicBool::new(false), Count::default());
    let runner = &Local::default();
    let setting = Setting { threads: 2, stop: &stop, runner, store: None, onlooker: &told };
    Sweep::prepare(&search_spec, Shard::WHOLE, 2).unwrap().run(&setting).unwrap();
    assert_eq!(told.0.into_inner() as u64, runs, "someone who watches is told of every run");
    let proof = search["proof"].as_array().unwrap();
    assert_eq!(proof[0]["meets"], true);
    assert!(proof[1..].iter().all(|row| row["meets"] == false) && proof.len() >= 2);
    assert_eq!(proof[1]["parameters"]["num_workers"], json!(smallest.point), "the next smaller one");
    let each = FLEET.replace("[sla]", "router_mode = ['round_robin', 'least_loaded']\nseed = [1, 2]\n[sla]");
    let each = whole(&spec(&format!("{each}[search]\ngoal = 'smallest_fleet'\n")), 2);
    let answers = each.search().unwrap()["answers"].as_array().unwrap().clone();
    assert_eq!(
        answers.iter().map(|one| one["fixed"]["router_mode"].clone()).collect::<Vec<_>>(),
        ["round_robin", "least_loaded"]
    );
    assert_eq!(answers[0]["gpus"], json!(smallest.point + 1), "round_robin has no luck");
    assert!(each.table().contains("\n  with router_mode = least_loaded: num_workers = "), "{}", each.table());
    let impossible = spec(&format!("{FLEET}[search]\ngoal = 'smallest_fleet'\n").replace("1200", "1"));
    let none = whole(&impossible, 2);
    assert!(none.search().unwrap()["answer"].is_null() && none.rows.len() == 1);
}

const SPLIT: &str = r#"
[base]
input_tokens = 3000
output_tokens = 120
request_count = 200
request_rate = 100
router_mode = "kv_router"
prefill_engine_args = { worker_type = "prefill" }
decode_engine_args = { worker_type = "decode", max_num_seqs = 16 }
[axes]
num_prefill_workers = { from = 1, to = 10 }
num_decode_workers = { from = 1, to = 10 }
[sla]
p99_ttft_ms = 3000
p99_e2e_latency_ms = 6000
"#;

#[test]
fn the_smallest_split_is_the_grids() {
    let grid = whole(&spec(SPLIT), 2);
    let gpus = |row: &wavetank_study::sweep::Row| row.values.iter().filter_map(Value::as_u64).sum::<u64>();
    let fewest =
        grid.rows.iter().filter(|row| row.meets_sla == Some(true)).map(gpus).min().expect("one meets it");
    assert!((3..18).contains(&fewest), "{fewest}");
    let found = whole(&spec(&format!("{SPLIT}[search]\ngoal = 'smallest_fleet'\n")), 2);
    let search = found.search().unwrap();
    assert_eq!(search["gpus"], json!(fewest), "{search:#}");
    assert!(search["runs"].as_u64().unwrap() <= 30, "{}", search["runs"]);
}

/// Broken by: halves that keep the worse ones, or an answer that did not run all of the load.
#[test]
fn the_best_of_many_survives_its_rungs() {
    let text = r#"
        [base]
        trace = "conversation.jsonl"
        num_workers = 4
        [axes]
        router_mode = ["round_robin", "kv_router"]
        "extra_engine_args.max_num_seqs" = [1, 2, 4, 256]
        [sla]
        p99_e2e_latency_ms = 1e9
    "#;
    let grid = whole(&spec(text), 2);
    let at = metrics().iter().position(|metric| metric.name == "mean_ttft_ms").unwrap();
    let best = grid.rows.iter().min_by(|a, b| a.metrics[at].total_cmp(&b.metrics[at])).unwrap();
    let halving =
        spec(&format!("{text}[search]\ngoal = 'best'\nminimize = 'mean_ttft_ms'\nrungs = 3\nseeds = 2\n"));
    let found = whole(&halving, 2);
    let search = found.search().unwrap();
    let parts: Vec<&str> =
        search["rungs"].as_array().unwrap().iter().map(|rung| rung["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["1/4", "1/2", "all"]);
    let tried: Vec<_> =
        search["rungs"].as_array().unwrap().iter().map(|rung| rung["tried"].clone()).collect();
    assert_eq!(tried, [json!(8), json!(4), json!(2)]);
    assert_eq!(
        search["answer"]["parameters"]["extra_engine_args.max_num_seqs"], best.values[1],
        "{search:#}"
    );
    assert_eq!(found.rows.len(), 2, "those that ran all of it");
    assert_eq!(rows(&found), rows(&whole(&halving, 1)));
    let priced =
        text.replace("num_workers = 4", "num_workers = 4\ntiming = 'roofline:llama-3.1-8b,gpu=h100'");
    let goal = "[search]\ngoal = 'best'\nminimize = 'cost_usd_per_million_tokens'\nrungs = 2\n[cost]\n";
    let cheapest = whole(&spec(&format!("{priced}{goal}")), 2);
    let search = cheapest.search().unwrap();
    assert!(search["answer"]["value"].as_f64().unwrap() > 0.0, "the GPU is the timing's");
    let cost = metrics().iter().position(|metric| metric.name == "cost_usd_per_million_tokens").unwrap();
    assert!(
        cheapest.rows.iter().all(|row| row.metrics[cost] > 0.0),
        "rows are priced as the search's runs are"
    );
    assert_eq!(search["proof"][0]["metrics"]["cost_usd_per_million_tokens"], search["answer"]["value"]);
    assert!(cheapest.table().contains("┃ cost_usd_per_million_tokens"), "{}", cheapest.table());
    assert!(cheapest.table().contains(" whole ones, where all points are 8"), "{}", cheapest.table());
}

/// Broken by: seeds that are run again without a word, or a warning where chance makes them differ.
#[test]
fn seeds_of_what_is_not_left_to_chance_are_noted() {
    let warned = |base: &str| {
        let swept = whole(&spec(&format!("[base]\n{base}\n[axes]\nseed = [1, 2, 3]\n")), 1);
        swept.warnings.iter().any(|warning| warning.starts_with("axis \"seed\" with 3 values has no effect"))
    };
    assert!(warned("trace = \"conversation.jsonl\""));
    assert!(!warned("trace = \"conversation.jsonl\"\nnum_workers = 2\nrouter_mode = 'kv_router'"));
}

/// Broken by: prices that are nobody's and are not said to be, or users' own that are doubted.
#[test]
fn prices_of_the_built_in_table_are_said_to_be() {
    let text = "[base]\ntrace = 'single_turn.jsonl'\n[axes]\nnum_workers = [1, 2]\n[cost]\n";
    let built_in = whole(&spec(&format!("{text}gpu = 'h200'")), 2);
    let [caveat] = &built_in.warnings[..] else { panic!("{:?}", built_in.warnings) };
    assert!(caveat.starts_with("h200_sxm is taken to cost ") && caveat.contains("RunPod"), "{caveat}");
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("own.csv");
    std::fs::write(&table, "gpu,usd_per_hour,busy_watts,idle_watts\nh200,1,2,1\n").unwrap();
    let own = whole(&spec(&format!("{text}gpu = 'h200'\ntable = '{}'", table.display())), 2);
    assert!(own.warnings.is_empty() && own.rows[0].metrics.iter().any(|value| !value.is_nan()));
}

/// Specs, and how what is said of them begins.
const WRONG: &[(&str, &str)] = &[
    ("[bsae]\n", "s.toml:1: unknown field \"bsae\"\nhint: did you mean base?"),
    (
        "[base]\nnum_wrokers = 1\n[axes]\nseed = [1]\n",
        "s.toml:2: unknown field \"num_wrokers\"\nhint: did you mean num_workers?",
    ),
    (
        "[base]\nnum_workers = 1\nnum-workers = 2\n[axes]\nseed = [1]\n",
        "s.toml:3: \"num_workers\" is given twice",
    ),
    ("[base]\nnum_workers = 'x'\n[axes]\nseed = [1]\n", "s.toml:2: \"num_workers\": must be a whole number"),
    (
        "[axes]\nnum_wrokers = [1]\n",
        "s.toml:2: unknown field \"num_wrokers\"\nhint: did you mean num_workers?",
    ),
    ("[axes]\nnum_workers = []\n", "s.toml:2: axis \"num_workers\" is empty"),
    (
        "[axes]\nnum_workers = [1]\nnum-workers = [2]\n",
        "s.toml:3: axis \"num_workers\" and axis \"num_workers\" set",
    ),
    ("[axes]\nrouter_config = [{}]\nrouter_config-x = [1]\n", "s.toml:3: unknown field"),
    (
        "[axes]\n'router_config' = [{}]\n'router_config.x' = [1]\n",
        "s.toml:3: axis \"router_config.x\" and axis",
    ),
    (
        "[axes]\nrequest_rate = { from = 0.5, to = 2.0 }\n",
        "s.toml:2: axis \"request_rate\" has no end of values",
    ),
    ("[axes]\n", "s.toml:1: [axes] is empty"),
    ("", "s.toml:1: there is nothing to vary"),
    (
        "[sweep]\nmode = 'grdi'\n[axes]\nseed = [1]\n",
        "s.toml:2: \"mode\" must be one of grid, list, random, not \"grdi\"",
    ),
    ("[sweep]\nsamples = 3\n[axes]\nseed = [1]\n", "s.toml:2: \"samples\" belongs to mode = \"random\""),
    ("[[points]]\nseed = 1\n[axes]\nseed = [1]\n", "s.toml:3: [axes] has no place beside a list of points"),
    (
        "[axes]\nseed = [1]\n[pareto]\nminimize = ['p99_tfft_ms']\n",
        "s.toml:4: unknown metric \"p99_tfft_ms\"\nhint: did you mean p99_ttft_ms?",
    ),
    ("[axes]\nseed = [1]\n[sla]\np99_ttft_ms = 'x'\n", "s.toml:4: \"p99_ttft_ms\" must be a number"),
    (
        "[axes]\nseed = [1]\n[cost]\ngpu = 'h200_sxn'\n",
        "s.toml:4: GPU \"h200_sxn\" has no price\nhint: did you mean",
    ),
    (
        "[axes]\nseed = [1]\n[search]\ngoal = 'smallest_fleet'\n[sla]\np99_ttft_ms = 1\n",
        "s.toml:4: a search for a fleet needs an axis num_workers",
    ),
    (
        "[axes]\nnum_workers = [1]\n[search]\ngoal = 'smallest_fleet'\n",
        "s.toml:4: the smallest fleet that meets what?",
    ),
    ("[axes]\nnum_workers = [1]\n[search]\ngoal = 'best'\n", "s.toml:3: the best by what?"),
    (
        "[axes]\nseed = [1]\n[search]\ngoal = 'best'\nminimize = 'cost_usd_per_million_tokens'\n",
        "s.toml: \"cost_usd_per_million_tokens\" needs [cost]\nhint: ",
    ),
    ("[axes\n", "s.toml:1: "),
    ("[axes]\nseed = [2000-01-01]\n", "s.toml:2: a date has no meaning here"),
];

/// Broken by: an error that comes after a run, names no place, or leaves the values of the point out.
#[test]
fn a_wrong_spec_is_refused_before_anything_runs() {
    let base = "[base]\ninput_tokens = 10\noutput_tokens = 1\nrequest_count = 1\n";
    let refused = |text: &str| {
        let spec = Spec::parse(text, Path::new(""), "s.toml");
        let error = spec.and_then(|spec| Sweep::prepare(&spec, Shard::WHOLE, 1).map(drop));
        error.expect_err(text).to_string()
    };
    for &(text, expected) in WRONG {
        let message = refused(text);
        assert!(message.starts_with(expected), "{text}: {message}");
    }
    let wrong =
        refused(&format!("{base}[axes]\nnum_workers = [1, 2]\nrouter_mode = ['round_robin', 'kv_router']\n"));
    let expected =
        "s.toml: point 1 (num_workers = 1, router_mode = \"kv_router\"): --router-mode: kv_router needs";
    assert!(wrong.starts_with(expected), "{wrong}");
    assert!(wrong.ends_with("hint: [sweep] invalid = \"skip\" leaves such points out"), "{wrong}");
    let missing = refused("[base]\ntrace = 'gone.jsonl'\n[axes]\nseed = [1]\n");
    assert!(missing.contains("gone.jsonl: cannot open"), "{missing}");
    let typed = refused(&format!("{base}[axes]\nnum_workers = [1, 'x']\n"));
    assert!(typed.contains("s.toml:6: \"num_workers\": must be a whole number"), "{typed}");
}

#[test]
fn points_that_are_no_plan_can_be_left_out() {
    let text = "[base]\ninput_tokens = 10\noutput_tokens = 1\nrequest_count = 1\n\
                [sweep]\ninvalid = 'skip'\n[axes]\n\
                num_workers = [1, 2]\nrouter_mode = ['round_robin', 'kv_router']\n";
    let swept = whole(&spec(text), 2);
    assert_eq!(swept.rows.iter().map(|row| row.point).collect::<Vec<_>>(), [0, 2, 3]);
    assert!(
        swept.warnings[0].starts_with("1 of 4 points are no plan and were left out; the first: "),
        "{:?}",
        swept.warnings
    );
}

#[test]
fn lists_and_draws_are_points_too() {
    let base = "[base]\ninput_tokens = 100\noutput_tokens = 4\nrequest_count = 20\n";
    let list = spec(&format!(
        "{base}[[points]]\nnum_workers = 2\n[[points]]\nextra_engine_args.num_gpu_blocks = 64\nseed = 7\n"
    ));
    let listed = whole(&list, 2);
    let values: Vec<Value> = listed.rows.iter().map(|row| json!(row.values)).collect();
    assert_eq!(values, [json!([2, null, null]), json!([null, 64, 7])]);
    let random = |samples: u32, seed: u32| {
        let text = format!(
            "{base}[sweep]\nmode = 'random'\nsamples = {samples}\nseed = {seed}\n\
             [axes]\nnum_workers = [1, 2, 3]\n\
             arrival_interval_ms = {{ from = 0.5, to = 50.0, scale = 'log' }}\n"
        );
        whole(&spec(&text), 2).rows.iter().map(|row| json!(row.values)).collect::<Vec<_>>()
    };
    assert_eq!(random(6, 1), random(6, 1));
    assert_ne!(random(6, 1), random(6, 2));
    assert_eq!(random(9, 1)[..6], random(6, 1), "more samples begin with the same");
    let small = spec(&format!("{base}[sweep]\nmode = 'random'\nsamples = 9\n[axes]\nnum_workers = [1, 2]\n"));
    let drawn = whole(&small, 2);
    assert_eq!(drawn.rows.len(), 2);
    assert_eq!(drawn.warnings, ["2 of 9 samples: there are no more different points"]);
}

/// Broken by: a column of another kind than its values, or a value that is there where none is.
#[test]
fn parquet_reads_back() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let spec = spec(GRID);
    let swept = whole(&spec, 2);
    let mut bytes = Vec::new();
    write_output(&swept, Path::new("x.parquet"), &mut bytes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    std::fs::write(&path, bytes).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), swept.rows.len());
    for (read, row) in rows.iter().zip(&swept.rows) {
        let cell = |name: &str| read.get_column_iter().find(|(column, _)| *column == name).unwrap().1.clone();
        assert_eq!(cell("point"), Field::Long(row.point as i64));
        assert_eq!(cell("router_mode"), Field::Str(row.values[0].as_str().unwrap().to_owned()));
        assert_eq!(cell("num_workers"), Field::Long(row.values[1].as_i64().unwrap()));
        assert_eq!(cell("arrival_speedup_ratio"), Field::Double(row.values[3].as_f64().unwrap()));
        assert_eq!(cell("pareto"), Field::Bool(row.is_on_front));
        for (metric, value) in metrics().iter().zip(&row.metrics) {
            let expected = match (value.is_finite(), metric.is_whole) {
                (false, _) => Field::Null,
                (true, true) => Field::Long(*value as i64),
                (true, false) => Field::Double(*value),
            };
            assert_eq!(cell(&metric.name), expected, "{}", metric.name);
        }
    }
}
