//! The flags of `wavetank bench`: those that make the plan, and those that say where results go.

use std::path::PathBuf;

use clap::Args;
use wavetank::{
    BenchArgs, BenchLoad, GenerationMode, GpuTier, Promotion, ReadPolicy, ScaleMode, Tokenizer, TrialCount,
    WritePolicy, choice,
};
use wavetank_report::storage::Profile;

use crate::cmd::picture_flags::PictureFlags;

/// Everything a plan is made from. Defaults are applied when the plan is made, so that a flag that was not
/// typed can be told from one that was.
#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct BenchFlags {
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    tiers: TiersFlags,
    #[command(flatten)]
    load: LoadFlags,
    #[command(flatten)]
    recordings: RecordingsFlags,
    #[command(flatten)]
    autoscaling: AutoscalingFlags,
    #[command(flatten)]
    assessment: AssessmentFlags,
    #[command(flatten)]
    tracing: TracingFlags,
}

#[derive(Args)]
#[command(next_help_heading = "Run")]
struct RunFlags {
    /// Model: a row of `wavetank list models`, or one of --config [default: llama3.1-8b].
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Simulated users; up to 500 requests are worked on at a time [default: 100].
    #[arg(long, value_name = "N")]
    num_users: Option<u32>,
    /// What is measured [default: 60].
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// What comes before it and is not measured [default: a tenth of the duration,
    /// at most 30; 0 with --max-requests, --replay-cycles or a virtual clock].
    #[arg(long, value_name = "SECONDS")]
    warmup: Option<f64>,
    /// Requests, names and contents follow from it [default: 42].
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// YAML with everything else; flags win.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Time per generated token: none, fast (2 ms), realistic (30 ms), or deterministic
    /// (30 ms, all on a virtual clock) [default: realistic].
    #[arg(long, value_name = "MODE", value_parser = choice::<GenerationMode>)]
    generation_mode: Option<GenerationMode>,
    /// End when so many requests were served; 0 is no limit [default: 0].
    #[arg(long, value_name = "N")]
    max_requests: Option<u64>,
    /// Run it so often and report median and spread; auto goes on until the trials agree
    /// [default: 1].
    #[arg(long, value_name = "N|auto")]
    trials: Option<TrialCount>,
    /// auto ends when half the 95 % confidence interval of the primary metric is within
    /// this part of its mean [default: 5].
    #[arg(long, value_name = "PERCENT")]
    trials_ci: Option<f64>,
    /// auto ends after so many at the latest [default: 20].
    #[arg(long, value_name = "N")]
    trials_max: Option<u32>,
    /// Pause between two trials [default: 0].
    #[arg(long, value_name = "SECONDS")]
    cooldown: Option<f64>,
    /// Empty the kernel's page cache before each trial, all over the machine; takes the
    /// superuser.
    #[arg(long)]
    drop_page_cache: bool,
    /// Exit with 1 when the assessment fails.
    #[arg(long)]
    strict: bool,
    /// Which of --ranks processes this is, from 0; each has its own seed, directory and
    /// report [default: as mpirun or srun says].
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// How many processes run this benchmark; 1 is this one alone.
    #[arg(long, value_name = "N")]
    ranks: Option<u32>,
}

