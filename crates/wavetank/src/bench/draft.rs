//! A plan in the making: every flag is looked at, everything wrong is kept, nothing stops at the first error.

use wavetank_bench::{Ageing, Feed, Habits, Mix, Pace, Persona, Plan, Reads, Role, Scaling, Time};
use wavetank_cache::Rules;
use wavetank_model::{Error, Nanos};
use wavetank_report::storage::Criteria;

use super::args::{BenchArgs, GenerationMode, ReadPolicy};
use super::config::Config;
use super::findings::Findings;
use super::machine::Machine;
use super::model::{self, ModelPlan};
use super::plan::BenchPlan;
use super::rank::{self, Rank};

/// What a plan is made from and what was found on the way.
pub(super) struct Draft<'a> {
    pub(super) machine: &'a Machine,
    pub(super) args: &'a BenchArgs,
    pub(super) config: Config,
    pub(super) findings: Findings,
    pub(super) warnings: Vec<String>,
    /// Which of many processes the plan is for.
    pub(super) rank: Option<Rank>,
}

/// Bytes of a GiB.
const GIB: f64 = (1u64 << 30) as f64;
/// More requests than this are never worked on at a time (spec/kv-bench.md 1).
const WORKERS_MAX: u32 = 500;
const SEED: u64 = 42;
const MODEL: &str = "llama3.1-8b";
const QUEUE_LIMIT: u64 = 100_000;
/// Pieces at the device at a time, of each thread.
pub(crate) const IO_DEPTH: u32 = 32;
/// Warm-up is this share of the duration …
const WARMUP_SHARE: f64 = 0.1;
/// … and at most this long.
const WARMUP_SECONDS_MAX: f64 = 30.0;
/// Entries per user that are there from the start when this machine only generates (spec/kv-bench.md 11).
const PREPARED_PER_USER: u32 = 10;
/// No machine has more: a limit that catches slips.
const EXBIBYTE_GB: f64 = (1u64 << 30) as f64;

/// What was asked for: of one GPU, of main memory, of storage (0 is what there is).
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) gpu_gb: f64,
    pub(super) cpu_gb: f64,
    pub(super) storage_gb: f64,
}

/// How many threads do I/O on a machine with so many cores, unless told otherwise.
pub(crate) fn usual_io_threads(cores: u32) -> u32 {
    (cores / 4).clamp(1, 8)
}

/// Whole bytes of so many GiB.
pub(super) fn gib(gigabytes: f64) -> u64 {
    (gigabytes * GIB) as u64
}

impl<'a> Draft<'a> {
    pub(super) fn new(machine: &'a Machine, args: &'a BenchArgs) -> Self {
        let mut findings = Findings::default();
        let config = Config::read(args.config.as_deref(), &mut findings);
        let rank = findings.take(rank::find(args, machine.variable)).flatten();
        Self { machine, args, config, findings, warnings: Vec::new(), rank }
    }

