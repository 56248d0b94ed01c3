//! Replays of published measurements on H200: `grid` and `roofline` against silicon (METHODOLOGY.md, "Against
//! silicon"). Runs where the shared data lies beside the checkout; `--nocapture` prints every row.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and shows what it finds"
)]

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use flate2::read::GzDecoder;
use rand::RngExt;
use serde_json::{Value, json};
use wavetank_model::{
    Architecture, Draw, Nanos, Opening, Priority, Prompt, Request, Result, SessionId, Workload, accelerator,
    model, seeded,
};
use wavetank_report::Serving;
use wavetank_sim::timing::{TimingConfig, profiles};
use wavetank_sim::{ConcurrencyUnit, EngineConfig, Load, Plan};

const GPU: &str = "h200_sxm";
/// The share of a GPU's memory that the engine was given.
const MEMORY_SHARE: f64 = 0.9;
const BLOCK: u32 = 16;

/// One published measurement.
struct Row {
    model: &'static Architecture,
    precision: String,
    tp: u32,
    input: u32,
    output: u32,
    concurrency: u32,
    measured: Means,
}

/// What a client reports of a run.
#[derive(Clone, Copy)]
struct Means {
    ttft_ms: f64,
    tpot_ms: f64,
}

/// How a row is taken to have been measured.
#[derive(Clone, Copy)]
struct Protocol {
    seed: u64,
    /// Lengths are drawn from this part of the nominal one up.
    shortest: f64,
    engine: fn(EngineConfig) -> EngineConfig,
}

/// That of the published scripts.
const PUBLISHED: Protocol = Protocol { seed: 0, shortest: 0.8, engine: |engine| engine };

/// The aggregated vLLM rows of Llama on H200.
fn rows() -> Option<Vec<Row>> {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/timing");
    let file = std::fs::File::open(Path::new(shared).join("aic_silicon_sample.csv.gz")).ok()?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let header: Vec<&str> = text.lines().next()?.split(',').collect();
    let column = |name: &str| header.iter().position(|&cell| cell == name).unwrap();
    let keys = ["system", "backend", "mode", "model_path", "precision"].map(column);
    let numbers = ["tp_size", "isl", "osl", "batch_size"].map(column);
    let times = ["silicon_ttft_ms", "silicon_tpot_ms"].map(column);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [system, backend, mode, name, precision] = keys.map(|at| cells[at]);
        if (system, backend, mode, precision) != (GPU, "vllm", "agg", "fp8") || !name.contains("Llama") {
            return None;
        }
        let [tp, input, output, concurrency] = numbers.map(|at| cells[at].parse().unwrap());
        let [ttft_ms, tpot_ms] = times.map(|at| cells[at].parse().unwrap());
        let measured = Means { ttft_ms, tpot_ms };
        let model = model(name).unwrap();
        Some(Row { model, precision: precision.to_owned(), tp, input, output, concurrency, measured })
    };
    let mut rows: Vec<Row> = text.lines().skip(1).filter_map(row).collect();
    rows.sort_by_key(|row| (row.model.layers, row.tp, row.input, row.output, row.concurrency));
    Some(rows)
}

impl Row {
    /// The timing model `grid`, if there is a profile with these types of weights and KV.
    fn grid(&self) -> Option<TimingConfig> {
        self.grid_with(json!({}))
    }

    /// The same with other parameters.
    fn grid_with(&self, mut parameters: Value) -> Option<TimingConfig> {
        let built_in = profiles().iter().find(|built_in| {
            let profile = &built_in.profile;
            model(&profile.model).unwrap().name == self.model.name
                && (profile.gpu.as_str(), profile.tp) == (GPU, self.tp)
                && [&profile.weight_dtype, &profile.kv_dtype].iter().all(|&dtype| *dtype == self.precision)
        })?;
        parameters["name"] = json!("grid");
        parameters["profile"] = json!(built_in.name);
        Some(timing(parameters))
    }

    fn roofline(&self) -> TimingConfig {
        let (name, precision) = (&self.model.name, &self.precision);
        timing(json!({ "name": "roofline", "model": name, "gpu": GPU, "tp": self.tp,
            "weight_dtype": precision, "kv_dtype": precision }))
    }

    /// KV blocks: what weights (fp8 layers, bf16 embeddings) leave of the memory, without activations.
    fn blocks(&self) -> u32 {
        let (model, tp) = (self.model, f64::from(self.tp));
        let embeddings = 2.0 * f64::from(model.vocab) * f64::from(model.hidden);
        let weights = (model.parameters() as f64 + embeddings) / tp;
        let memory = MEMORY_SHARE * accelerator(GPU).unwrap().memory_bytes;
        let kv = f64::from(model.kv_numbers_per_token()) / tp;
        ((memory - weights) / kv) as u32 / BLOCK
    }