#[derive(Args)]
#[command(next_help_heading = "Tiers")]
struct TiersFlags {
    /// Memory of one GPU for KV; 0 is no GPU tier [default: 16].
    #[arg(long, value_name = "GIB")]
    gpu_mem_gb: Option<f64>,
    /// GPUs; the tier holds so many times --gpu-mem-gb [default: 1].
    #[arg(long, value_name = "N")]
    num_gpus: Option<u32>,
    /// GPUs an entry is split over: its bytes are divided [default: 1].
    #[arg(long, value_name = "N")]
    tensor_parallel: Option<u32>,
    /// auto, cuda, sim (a modelled GPU) or off [default: auto, which is cuda with a driver
    /// and off without, unless --gpu-mem-gb was typed].
    #[arg(long, value_name = "KIND", value_parser = choice::<GpuTier>)]
    gpu_tier: Option<GpuTier>,
    /// Which GPU holds the tier [default: 0].
    #[arg(long, value_name = "N")]
    gpu_device: Option<u32>,
    /// Main memory for KV; 0 is no such tier [default: 32].
    #[arg(long, value_name = "GIB")]
    cpu_mem_gb: Option<f64>,
    /// Take all of it, and an eighth more, before the first request, as engines pin theirs
    /// [default: as entries come].
    #[arg(long)]
    cpu_mem_backed: bool,
    /// Where the storage tier keeps its files [default: a temporary directory].
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// What storage may hold; 0 is 95 % of what is free [default: 0].
    #[arg(long, value_name = "GIB")]
    storage_capacity_gb: Option<f64>,
    /// What the storage tier is: a row of `wavetank list backends` [default: direct].
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// An option of it; may be repeated.
    #[arg(long = "backend-option", value_name = "NAME=VALUE")]
    backend_options: Vec<String>,
    /// Where redis and object store.
    #[arg(long, value_name = "URL")]
    storage_location: Option<String>,
    /// Put a medium in the place of a tier's device, for every tier: the same benchmark in
    /// virtual time, and no byte is moved. TIER is gpu, cpu or disk, MEDIUM a profile of
    /// `wavetank profile tier`, or a row of `wavetank list media` as JSON.
    #[arg(long, value_name = "TIER=MEDIUM")]
    simulate: Vec<String>,
    /// Who leaves a full tier first: a row of `wavetank list eviction` [default: lru].
    #[arg(long, value_name = "NAME")]
    eviction: Option<String>,
    /// When a hit moves an entry up: never, on_hit or on_second_hit [default: never].
    #[arg(long, value_name = "WHEN", value_parser = choice::<Promotion>)]
    promotion: Option<Promotion>,
    /// Where entries are written first: back (fastest tier), through (and the last)
    /// or around (the last only) [default: back].
    #[arg(long, value_name = "WHERE", value_parser = choice::<WritePolicy>)]
    write_policy: Option<WritePolicy>,
    /// An entry is written once it would survive a power cut.
    #[arg(long)]
    durable: bool,
    /// Compare what is read with what was written.
    #[arg(long)]
    verify: bool,
    /// Leave the entries in --cache-dir.
    #[arg(long)]
    keep_cache: bool,
    /// Threads that do I/O [default: a quarter of the cores, 1 to 8].
    #[arg(long, value_name = "N")]
    io_threads: Option<u32>,
    /// Pieces of 1 MiB at devices at a time, per thread [default: 32].
    #[arg(long, value_name = "N")]
    io_depth: Option<u32>,
    /// Entries written at a time; 0 is no limit [default: 0].
    #[arg(long, value_name = "N")]
    max_concurrent_allocs: Option<u32>,
    /// Fill the drive before the run.
    #[arg(long)]
    precondition: bool,
    /// With so much; 0 is twice the capacity [default: 0].
    #[arg(long, value_name = "GIB")]
    precondition_size_gb: Option<f64>,
    /// So many entries at a time; 0 is one per core [default: 0].
    #[arg(long, value_name = "N")]
    precondition_threads: Option<u32>,
}

#[derive(Args)]
#[command(next_help_heading = "Load")]
struct LoadFlags {
    /// open (users ask on their own schedule) or closed (they wait for answers)
    /// [default: open].
    #[arg(long, value_name = "KIND", value_parser = choice::<BenchLoad>)]
    load: Option<BenchLoad>,
    /// Shares of users, as chatbot=1,coding=2; who is not named is not there
    /// [default: all alike].
    #[arg(long, value_name = "LIST")]
    persona_mix: Option<String>,
    /// Requests that may wait, the rest is refused and counted; 0 is no limit
    /// [default: 100000].
    #[arg(long, value_name = "N")]
    queue_limit: Option<u64>,
    /// Waiting so long is worth one priority [default: never].
    #[arg(long, value_name = "SECONDS")]
    aging: Option<f64>,
    /// Generating reads an entry per_batch of tokens, or once [default: per_batch].
    #[arg(long, value_name = "HOW", value_parser = choice::<ReadPolicy>)]
    read_policy: Option<ReadPolicy>,
    /// Requests do not follow on each other.
    #[arg(long)]
    disable_multi_turn: bool,
    /// No shared system prompts.
    #[arg(long)]
    disable_prefix_caching: bool,
    /// Requests retrieve from documents.
    #[arg(long)]
    enable_rag: bool,
    /// So many documents [default: 10].
    #[arg(long, value_name = "N")]
    rag_num_docs: Option<u32>,
    /// This machine computes prompts, another one generates.
    #[arg(long)]
    prefill_only: bool,
    /// This machine generates from prompts that another one computed.
    #[arg(long)]
    decode_only: bool,
}

