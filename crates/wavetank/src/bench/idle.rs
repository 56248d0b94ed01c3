//! Flags that were typed and have no effect in the chosen mode: each is a warning, never silence.

use wavetank_bench::{Arrivals, Feed, Plan, Role, ScaleMode};
use wavetank_cache::{Promotion, WritePolicy};
use wavetank_model::TierRole;
use wavetank_store::backend::Location;
use wavetank_store::backends;

use wavetank_report::storage::Profile;

use super::args::GpuTier;
use super::draft::Draft;
use super::feed::SHAREGPT;
use super::plan::DatasetPlan;
use super::trials::TrialCount;

/// Whether a flag was typed for nothing, the flag, and why.
type Row = (bool, &'static str, &'static str);

impl Draft<'_> {
    /// Warns of every flag without effect.
    pub(super) fn note_idle(&mut self, run: &Plan, dataset: Option<&DatasetPlan>) {
        let rows = [self.idle_load(run, dataset), self.idle_tiers(run), self.idle_modes(run)];
        for (_, flag, why) in rows.into_iter().flatten().filter(|(idle, _, _)| *idle) {
            self.warn(format!("{flag} has no effect: {why}"));
        }
    }

    fn idle_load(&self, run: &Plan, dataset: Option<&DatasetPlan>) -> Vec<Row> {
        let args = self.args;
        let played = dataset.is_some();
        let has_text = dataset.is_some_and(|dataset| dataset.format == SHAREGPT);
        let arrivals = match run.feed {
            Feed::Recording { arrivals, .. } => Some(arrivals),
            Feed::Users(_) => None,
        };
        let recorded = matches!(arrivals, Some(Arrivals::Recorded { .. }));
        let on_answer = matches!(arrivals, Some(Arrivals::OnAnswer));
        let none = "there is no recording";
        let rate = args.request_rate.is_some_and(|rate| rate > 0.0);
        let speedup = args.trace_speedup.is_some();
        let paced = "a recording decides when requests come";
        vec![
            (rate && !played, "--request-rate", "there is no dataset"),
            (rate && recorded, "--request-rate", "a burst trace has its own times"),
            (speedup && !played, "--trace-speedup", none),
            (speedup && played && !recorded && !on_answer, "--trace-speedup", "--request-rate sets the pace"),
            (speedup && has_text && on_answer, "--trace-speedup", "the dataset has no times"),
            (args.replay_cycles.is_some_and(|n| n > 0) && !played, "--replay-cycles", none),
            (args.max_conversations.is_some() && !played, "--max-conversations", none),
            (args.trace_format.is_some() && args.trace.is_none(), "--trace-format", "there is no --trace"),
            (
                args.trace_block_size.is_some() && args.trace.is_none(),
                "--trace-block-size",
                "there is no --trace",
            ),
            (args.tokenizer.is_some() && !has_text, "--tokenizer", "there are no texts to count"),
            (
                args.burst_trace_path.is_some() && !args.use_burst_trace,
                "--burst-trace-path",
                "--use-burst-trace is not given",
            ),
            (args.load.is_some() && played, "--load", paced),
            (args.persona_mix.is_some() && played, "--persona-mix", "a recording has no personas"),
            (args.rag_num_docs.is_some() && !args.enable_rag, "--rag-num-docs", "--enable-rag is not given"),
        ]
    }

    fn idle_tiers(&self, run: &Plan) -> Vec<Row> {
        let args = self.args;
        let kind = args.gpu_tier.unwrap_or_default();
        let has = |role: TierRole| run.tiers.iter().any(|tier| tier.role == role);
        let is_cuda = run.tiers.iter().any(|tier| tier.backend == "cuda");
        let logged = self.is_logged();
        let site = args.backend.as_deref().unwrap_or("direct");
        let site = backends::backend(site).map_or(Location::Directory, |entry| entry.caps.location);
        let in_folder = site == Location::Directory && !logged;
        let by_address = matches!(site, Location::Url | Location::Device) && !logged;
        let keeps = |backend: &str| backends::backend(backend).is_ok_and(|entry| entry.caps.keeps_bytes);
        let alone = run.tiers.len() == 1;
        let asks_gpu = args.gpu_mem_gb.is_some_and(|gigabytes| gigabytes > 0.0);
        let around = args.write_policy == Some(WritePolicy::Around);
        let stays = run.rules.promotion == Promotion::Never;
        let log = "--io-trace-log moves no bytes";
        let (modelled, media) = (self.is_simulated(), "--simulate has media in place of devices");
        vec![
            (asks_gpu && kind == GpuTier::Off, "--gpu-mem-gb", "--gpu-tier is off"),
            (args.gpu_device.is_some() && !is_cuda, "--gpu-device", "no tier is on a real GPU"),
            (
                args.gpu_tier.is_some_and(|kind| kind != GpuTier::Off) && !has(TierRole::Gpu),
                "--gpu-tier",
                "there is no GPU tier",
            ),
            (args.cpu_mem_backed && !has(TierRole::Cpu), "--cpu-mem-backed", "--cpu-mem-gb is 0"),
            (args.cpu_mem_backed && logged, "--cpu-mem-backed", log),
            (args.cache_dir.is_some() && !in_folder, "--cache-dir", "storage is no directory"),
            (args.storage_location.is_some() && !by_address, "--storage-location", "--cache-dir says where"),
            (args.backend.is_some() && logged, "--backend", log),
            (!args.backend_options.is_empty() && logged, "--backend-option", log),
            (args.durable && logged, "--durable", log),
            (!args.backend_options.is_empty() && modelled, "--backend-option", media),
            (args.durable && modelled, "--durable", media),
            (
                args.verify && !run.tiers.iter().any(|tier| keeps(&tier.backend)),
                "--verify",
                "no tier keeps bytes",
            ),
            (
                args.keep_cache && !(in_folder && args.cache_dir.is_some()),
                "--keep-cache",
                "there is no --cache-dir to keep entries in",
            ),
            (args.promotion.is_some() && alone && !stays, "--promotion", "there is only one tier"),
            (args.write_policy.is_some() && alone, "--write-policy", "there is only one tier"),
            (
                around && stays && !alone,
                "every tier but the last",
                "--write-policy around fills them by promotion only, and --promotion is never",
            ),
            (args.io_depth.is_some() && logged, "--io-depth", log),
            (args.io_threads.is_some() && logged, "--io-threads", log),
        ]
    }

    fn idle_modes(&self, run: &Plan) -> Vec<Row> {
        let args = self.args;
        let fixed = "--enable-autoscaling is not given";
        let scales = args.enable_autoscaling;
        let seeks = run.scaling.is_some_and(|scaling| scaling.mode == ScaleMode::Capacity);
        let precondition = "--precondition is not given";
        let profile = args.performance_profile.unwrap_or_default();
        let (latency, throughput) = (profile == Profile::Latency, profile == Profile::Throughput);
        let by_latency = "--performance-profile is latency";
        let by_throughput = "--performance-profile is throughput";
        let prefills = run.role == Role::Prefill;
        let counted = args.trials != Some(TrialCount::Auto);
        let alone = matches!(args.trials, None | Some(TrialCount::Number(1)));
        vec![
            (args.autoscaler_mode.is_some() && !scales, "--autoscaler-mode", fixed),
            (args.target_saturation.is_some() && !scales, "--target-saturation", fixed),
            (args.target_saturation.is_some() && seeks, "--target-saturation", "capacity has no target"),
            (args.scale_interval.is_some() && !scales, "--scale-interval", fixed),
            (
                args.precondition_size_gb.is_some() && !args.precondition,
                "--precondition-size-gb",
                precondition,
            ),
            (
                args.precondition_threads.is_some() && !args.precondition,
                "--precondition-threads",
                precondition,
            ),
            (args.pass_read_p95_ms.is_some() && throughput, "--pass-read-p95-ms", by_throughput),
            (args.pass_write_p95_ms.is_some() && throughput, "--pass-write-p95-ms", by_throughput),
            (args.pass_cpu_p95_ms.is_some() && throughput, "--pass-cpu-p95-ms", by_throughput),
            (args.pass_hit_rate.is_some() && throughput, "--pass-hit-rate", by_throughput),
            (args.pass_read_gbps.is_some() && latency, "--pass-read-gbps", by_latency),
            (args.pass_write_gbps.is_some() && latency, "--pass-write-gbps", by_latency),
            (
                args.read_policy.is_some() && prefills,
                "--read-policy",
                "--prefill-only reads no entry of its own",
            ),
            (args.trials_ci.is_some() && counted, "--trials-ci", "--trials is not auto"),
            (args.trials_max.is_some() && counted, "--trials-max", "--trials is not auto"),
            (args.cooldown.is_some() && alone, "--cooldown", "there is one trial"),
            (args.drop_page_cache && self.is_logged(), "--drop-page-cache", "--io-trace-log moves no bytes"),
        ]
    }
}