    /// The plan, unless there is no model to make one for.
    pub(super) fn plan(&mut self) -> Option<BenchPlan> {
        let args = self.args;
        let model = self.model();
        let generation_mode = args.generation_mode.unwrap_or_default();
        let criteria = self.criteria();
        let trials = self.trials();
        let memory = self.memory();
        let (feed, dataset) = self.feed();
        let media = self.media();
        let (tiers, temporary_cache) = self.tiers(memory);
        let run = Plan {
            feed: feed.unwrap_or(Feed::Users(args.load.unwrap_or_default())),
            precondition_bytes: self.precondition_bytes(tiers.last()),
            tiers,
            ..self.run(generation_mode, dataset.is_some())
        };
        if let Some(path) = &args.validation_trace
            && let Err(error) = std::fs::File::open(path)
        {
            self.findings.wrong("--validation-trace", format!("cannot open {}: {error}", path.display()));
        }
        self.note_idle(&run, dataset.as_ref());
        let model = model?;
        let bytes_per_token = self.entry_bytes(&model);
        let large = model.is_large();
        let mut run = Plan { bytes_per_token, ..run };
        let rag = self.config.rag;
        run.habits.documents.tokens_range = if large { rag.large_tokens } else { rag.small_tokens };
        Some(BenchPlan {
            wavetank_version: env!("CARGO_PKG_VERSION").to_owned(),
            model,
            run,
            dataset,
            profile: args.performance_profile.unwrap_or_default(),
            criteria,
            trials,
            strict: args.strict,
            temporary_cache,
            rank: self.rank,
            num_gpus: args.num_gpus.unwrap_or(1),
            gpu_mem_gb: memory.gpu_gb,
            cpu_mem_gb: memory.cpu_gb,
            storage_capacity_gb: memory.storage_gb,
            generation_mode,
            latency_tracing: args.enable_latency_tracing,
            media,
            validation_trace: args.validation_trace.clone(),
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    /// The model, split over its GPUs.
    fn model(&mut self) -> Option<ModelPlan> {
        let file = self.args.config.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        for error in model::unsound(&self.config.models) {
            self.findings.note(&Error::usage(error.to_string()).at(file.as_str()));
        }
        let gpus = self.findings.count("--num-gpus", self.args.num_gpus.unwrap_or(1).into(), 1, 1024);
        let ranks = u64::from(self.args.tensor_parallel.unwrap_or(1));
        if !(1..=gpus).contains(&ranks) {
            let what = format!("must be from 1 to --num-gpus, which is {gpus}, not {ranks}");
            self.findings.wrong("--tensor-parallel", what);
        } else if !ranks.is_power_of_two() {
            self.warn(format!("--tensor-parallel {ranks} is not a power of two, as engines have it"));
        }
        let name = self.args.model.as_deref().unwrap_or(MODEL);
        let is_found_unsound = self.config.models.contains_key(name);
        let found = model::find(name, &self.config.models);
        let model = if is_found_unsound { found.ok() } else { self.findings.take(found) };
        model.map(|model| ModelPlan { tensor_parallel: ranks as u32, ..model })
    }

    /// Bytes of a token on one GPU, which is what an entry is made of.
    fn entry_bytes(&mut self, model: &ModelPlan) -> u64 {
        let (bytes, ranks) = (model.bytes_per_token, u64::from(model.tensor_parallel.max(1)));
        if !bytes.is_multiple_of(ranks) {
            self.warn(format!("{bytes} bytes a token do not divide by {ranks} GPUs: rounded down"));
        }
        (bytes / ranks).max(1)
    }

    /// Gigabytes of a GPU, of main memory and of storage, as asked for.
    fn memory(&mut self) -> Memory {
        let (args, limits) = (self.args, self.config.limits);
        let mut gigabytes = |flag: &str, typed: Option<f64>, usual: f64, most: f64| {
            self.findings.within(flag, typed.unwrap_or(usual), 0.0, most)
        };
        Memory {
            gpu_gb: gigabytes("--gpu-mem-gb", args.gpu_mem_gb, 16.0, limits.gpu_memory_gb),
            cpu_gb: gigabytes("--cpu-mem-gb", args.cpu_mem_gb, 32.0, limits.cpu_memory_gb),
            storage_gb: gigabytes("--storage-capacity-gb", args.storage_capacity_gb, 0.0, EXBIBYTE_GB),
        }
    }

    /// All but where requests come from and where entries go.
    fn run(&mut self, mode: GenerationMode, is_recorded: bool) -> Plan {
        let args = self.args;
        let users = args.num_users.unwrap_or(100);
        let users =
            self.findings.count("--num-users", users.into(), 1, self.config.limits.users.into()) as u32;
        let time = self.time();
        let (warmup, duration) = self.window(time, is_recorded);
        let role = self.role();
        let prepared = if role == Role::Decode { users.saturating_mul(PREPARED_PER_USER) } else { 0 };
        let cores = self.machine.cores;
        // On a virtual clock one operation is under way at a time.
        let threads = args.io_threads.unwrap_or(usual_io_threads(cores));
        let threads = if time == Time::Virtual { 1 } else { threads };
        let precondition_depth = args.precondition_threads.filter(|threads| *threads > 0).unwrap_or(cores);
        Plan {
            seed: args.seed.unwrap_or(SEED),
            bytes_per_token: 0,
            users,
            workers_max: WORKERS_MAX,
            habits: Habits { prepared, ..self.habits() },
            feed: Feed::Users(args.load.unwrap_or_default()),
            queue_limit: Some(args.queue_limit.unwrap_or(QUEUE_LIMIT)).filter(|limit| *limit > 0),
            ageing: self.ageing(),
            targets: self.config.targets,
            reads: match args.read_policy.unwrap_or_default() {
                ReadPolicy::PerBatch => Reads::PerBatch(self.config.decode_batch),
                ReadPolicy::Once => Reads::Once,
            },
            role,
            pace: self.pace(mode),
            time,
            warmup,
            duration,
            max_requests: args.max_requests.filter(|most| *most > 0),
            max_concurrent_allocs: args.max_concurrent_allocs.filter(|most| *most > 0),
            scaling: self.scaling(users),
            precondition_bytes: None,
            precondition_depth: self.findings.count(
                "--precondition-threads",
                precondition_depth.into(),
                1,
                4096,
            ) as u32,
            io_threads: self.findings.count("--io-threads", threads.into(), 1, 256) as u32,
            io_depth: self.findings.count("--io-depth", args.io_depth.unwrap_or(IO_DEPTH).into(), 1, 4096)
                as u32,
            tiers: Vec::new(),
            rules: Rules {
                promotion: args.promotion.unwrap_or_default(),
                write: args.write_policy.unwrap_or_default(),
                room: self.config.room,
            },
            verify: args.verify,
            keep_cache: args.keep_cache,
        }
    }

    fn time(&self) -> Time {
        match (self.is_simulated(), self.time_is_virtual()) {
            (true, _) => Time::Modelled,
            (false, true) => Time::Virtual,
            (false, false) => Time::Wall,
        }
    }

    /// Whether I/O takes no time.
    pub(super) fn time_is_virtual(&self) -> bool {
        let mode = self.args.generation_mode.unwrap_or_default();
        mode == GenerationMode::Deterministic || self.args.io_trace_log.is_some()
    }

    fn pace(&self, mode: GenerationMode) -> Pace {
        let [none, fast, realistic] = self.config.seconds_per_token;
        Pace(Nanos::from_seconds(match mode {
            GenerationMode::None => none,
            GenerationMode::Fast => fast,
            GenerationMode::Realistic | GenerationMode::Deterministic => realistic,
        }))
    }

    /// What is excluded and what is measured. A run that ends after so many requests measures all of them.
    fn window(&mut self, time: Time, is_recorded: bool) -> (Nanos, Nanos) {
        let (args, most) = (self.args, self.config.limits.duration_seconds);
        let duration = self.findings.within("--duration", args.duration.unwrap_or(60.0), 1.0, most);
        let is_counted = args.max_requests.is_some_and(|most| most > 0)
            || (is_recorded && args.replay_cycles.is_some_and(|cycles| cycles > 0));
        let usual = match is_counted || time == Time::Virtual {
            true => 0.0,
            false => (duration * WARMUP_SHARE).min(WARMUP_SECONDS_MAX),
        };
        let warmup = self.findings.within("--warmup", args.warmup.unwrap_or(usual), 0.0, most);
        (Nanos::from_seconds(warmup), Nanos::from_seconds(duration))
    }

    fn role(&mut self) -> Role {
        match (self.args.prefill_only, self.args.decode_only) {
            (true, true) => {
                self.findings.wrong("--prefill-only", "cannot be combined with --decode-only");
                Role::Both
            }
            (true, false) => Role::Prefill,
            (false, true) => Role::Decode,
            (false, false) => Role::Both,
        }
    }

    fn ageing(&mut self) -> Ageing {
        let typed = self.args.aging.filter(|seconds| *seconds != 0.0);
        let Some(seconds) = typed else { return Ageing::Never };
        Ageing::Every(Nanos::from_seconds(self.findings.within("--aging", seconds, 1e-6, 86_400.0)))
    }

    fn habits(&mut self) -> Habits {
        let (args, config) = (self.args, &self.config);
        let asked = args.rag_num_docs.unwrap_or(10);
        let most = Some(config.rag.documents_max).filter(|most| *most > 0).unwrap_or(u32::MAX);
        let mut documents = config.rag.documents;
        documents.count = if args.enable_rag { asked.min(most) } else { 0 };
        let cut = (args.enable_rag && asked > most)
            .then(|| format!("--rag-num-docs {asked} is more than rag.max_documents: {most} are made"));
        let habits = Habits {
            templates: config.templates,
            classes: config.classes,
            multi_turn: !args.disable_multi_turn,
            end_probability: config.end_probability,
            turns_max: config.turns_max,
            prompt_probability: if args.disable_prefix_caching { 0.0 } else { config.prompt_probability },
            prompt_tokens_min: config.prompt_tokens_min,
            prompts_max: config.prompts_max,
            conversations_max: config.conversations_max,
            prepared: 0,
            documents,
            mix: Mix::default(),
        };
        self.warnings.extend(cut);
        Habits { mix: self.mix(), ..habits }
    }

    fn mix(&mut self) -> Mix {
        let Some(text) = &self.args.persona_mix else { return Mix::default() };
        match mix(text) {
            Ok(mix) => mix,
            Err(what) => {
                self.findings.wrong("--persona-mix", what);
                Mix::default()
            }
        }
    }

    fn scaling(&mut self, users: u32) -> Option<Scaling> {
        let args = self.args;
        let target = args.target_saturation.unwrap_or(self.config.scaling.target_saturation);
        let target_saturation = self.findings.within("--target-saturation", target, 0.0, 1.0);
        let interval =
            self.findings.within("--scale-interval", args.scale_interval.unwrap_or(10.0), 0.1, 3600.0);
        if !args.enable_autoscaling {
            return None;
        }
        let scaling = Scaling {
            mode: args.autoscaler_mode.unwrap_or(self.config.scaling.mode),
            interval: Nanos::from_seconds(interval),
            target_saturation,
            ..self.config.scaling
        };
        if !(scaling.users_min..=scaling.users_max).contains(&users) {
            let Scaling { users_min, users_max, .. } = scaling;
            let what =
                format!("autoscaling begins with {users} users, but is from {users_min} to {users_max}");
            self.findings.wrong("--num-users", format!("{what} — hint: autoscaler.min_users, .max_users"));
        }
        Some(scaling)
    }

    fn criteria(&mut self) -> Criteria {
        let (args, usual) = (self.args, Criteria::default());
        let mut most = |flag: &str, typed: Option<f64>, usual: f64, most: f64| {
            self.findings.within(flag, typed.unwrap_or(usual), 0.0, most)
        };
        let no_limit = f64::INFINITY;
        Criteria {
            storage_read_p95_ms: most(
                "--pass-read-p95-ms",
                args.pass_read_p95_ms,
                usual.storage_read_p95_ms,
                no_limit,
            ),
            storage_write_p95_ms: most(
                "--pass-write-p95-ms",
                args.pass_write_p95_ms,
                usual.storage_write_p95_ms,
                no_limit,
            ),
            cpu_p95_ms: most("--pass-cpu-p95-ms", args.pass_cpu_p95_ms, usual.cpu_p95_ms, no_limit),
            hit_rate: most("--pass-hit-rate", args.pass_hit_rate, usual.hit_rate, 1.0),
            read_bandwidth_gbps: most(
                "--pass-read-gbps",
                args.pass_read_gbps,
                usual.read_bandwidth_gbps,
                no_limit,
            ),
            write_bandwidth_gbps: most(
                "--pass-write-gbps",
                args.pass_write_gbps,
                usual.write_bandwidth_gbps,
                no_limit,
            ),
        }
    }

    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }
}

/// How many users there are of each persona; one that is not named has none.
fn mix(text: &str) -> Result<Mix, String> {
    let mut shares = [None; 3];
    for part in text.split(',') {
        let (name, share) = part.split_once('=').ok_or_else(|| format!("\"{part}\" is not NAME=SHARE"))?;
        let place = Persona::ALL.iter().position(|persona| persona.name() == name.trim());
        let place = place
            .ok_or_else(|| format!("unknown persona \"{name}\" — hint: known: chatbot, coding, document"))?;
        let share: Option<f64> = share.trim().parse().ok().filter(|share| (0.0..=1e9).contains(share));
        let share = share.ok_or_else(|| format!("\"{part}\" needs a number, 0 or more"))?;
        if shares[place].replace(share).is_some() {
            return Err(format!("\"{name}\" is given twice"));
        }
    }
    let mix = Mix(shares.map(|share| share.unwrap_or(0.0)));
    if mix.0.iter().sum::<f64>() > 0.0 { Ok(mix) } else { Err("nobody is left".to_owned()) }
}