#[derive(Args)]
#[command(next_help_heading = "Recordings")]
struct RecordingsFlags {
    /// Play ShareGPT conversations.
    #[arg(long, value_name = "FILE")]
    dataset_path: Option<String>,
    /// So many of them [default: 500].
    #[arg(long, value_name = "N")]
    max_conversations: Option<u64>,
    /// How their tokens are counted: tiktoken or characters [default: tiktoken].
    #[arg(long, value_name = "NAME", value_parser = choice::<Tokenizer>)]
    tokenizer: Option<Tokenizer>,
    /// Play BurstGPT requests.
    #[arg(long)]
    use_burst_trace: bool,
    /// A file, a directory of .csv files or a pattern with * and ?
    /// [default: BurstGPT/data/BurstGPT_1.csv].
    #[arg(long, value_name = "PATH")]
    burst_trace_path: Option<String>,
    /// Play any request trace.
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// A row of `wavetank list formats`.
    #[arg(long, value_name = "NAME")]
    trace_format: Option<String>,
    /// Tokens per hash id of --trace, where it has ids [default: 512].
    #[arg(long, value_name = "TOKENS")]
    trace_block_size: Option<u32>,
    /// Divide recorded times; 0 is each request after the answer before [default: 1].
    #[arg(long, value_name = "RATIO")]
    trace_speedup: Option<f64>,
    /// Play it so often; 0 is without end [default: 0].
    #[arg(long, value_name = "N")]
    replay_cycles: Option<u64>,
    /// Requests of a dataset per second; 0 is each after the answer before
    /// [default: 0].
    #[arg(long, value_name = "PER_S")]
    request_rate: Option<f64>,
    /// Compare the hit rate with that of a recorded run.
    #[arg(long, value_name = "FILE")]
    validation_trace: Option<PathBuf>,
}

#[derive(Args)]
#[command(next_help_heading = "Autoscaling")]
struct AutoscalingFlags {
    /// Add and remove users while it runs.
    #[arg(long)]
    enable_autoscaling: bool,
    /// qos (the most users that are served well) or capacity (the most tokens per second)
    /// [default: qos].
    #[arg(long, value_name = "MODE", value_parser = choice::<ScaleMode>)]
    autoscaler_mode: Option<ScaleMode>,
    /// What qos keeps [default: 0.8].
    #[arg(long, value_name = "RATIO")]
    target_saturation: Option<f64>,
    /// Between two decisions [default: 10].
    #[arg(long, value_name = "SECONDS")]
    scale_interval: Option<f64>,
}

#[derive(Args)]
#[command(next_help_heading = "Assessment")]
struct AssessmentFlags {
    /// latency or throughput [default: latency].
    #[arg(long, value_name = "NAME", value_parser = choice::<Profile>)]
    performance_profile: Option<Profile>,
    /// P95 of reads at the storage device [default: 200].
    #[arg(long, value_name = "MS")]
    pass_read_p95_ms: Option<f64>,
    /// P95 of writes at the storage device [default: 500].
    #[arg(long, value_name = "MS")]
    pass_write_p95_ms: Option<f64>,
    /// P95 in main memory [default: 150].
    #[arg(long, value_name = "MS")]
    pass_cpu_p95_ms: Option<f64>,
    /// Share of lookups that hit [default: 0.3].
    #[arg(long, value_name = "RATIO")]
    pass_hit_rate: Option<f64>,
    /// Bandwidth of reads from storage [default: 0].
    #[arg(long, value_name = "GIB_PER_S")]
    pass_read_gbps: Option<f64>,
    /// Bandwidth of writes to storage [default: 0].
    #[arg(long, value_name = "GIB_PER_S")]
    pass_write_gbps: Option<f64>,
}

#[derive(Args)]
#[command(next_help_heading = "Tracing")]
struct TracingFlags {
    /// Log every operation instead of doing it, in virtual time; .zst is compressed.
    #[arg(long, value_name = "FILE")]
    io_trace_log: Option<PathBuf>,
    /// Histograms of the block layer by bpftrace, where it is installed and permitted.
    #[arg(long)]
    enable_latency_tracing: bool,
}

/// Where results go, and what is said meanwhile.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(super) struct BenchOutputFlags {
    /// Run the plan of a report again; only output flags can be added.
    #[arg(long, value_name = "FILE")]
    pub(super) plan: Option<PathBuf>,
    /// Where the report goes [default: benchmark_results_TIME.json, or
    /// rankN.json].
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Write a table too: .xlsx, or .csv.
    #[arg(long, value_name = "FILE")]
    pub(super) xlsx_output: Option<PathBuf>,
    /// Write what went to storage as a job for fio.
    #[arg(long, value_name = "FILE")]
    pub(super) fio_job: Option<PathBuf>,
    /// Add the plan, the machine, every trial and checksums to a package that can be
    /// submitted; see `bench check`.
    #[arg(long, value_name = "DIR")]
    pub(super) mlperf: Option<PathBuf>,
    #[command(flatten)]
    pub(super) pictures: PictureFlags,
    /// Say nothing while it runs.
    #[arg(long)]
    quiet: bool,
    /// DEBUG, INFO, WARNING, ERROR or CRITICAL; the last three are --quiet [default: INFO].
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS, ignore_case = true)]
    log_level: Option<String>,
}

const LEVELS: [&str; 5] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

impl BenchOutputFlags {
    /// Whether nothing is said while it runs.
    pub(super) fn is_quiet(&self) -> bool {
        let is_loud = |level: &String| LEVELS[..2].iter().any(|loud| loud.eq_ignore_ascii_case(level));
        self.quiet || self.log_level.as_ref().is_some_and(|level| !is_loud(level))
    }
}

