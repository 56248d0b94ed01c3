//! Points that run elsewhere: jobs as text, their inputs in other places, results as if they had run here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use wavetank_model::{Error, ErrorKind, Result};
use wavetank_study::sweep::{
    Finished, Job, Local, Onlooker, Runner, Setting, Shard, Spec, Stop, Sweep, Swept, Tree, answer, outcome,
    write_output,
};

/// The repository's folder.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

struct Nobody;

impl Onlooker for Nobody {
    fn expect(&self, _points: usize, _kept: usize) {}
    fn done(&self) {}
}

fn swept(spec: &Spec, runner: &dyn Runner) -> Result<Swept> {
    let stop = AtomicBool::new(false);
    let sweep = Sweep::prepare(spec, Shard::WHOLE, 2)?;
    sweep.run(&Setting { threads: 2, stop: &stop, runner, store: None, onlooker: &Nobody })
}

fn report(swept: &Swept) -> Value {
    let mut report = swept.report();
    report["wall"] = Value::Null;
    report
}

fn csv(swept: &Swept) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_output(swept, Path::new("x.csv"), &mut bytes).expect("a format");
    bytes
}

/// Copies every input of a job under another name and runs the job's text with these in another thread.
struct Elsewhere {
    folder: tempfile::TempDir,
    local: Local,
    jobs: AtomicUsize,
}

impl Elsewhere {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, local: Local::default(), jobs: AtomicUsize::new(0) }
    }

    fn copied(&self, job: &Job) -> HashMap<PathBuf, PathBuf> {
        let number = self.jobs.fetch_add(1, Ordering::Relaxed);
        let copy = |(at, path): (usize, PathBuf)| {
            let place = self.folder.path().join(format!("{number}.{at}"));
            std::fs::copy(&path, &place).expect("a copy");
            (path, place)
        };
        job.inputs().into_iter().enumerate().map(copy).collect()
    }
}

impl Runner for Elsewhere {
    fn run(&self, job: &Job, stop: &Stop<'_>) -> Result<Option<Finished>> {
        let (text, places) = (job.json(), self.copied(job));
        assert_eq!(Job::of_json(&text).expect("a job"), *job, "nothing is lost");
        let told = std::thread::scope(|scope| {
            scope.spawn(|| answer(&text, &places, &self.local, stop.asked)).join().expect("no panic")
        });
        outcome(&told).map(Some)
    }
}

/// Here and elsewhere; how many jobs ran there.
fn same(spec: &Spec) -> usize {
    let here = swept(spec, &Local::default()).expect("rows");
    let elsewhere = Elsewhere::new();
    let there = swept(spec, &elsewhere).expect("rows");
    assert_eq!(report(&there), report(&here));
    assert_eq!(csv(&there), csv(&here));
    assert!(!here.rows.is_empty() && there.ran == here.ran);
    elsewhere.jobs.into_inner()
}

/// A folder with traces and tables.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (from, to) in [
        ("examples/conversation.jsonl", "conversation.jsonl"),
        ("crates/trace/tests/samples/sharegpt.json", "texts.json"),
        ("crates/trace/tests/samples/dynamo.jsonl", "a.jsonl"),
        ("crates/trace/tests/samples/dynamo.more.jsonl", "b.jsonl"),
        ("profiles/llama31-8b-h200-tp1-bf16.json", "table.json"),
        ("profiles/llama31-8b-h200-tp1-fp8.json", "other.json"),
    ] {
        std::fs::copy(Path::new(ROOT).join(from), folder.path().join(to)).expect("a copy");
    }
    folder
}

fn spec(text: &str, folder: &Path) -> Spec {
    Spec::parse(text, folder, "s.toml").expect("a spec")
}