    fn plan(&self, timing: TimingConfig) -> Plan {
        Plan {
            engine: EngineConfig {
                num_gpu_blocks: self.blocks(),
                block_size: BLOCK,
                max_num_seqs: Some(self.concurrency),
                max_num_batched_tokens: Some(8192),
                enable_prefix_caching: false,
                async_scheduling: true,
                timing,
                ..EngineConfig::default()
            },
            load: Load::Closed { concurrency: self.concurrency, unit: ConcurrencyUnit::Requests },
            seed: 0,
            ..Plan::default()
        }
    }

    fn replay(&self, timing: TimingConfig, protocol: Protocol) -> Means {
        let count = 10 * self.concurrency;
        let draw = seeded(protocol.seed, "silicon");
        let mut workload = Prompts { row: self, shortest: protocol.shortest, draw, count, opened: 0 };
        let mut plan = self.plan(timing);
        plan.engine = (protocol.engine)(plan.engine);
        let mut serving = Serving::default();
        let never = AtomicBool::new(false);
        wavetank_sim::run(&plan, &mut workload, &mut serving, &never).unwrap();
        let summary = serving.summary();
        assert_eq!(summary.counts.completed, u64::from(count));
        Means { ttft_ms: summary.ttft_ms.mean, tpot_ms: summary.tpot_ms.mean }
    }

    fn name(&self) -> String {
        let Self { model, tp, input, output, concurrency, .. } = self;
        format!("{} TP{tp} {input}x{output} c{concurrency}", model.name)
    }
}

fn timing(config: Value) -> TimingConfig {
    serde_json::from_value(config).unwrap()
}

/// Prompts that share nothing, with lengths drawn uniformly, as InferenceMAX draws them.
struct Prompts<'a> {
    row: &'a Row,
    shortest: f64,
    draw: Draw,
    count: u32,
    opened: u32,
}

impl Workload for Prompts<'_> {
    fn open(&mut self) -> Result<Option<Opening>> {
        if self.opened == self.count {
            return Ok(None);
        }
        let number = self.opened;
        self.opened += 1;
        let least = |most: u32| (f64::from(most) * self.shortest) as u32;
        let mut length = |most: u32| self.draw.random_range(least(most)..=most);
        let request = Request {
            session: SessionId(number),
            turn: 0,
            prompt: Prompt::unique(u64::from(number), length(self.row.input)),
            output_tokens: length(self.row.output),
            priority: Priority::default(),
            think: None,
            labels: None,
        };
        Ok(Some(Opening { at: Nanos::ZERO, request }))
    }

    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        unreachable!("session {} has no turn {turn}", session.0)
    }

    fn has_follow_ups(&self) -> bool {
        false
    }

    fn requests(&self) -> u64 {
        u64::from(self.count)
    }
}

/// Relative errors of one timing model on some rows.
#[derive(Default)]
struct Errors {
    tpot: Vec<f64>,
    ttft: Vec<f64>,
}

impl Errors {
    fn note(&mut self, row: &Row, simulated: Means) {
        self.tpot.push(simulated.tpot_ms / row.measured.tpot_ms - 1.0);
        self.ttft.push(simulated.ttft_ms / row.measured.ttft_ms - 1.0);
    }

    /// A line of the table in METHODOLOGY.md.
    fn line(&self, what: &str) -> String {
        let mut line = format!("| {what} | {} |", self.tpot.len());
        for (errors, bound) in [(&self.tpot, 0.10), (&self.ttft, 0.20)] {
            let within = errors.iter().filter(|error| error.abs() <= bound).count();
            let [median, p90] = [0.5, 0.9].map(|share| 100.0 * quantile(sizes(errors), share));
            let bias = 100.0 * quantile(errors.clone(), 0.5);
            write!(line, " {median:.1} % | {p90:.1} % | {bias:+.1} % | {within} |").unwrap();
        }
        line
    }
}

fn sizes(errors: &[f64]) -> Vec<f64> {
    errors.iter().map(|error| error.abs()).collect()
}

/// With linear interpolation between neighbours.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = share * (values.len() - 1) as f64;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// A row and what was simulated of it; `grid` does not know them all.
struct Replayed {
    row: Row,
    grid: Option<Means>,
    roofline: Means,
}

impl Replayed {
    fn of(row: Row) -> Self {
        let grid = row.grid().map(|timing| row.replay(timing, PUBLISHED));
        let roofline = row.replay(row.roofline(), PUBLISHED);
        Self { row, grid, roofline }
    }

    fn line(&self) -> String {
        let Means { tpot_ms, ttft_ms } = self.row.measured;
        let mut line = format!("{:<38} {tpot_ms:>8.2} {ttft_ms:>9.1}", self.row.name());
        for simulated in [self.grid, Some(self.roofline)] {
            let error = |of: fn(Means) -> f64| {
                let percent = |means| 100.0 * (of(means) / of(self.row.measured) - 1.0);
                simulated.map_or_else(String::new, |means| format!("{:+.1} %", percent(means)))
            };
            write!(line, " {:>9} {:>9}", error(|means| means.tpot_ms), error(|means| means.ttft_ms)).unwrap();
        }
        line
    }
}

