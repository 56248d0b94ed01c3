//! `wavetank trace replay` of a recording of storage calls, in virtual time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use wavetank::{CallMode, CallReplayArgs, LoadPolicy, Result, StorePolicy, choice, replay_calls};
use wavetank_report::render;

use crate::output;

#[derive(Args, Default, PartialEq)]
#[command(next_help_heading = "Recordings of calls (.lct)")]
pub(super) struct CallFlags {
    /// Memory, in GiB; inf is no limit [default: as recorded].
    #[arg(long, value_name = "GIB")]
    l1_size_gb: Option<f64>,
    /// Objects take multiples of this [default: as recorded, or 4096].
    #[arg(long, value_name = "BYTES")]
    l1_align_bytes: Option<u64>,
    /// How long a write may take [default: as recorded, or 600].
    #[arg(long, value_name = "SECONDS")]
    l1_write_ttl_seconds: Option<f64>,
    /// How long a read may take [default: as recorded, or 300].
    #[arg(long, value_name = "SECONDS")]
    l1_read_ttl_seconds: Option<f64>,
    /// Who leaves memory: a row of `wavetank list eviction` [default: as recorded, or lru].
    #[arg(long, value_name = "NAME")]
    eviction_policy: Option<String>,
    /// From this part of memory on [default: as recorded, or 0.8].
    #[arg(long, value_name = "RATIO")]
    eviction_trigger_watermark: Option<f64>,
    /// This part of the objects [default: as recorded, or 0.2].
    #[arg(long, value_name = "RATIO")]
    eviction_ratio: Option<f64>,
    /// A tier behind memory: {"type": "mock", "max_size_gb": N, "mock_bandwidth_gb": N,
    /// "eviction": {...}}; may be repeated.
    #[arg(long, value_name = "JSON")]
    l2_adapter: Vec<String>,
    /// Whether an object stays in memory once it was copied behind: default or skip_l1.
    #[arg(long, value_name = "NAME", value_parser = choice::<StorePolicy>)]
    l2_store_policy: Option<StorePolicy>,
    /// Whether an object that came from behind stays: default (until it was read) or retain.
    #[arg(long, value_name = "NAME", value_parser = choice::<LoadPolicy>)]
    l2_prefetch_policy: Option<LoadPolicy>,
    /// From the end of a write to its copy behind, besides what bandwidth takes [default: 0].
    #[arg(long, value_name = "MS")]
    store_delay_ms: Option<f64>,
    /// When eviction loops looked: JSON with l1_ticks_s and l2_ticks_s.
    #[arg(long, value_name = "FILE")]
    ticks: Option<PathBuf>,
    /// Without --ticks: the first look after the first call; then a second after each
    /// [default: 1].
    #[arg(long, value_name = "SECONDS", conflicts_with = "ticks")]
    tick_phase_s: Option<f64>,
    /// Without --ticks: what a look takes that lets objects leave [default: 0].
    #[arg(long, value_name = "MS", conflicts_with = "ticks")]
    tick_work_ms: Option<f64>,
    /// open (calls as they are), pinned (what they found then wins) or closed (callers read
    /// what they find and store what they do not) [default: open].
    #[arg(long, value_name = "NAME", value_parser = choice::<CallMode>)]
    mode: Option<CallMode>,
    /// Exit with 1 when an outcome is other than recorded.
    #[arg(long)]
    strict: bool,
}

pub(super) fn replay(recording: &str, report: Option<&Path>, flags: CallFlags) -> Result<ExitCode> {
    let args = CallReplayArgs {
        recording: recording.to_owned(),
        l1_size_gb: flags.l1_size_gb,
        l1_align_bytes: flags.l1_align_bytes,
        l1_write_ttl_seconds: flags.l1_write_ttl_seconds,
        l1_read_ttl_seconds: flags.l1_read_ttl_seconds,
        eviction_policy: flags.eviction_policy,
        eviction_trigger_watermark: flags.eviction_trigger_watermark,
        eviction_ratio: flags.eviction_ratio,
        l2_adapter: flags.l2_adapter,
        l2_store_policy: flags.l2_store_policy,
        l2_prefetch_policy: flags.l2_prefetch_policy,
        store_delay_ms: flags.store_delay_ms,
        ticks: flags.ticks,
        tick_phase_s: flags.tick_phase_s,
        tick_work_ms: flags.tick_work_ms,
        mode: flags.mode,
    };
    let replayed = replay_calls(&args)?;
    output::say(&replayed.to_string())?;
    if let Some(path) = report {
        output::write(path, |out| render::json::write(&replayed.json(), out))?;
    }
    if flags.strict && !replayed.is_faithful() {
        output::complain("an outcome is other than recorded, and --strict was asked for");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