/// Broken by: a number or warning that is lost on the way, a part of a search that is run whole, or copies
/// that are not read.
#[test]
fn points_that_ran_elsewhere_are_the_same_rows() {
    let folder = folder();
    let at = folder.path();
    let grid = r#"
        [base]
        trace = "mooncake:conversation.jsonl"
        trace_block_size = 512
        timing = "grid:table.json"
        [axes]
        router_mode = ["round_robin", "kv_router"]
        num_workers = [2, 3]
        seed = [18446744073709551615, 9007199254740993]
        arrival_speedup_ratio = [1.0, 0.30000000000000004]
        [cost]
        gpu = "h200"
    "#;
    assert_eq!(same(&spec(grid, at)), 16);
    let best = format!("{grid}[search]\ngoal = 'best'\nminimize = 'mean_ttft_ms'\nrungs = 3\nseeds = 2\n");
    assert!(same(&spec(&best, at)) > 16);
    let fleet = r#"
        [base]
        input_tokens = 2000
        output_tokens = 60
        request_count = 400
        request_rate = 300
        [axes]
        num_workers = { from = 1, to = 32 }
        [sla]
        p99_ttft_ms = 1200
        [search]
        goal = "smallest_fleet"
    "#;
    assert!(same(&spec(fleet, at)) > 3);
    let pools = r#"
        [base]
        trace = "conversation.jsonl"
        num_prefill_workers = 2
        router_mode = "kv_router"
        [base.prefill_engine_args]
        worker_type = "prefill"
        timing = { name = "grid", path = "FOLDER/table.json" }
        [base.decode_engine_args]
        worker_type = "decode"
        timing = { name = "grid", path = "FOLDER/other.json" }
        [axes]
        num_decode_workers = [1, 2]
    "#;
    assert_eq!(same(&spec(&pools.replace("FOLDER", &at.display().to_string()), at)), 2);
}

/// Broken by: notes that name copies, or a list of traces that is not looked for beside the spec.
#[test]
fn traces_of_several_files_and_of_texts_are_the_same_elsewhere() {
    let folder = folder();
    let agents = r#"
        [base]
        trace = ["dynamo:a.jsonl", "b.jsonl"]
        [axes]
        num_workers = [1, 2]
    "#;
    assert_eq!(same(&spec(agents, folder.path())), 2);
    let texts = "[base]\ntrace = 'texts.json'\nreplay_concurrency = 2\n[axes]\nnum_workers = [1, 2]\n";
    let texts = spec(texts, folder.path());
    assert_eq!(same(&texts), 2);
    let rows = swept(&texts, &Local::default()).unwrap().rows;
    assert!(rows[0].warnings.iter().any(|warning| warning.contains("tokens counted by")), "{rows:?}");
}

/// Broken by: an error that names a copy, or loses its place, its hint or its kind.
#[test]
fn what_is_wrong_with_an_input_names_it_as_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read_to_string(Path::new(ROOT).join("examples/single_turn.jsonl")).unwrap();
    let mut lines: Vec<&str> = whole.lines().take(20).collect();
    lines[16] = "{\"timestamp\": 1}";
    std::fs::write(folder.path().join("t.jsonl"), lines.join("\n")).unwrap();
    let spec = spec("[base]\ntrace = 't.jsonl'\n[axes]\nnum_workers = [1]\n", folder.path());
    let failed = |runner: &dyn Runner| swept(&spec, runner).err().expect("a broken trace");
    let (here, there) = (failed(&Local::default()), failed(&Elsewhere::new()));
    assert_eq!(there.to_string(), here.to_string());
    assert_eq!((there.kind(), here.kind()), (ErrorKind::Input, ErrorKind::Input));
    let place = format!("{}:17: ", folder.path().join("t.jsonl").display());
    assert!(here.to_string().contains(&place), "{here}");
}

/// Takes the first job apart.
struct Taken(std::sync::Mutex<Option<Job>>);

impl Runner for Taken {
    fn run(&self, job: &Job, _stop: &Stop<'_>) -> Result<Option<Finished>> {
        *self.0.lock().expect("nobody panics") = Some(job.clone());
        Ok(None)
    }
}