impl From<BenchFlags> for BenchArgs {
    fn from(flags: BenchFlags) -> Self {
        let mut args = Self::default();
        flags.run.enter(&mut args);
        flags.tiers.enter(&mut args);
        flags.load.enter(&mut args);
        flags.recordings.enter(&mut args);
        flags.autoscaling.enter(&mut args);
        flags.assessment.enter(&mut args);
        flags.tracing.enter(&mut args);
        args
    }
}

impl RunFlags {
    fn enter(self, args: &mut BenchArgs) {
        args.model = self.model;
        args.num_users = self.num_users;
        args.duration = self.duration;
        args.warmup = self.warmup;
        args.seed = self.seed;
        args.config = self.config;
        args.generation_mode = self.generation_mode;
        args.max_requests = self.max_requests;
        args.trials = self.trials;
        args.trials_ci = self.trials_ci;
        args.trials_max = self.trials_max;
        args.cooldown = self.cooldown;
        args.drop_page_cache = self.drop_page_cache;
        args.strict = self.strict;
        args.rank = self.rank;
        args.ranks = self.ranks;
    }
}

impl TiersFlags {
    fn enter(self, args: &mut BenchArgs) {
        args.gpu_mem_gb = self.gpu_mem_gb;
        args.num_gpus = self.num_gpus;
        args.tensor_parallel = self.tensor_parallel;
        args.gpu_tier = self.gpu_tier;
        args.gpu_device = self.gpu_device;
        args.cpu_mem_gb = self.cpu_mem_gb;
        args.cpu_mem_backed = self.cpu_mem_backed;
        args.cache_dir = self.cache_dir;
        args.storage_capacity_gb = self.storage_capacity_gb;
        args.backend = self.backend;
        args.backend_options = self.backend_options;
        args.storage_location = self.storage_location;
        args.simulate = self.simulate;
        args.eviction = self.eviction;
        args.promotion = self.promotion;
        args.write_policy = self.write_policy;
        args.durable = self.durable;
        args.verify = self.verify;
        args.keep_cache = self.keep_cache;
        args.io_threads = self.io_threads;
        args.io_depth = self.io_depth;
        args.max_concurrent_allocs = self.max_concurrent_allocs;
        args.precondition = self.precondition;
        args.precondition_size_gb = self.precondition_size_gb;
        args.precondition_threads = self.precondition_threads;
    }
}

impl LoadFlags {
    fn enter(self, args: &mut BenchArgs) {
        args.load = self.load;
        args.persona_mix = self.persona_mix;
        args.queue_limit = self.queue_limit;
        args.aging = self.aging;
        args.read_policy = self.read_policy;
        args.disable_multi_turn = self.disable_multi_turn;
        args.disable_prefix_caching = self.disable_prefix_caching;
        args.enable_rag = self.enable_rag;
        args.rag_num_docs = self.rag_num_docs;
        args.prefill_only = self.prefill_only;
        args.decode_only = self.decode_only;
    }
}

impl RecordingsFlags {
    fn enter(self, args: &mut BenchArgs) {
        args.dataset_path = self.dataset_path;
        args.max_conversations = self.max_conversations;
        args.tokenizer = self.tokenizer;
        args.use_burst_trace = self.use_burst_trace;
        args.burst_trace_path = self.burst_trace_path;
        args.trace = self.trace;
        args.trace_format = self.trace_format;
        args.trace_block_size = self.trace_block_size;
        args.trace_speedup = self.trace_speedup;
        args.replay_cycles = self.replay_cycles;
        args.request_rate = self.request_rate;
        args.validation_trace = self.validation_trace;
    }
}

impl AutoscalingFlags {
    fn enter(self, args: &mut BenchArgs) {
        args.enable_autoscaling = self.enable_autoscaling;
        args.autoscaler_mode = self.autoscaler_mode;
        args.target_saturation = self.target_saturation;
        args.scale_interval = self.scale_interval;
    }
}

impl AssessmentFlags {
    fn enter(self, args: &mut BenchArgs) {
        args.performance_profile = self.performance_profile;
        args.pass_read_p95_ms = self.pass_read_p95_ms;
        args.pass_write_p95_ms = self.pass_write_p95_ms;
        args.pass_cpu_p95_ms = self.pass_cpu_p95_ms;
        args.pass_hit_rate = self.pass_hit_rate;
        args.pass_read_gbps = self.pass_read_gbps;
        args.pass_write_gbps = self.pass_write_gbps;
    }
}

impl TracingFlags {
    fn enter(self, args: &mut BenchArgs) {
        args.io_trace_log = self.io_trace_log;
        args.enable_latency_tracing = self.enable_latency_tracing;
    }
}

#[cfg(test)]
mod tests;