/// The errors of `simulated` on the rows it knows.
fn errors(rows: &[Replayed], simulated: impl Fn(&Replayed) -> Option<Means>) -> Errors {
    let mut errors = Errors::default();
    for replayed in rows {
        if let Some(means) = simulated(replayed) {
            errors.note(&replayed.row, means);
        }
    }
    errors
}

/// The TPOT bound breaks without what the host adds to a pass, the TTFT bound without asynchronous
/// scheduling or with equal lengths, the comparison with METHODOLOGY.md with any other change.
#[test]
fn medians_are_met_and_published() {
    let Some(rows) = rows() else { return };
    let large = |row: &Row| row.model.name.contains("70B");
    let rows: Vec<Replayed> =
        rows.into_iter().filter(|row| row.grid().is_some() || large(row)).map(Replayed::of).collect();
    for row in &rows {
        println!("{}", row.line());
    }
    let profiled = |replayed: &Replayed| replayed.grid.map(|_| replayed.roofline);
    let grid = errors(&rows, |replayed| replayed.grid);
    let lines = [
        grid.line("`grid`, all rows"),
        errors(&rows, |it| it.grid.filter(|_| large(&it.row))).line("`grid`, 70B, TP4 and TP8"),
        errors(&rows, |it| it.grid.filter(|_| !large(&it.row))).line("`grid`, 8B, TP1"),
        errors(&rows, profiled).line("`roofline`, all rows"),
        errors(&rows, |it| profiled(it).filter(|_| large(&it.row))).line("`roofline`, 70B, TP4 and TP8"),
        errors(&rows, |it| profiled(it).filter(|_| !large(&it.row))).line("`roofline`, 8B, TP1"),
        errors(&rows, |it| it.grid.is_none().then_some(it.roofline)).line("`roofline`, 70B, TP1 and TP2"),
    ];
    println!("{}", lines.join("\n"));
    assert_eq!(grid.tpot.len(), 40);
    assert!(quantile(sizes(&grid.tpot), 0.5) <= 0.10);
    assert!(quantile(sizes(&grid.ttft), 0.5) <= 0.20);
    let published = include_str!("../../../METHODOLOGY.md");
    for line in lines {
        assert!(published.contains(&line), "METHODOLOGY.md says otherwise than\n{line}");
    }
}

/// Median sizes of the errors of TPOT and TTFT over the rows that `grid` knows, in percent.
fn medians(rows: &[Row], parameters: &Value, protocol: Protocol) -> [f64; 2] {
    let mut errors = Errors::default();
    for row in rows {
        if let Some(timing) = row.grid_with(parameters.clone()) {
            errors.note(row, row.replay(timing, protocol));
        }
    }
    [errors.tpot, errors.ttft].map(|errors| 100.0 * quantile(sizes(&errors), 0.5))
}

fn assert_published(sentence: &str) {
    println!("{sentence}");
    let page = joined(include_str!("../../../METHODOLOGY.md"));
    assert!(page.contains(sentence), "METHODOLOGY.md says otherwise than\n{sentence}");
}

/// A page with its lines joined, so that sentences are found wherever they are broken.
fn joined(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Breaks when what METHODOLOGY.md says of other readings of the protocol is not what they give.
#[test]
fn other_readings_are_published() {
    let Some(rows) = rows() else { return };
    let (plain, kernels_alone) = (json!({}), json!({ "host_ms": 0.0 }));
    let [tpot, ttft] = medians(&rows, &plain, PUBLISHED);
    let [without_host, _] = medians(&rows, &kernels_alone, PUBLISHED);
    assert_published(&format!("without it the TPOT median is {without_host:.1} % instead of {tpot:.1} %"));
    let read_me = joined(include_str!("../../../README.md"));
    let told = format!("median errors of {tpot:.0} % (TPOT) and {ttft:.0} % (TTFT)");
    assert!(read_me.contains(&told), "README.md says otherwise than {told}");
    let seeds = (1..5).map(|seed| medians(&rows, &plain, Protocol { seed, ..PUBLISHED }));
    let seeds: Vec<[f64; 2]> = seeds.chain([[tpot, ttft]]).collect();
    let [[least_tpot, most_tpot], [least_ttft, most_ttft]] = [0, 1].map(|metric| {
        let values = || seeds.iter().map(move |medians| medians[metric]);
        [values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max)]
    });
    assert_published(&format!(
        "Over five seeds the medians are {least_tpot:.1} to {most_tpot:.1} % and {least_ttft:.1} to \
         {most_ttft:.1} %"
    ));
    let [_, waves] = medians(&rows, &plain, Protocol { shortest: 1.0, ..PUBLISHED });
    assert_published(&format!("its median error is {waves:.0} %"));
    let waiting: fn(EngineConfig) -> EngineConfig =
        |engine| EngineConfig { async_scheduling: false, ..engine };
    let [_, late] = medians(&rows, &plain, Protocol { engine: waiting, ..PUBLISHED });
    assert_published(&format!("Without asynchronous scheduling it is {late:.0} %"));
}