/// Broken by: a copy that is not what is read, one copy for two names, or an answer that is guessed at.
#[test]
fn a_job_reads_what_it_is_told_to() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let text = "[base]\ntrace = ['a.jsonl', 'b.jsonl']\ntiming = 'grid:table.json'\n[axes]\nseed = [1]\n";
    let spec = spec(text, folder.path());
    let taken = Taken(std::sync::Mutex::new(None));
    let partial = swept(&spec, &taken).unwrap();
    assert!(partial.rows.is_empty() && partial.ran == 0);
    let mut job = taken.0.into_inner().unwrap().unwrap();
    assert_eq!(job.inputs(), [at("a.jsonl"), at("b.jsonl"), at("table.json")]);
    let sweep = Sweep::prepare(&spec, Shard::WHOLE, 1).unwrap();
    let (paths, hashes): (Vec<PathBuf>, Vec<String>) = sweep.inputs().into_iter().unzip();
    assert_eq!(paths, job.inputs());
    let same = std::fs::read(at("table.json")).unwrap();
    assert_eq!(hashes[2], short(&same), "inputs are known by what is in them");
    let run = |job: &Job| answer(&job.json(), &HashMap::new(), &Local::default(), &AtomicBool::new(false));
    let before = run(&job);
    let places = |from: &str, to: &str| HashMap::from([(at(from), at(to))]);
    let shared = job.clone().relocate(&places("a.jsonl", "b.jsonl")).unwrap_err().to_string();
    assert!(shared.contains("are in one place\nhint: give every input a place of its own"), "{shared}");
    std::fs::copy(at("table.json"), at("copy.json")).unwrap();
    job.relocate(&places("table.json", "copy.json")).unwrap();
    assert_eq!(run(&job), before);
    std::fs::copy(at("other.json"), at("copy.json")).unwrap();
    assert_ne!(run(&job), before, "it is the copy that is read");
    std::fs::remove_file(at("copy.json")).unwrap();
    let gone = outcome(&run(&job)).unwrap_err();
    assert!(gone.to_string().starts_with(&format!("{}: cannot open", at("table.json").display())), "{gone}");
    assert_eq!(gone.kind(), ErrorKind::Io);
    for wrong in ["", "{}", r#"{"finished": {"metrics": [1.0], "warnings": []}}"#] {
        let error = outcome(wrong).unwrap_err().to_string();
        assert!(error.starts_with("not the result of a job: "), "{error}");
    }
}

fn short(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

/// Fails once, at the second job.
struct Flaky(Local, AtomicUsize);

impl Runner for Flaky {
    fn run(&self, job: &Job, stop: &Stop<'_>) -> Result<Option<Finished>> {
        match self.1.fetch_add(1, Ordering::Relaxed) {
            1 => Err(Error::new(ErrorKind::Io, "the machine is gone").hint("start it again")),
            _ => self.0.run(job, stop),
        }
    }
}

const SMALL: &str = "[base]\ninput_tokens = 100\noutput_tokens = 4\nrequest_count = 20\n[axes]\n\
                     num_workers = { from = 1, to = 40 }\n";

/// Broken by: a failure that is swallowed, names no point, or does not end the sweep.
#[test]
fn a_job_that_fails_ends_the_sweep_by_name() {
    let flaky = Flaky(Local::default(), AtomicUsize::new(0));
    let error = swept(&spec(SMALL, Path::new("")), &flaky).err().expect("a failure").to_string();
    assert!(error.starts_with("s.toml: num_workers = "), "{error}");
    assert!(error.ends_with(": the machine is gone\nhint: start it again"), "{error}");
    assert!(flaky.1.into_inner() < 40, "no further job is begun");
}

/// Fails at the first job; the others are under way until nobody waits for them.
struct Hanging(AtomicUsize);

impl Runner for Hanging {
    fn run(&self, _job: &Job, stop: &Stop<'_>) -> Result<Option<Finished>> {
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err(Error::new(ErrorKind::Io, "the machine is gone"));
        }
        while !stop.is_raised() {
            std::thread::yield_now();
        }
        Ok(None)
    }
}

/// Broken by: jobs that are waited for although the sweep has failed.
#[test]
fn a_job_that_fails_ends_those_under_way() {
    let error = swept(&spec(SMALL, Path::new("")), &Hanging(AtomicUsize::new(0))).err().expect("a failure");
    assert!(error.to_string().contains("the machine is gone"), "{error}");
}

/// Raises the flag at its third job, and has no result then.
struct Leaving<'a>(Local, AtomicUsize, &'a AtomicBool);

impl Runner for Leaving<'_> {
    fn run(&self, job: &Job, stop: &Stop<'_>) -> Result<Option<Finished>> {
        if self.1.fetch_add(1, Ordering::Relaxed) == 2 {
            self.2.store(true, Ordering::Relaxed);
        }
        if stop.is_raised() { Ok(None) } else { self.0.run(job, stop) }
    }
}

#[test]
fn a_sweep_that_is_stopped_has_what_came_back() {
    let stop = AtomicBool::new(false);
    let runner = &Leaving(Local::default(), AtomicUsize::new(0), &stop);
    let spec = spec(SMALL, Path::new(""));
    let sweep = Sweep::prepare(&spec, Shard::WHOLE, 2).unwrap();
    let setting = Setting { threads: 1, stop: &stop, runner, store: None, onlooker: &Nobody };
    let swept = sweep.run(&setting).unwrap();
    assert!(swept.is_partial);
    assert_eq!((swept.rows.len(), swept.ran), (2, 2));
}

fn text(text: &str) -> Tree {
    Tree::Plain(json!(text))
}

fn table(entries: Vec<(&str, Tree)>) -> Tree {
    Tree::Table(entries.into_iter().map(|(name, tree)| (name.to_owned(), tree)).collect())
}

/// Broken by: axes in another order than they were given, or places with lines where there are none.
#[test]
fn a_program_says_what_a_file_says() {
    let numbers = |values: [u64; 2]| Tree::List(values.map(|value| Tree::Plain(json!(value))).into());
    let tree = |axes: &str| {
        let base = vec![("trace", text("examples/single_turn.jsonl"))];
        let varied = vec![("seed", numbers([7, 8])), ("num_workers", numbers([1, 2]))];
        let bounds = vec![("p99_ttft_ms", Tree::Plain(json!(50.5)))];
        table(vec![("base", table(base)), (axes, table(varied)), ("sla", table(bounds))])
    };
    let given = Spec::of_tree(tree("axes"), Path::new(ROOT), "sweep").unwrap();
    let written = "[base]\ntrace = 'examples/single_turn.jsonl'\n\
                   [axes]\nseed = [7, 8]\nnum_workers = [1, 2]\n[sla]\np99_ttft_ms = 50.5\n";
    let local = Local::default();
    let (given, written) =
        (swept(&given, &local).unwrap(), swept(&spec(written, Path::new(ROOT)), &local).unwrap());
    assert_eq!((report(&given), csv(&given)), (report(&written), csv(&written)));
    let values: Vec<Value> = given.rows.iter().map(|row| json!(row.values)).collect();
    assert_eq!(values, [json!([7, 1]), json!([7, 2]), json!([8, 1]), json!([8, 2])]);
    let refused = |tree: Tree| {
        let spec = Spec::of_tree(tree, Path::new(ROOT), "sweep");
        spec.and_then(|spec| Sweep::prepare(&spec, Shard::WHOLE, 1).map(drop)).unwrap_err().to_string()
    };
    assert_eq!(refused(tree("axs")), "sweep: unknown field \"axs\"\nhint: did you mean axes?");
    let axes = |axes: Tree| table(vec![("axes", axes)]);
    for (tree, expected) in [
        (text("axes"), "sweep: a sweep is a table\nhint: "),
        (table(vec![]), "sweep: there is nothing to vary\nhint: "),
        (axes(table(vec![("num_wrokers", numbers([1, 2]))])), "sweep: unknown field \"num_wrokers\"\nhint: "),
        (axes(table(vec![("num_workers", text("x"))])), "sweep: axis \"num_workers\" must be a list"),
        (
            axes(table(vec![("num_workers", Tree::List(vec![text("x")]))])),
            "sweep: point 0 (num_workers = \"x\"): sweep: \"num_workers\": must be a whole number",
        ),
    ] {
        let message = refused(tree);
        assert!(message.starts_with(expected), "{message}");
    }
}
