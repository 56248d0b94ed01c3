//! `wavetank trace replay` of a recording of storage calls, in virtual time.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Command, FromArgMatches};
use wavetank::{
    BackgroundWork, CallMode, CallOutputs, CallPace, CallRecording, CallReplay, CallReplayArgs, CallVariant,
    Error, Expect, LoadPolicy, Payload, RecordedCalls, Result, StorageArgs, StorePolicy, WholeFile, choice,
    replay_calls,
};
use wavetank_report::render;

use super::words;
use crate::cmd::recording_flags::RecordingFlags;
use crate::exit::Exit;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::{limits, output};

#[derive(Args, Default, PartialEq)]
#[command(next_help_heading = "Recordings of calls (.lct)")]
pub(super) struct CallFlags {
    #[command(flatten)]
    storage: StorageFlags,
    /// The same calls on other storage, beside it: flags of storage, on top of those given; may be
    /// repeated. As --against "--l1-size-gb 1 --eviction-policy arc".
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    against: Vec<String>,
    /// Calls before this time are made to warm the tiers, and not counted.
    #[arg(long, value_name = "SECONDS")]
    from: Option<f64>,
    /// Calls from this time on are not made.
    #[arg(long, value_name = "SECONDS")]
    to: Option<f64>,
    /// The recording so many times, each round beginning where the one before ends; --from and
    /// --to count from the first.
    #[arg(long = "loop", value_name = "N")]
    rounds: Option<u32>,
    /// What outcomes are compared with: auto (what is recorded, else what later calls imply),
    /// recorded, implied or none [default: auto].
    #[arg(long, value_name = "WHAT", value_parser = choice::<Expect>)]
    expect: Option<Expect>,
    /// Threads that make the calls, where bytes move [default: 1].
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// What objects hold, where bytes move: zeros, or seeded, which is compared when it is read
    /// [default: zeros].
    #[arg(long, value_name = "WHAT", value_parser = choice::<Payload>)]
    payload: Option<Payload>,
    /// Exit with 1 when an outcome is other than recorded, or a record could not be read; with 2 when
    /// nothing can be compared.
    #[arg(long)]
    strict: bool,
    /// Recorded is the replay: its calls, what became of them, when background work was done.
    #[command(flatten)]
    recording: RecordingFlags,
    /// A JSON object per call.
    #[arg(long, value_name = "FILE")]
    jsonl_out: Option<PathBuf>,
    /// A directory for trace_replay_ops.csv and, with --json, trace_replay_summary.json
    /// [default: . with --json, else none].
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Write trace_replay_summary.json.
    #[arg(long)]
    json: bool,
    /// Do not write trace_replay_ops.csv.
    #[arg(long, requires = "json")]
    no_csv: bool,
    /// A line per call on standard error: when, what, and what became of its keys.
    #[arg(long)]
    verbose: bool,
    /// Print nothing on standard output.
    #[arg(short, long)]
    quiet: bool,
}

/// What calls are made on; --against takes these.
#[derive(Args, Default, PartialEq)]
struct StorageFlags {
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
    /// "eviction": {...}}, or with the type and "location" of a row of `wavetank list backends`;
    /// may be repeated; none is no such tier [default: as recorded by wavetank].
    #[arg(long, value_name = "JSON")]
    l2_adapter: Vec<String>,
    /// Whether an object stays in memory once it was copied behind: default or skip_l1
    /// [default: as recorded].
    #[arg(long, value_name = "NAME", value_parser = choice::<StorePolicy>)]
    l2_store_policy: Option<StorePolicy>,
    /// Whether an object that came from behind stays: default (until it was read) or retain
    /// [default: as recorded].
    #[arg(long, value_name = "NAME", value_parser = choice::<LoadPolicy>)]
    l2_prefetch_policy: Option<LoadPolicy>,
    /// From the end of a write to its copy behind, besides what bandwidth takes
    /// [default: as recorded, or 0].
    #[arg(long, value_name = "MS")]
    store_delay_ms: Option<f64>,
    /// When eviction loops look and copies end: recorded or simulated [default: recorded if the
    /// recording says it and the storage and --mode are as recorded].
    #[arg(long, value_name = "WHO", value_parser = choice::<BackgroundWork>)]
    background: Option<BackgroundWork>,
    /// When eviction loops looked: JSON with l1_ticks_s and l2_ticks_s.
    #[arg(long, value_name = "FILE")]
    ticks: Option<PathBuf>,
    /// Without --ticks: the first look after the first call; then a second after each
    /// [default: as recorded, or 1].
    #[arg(long, value_name = "SECONDS", conflicts_with = "ticks")]
    tick_phase_s: Option<f64>,
    /// Without --ticks: what a look takes that lets objects leave [default: 0].
    #[arg(long, value_name = "MS", conflicts_with = "ticks")]
    tick_work_ms: Option<f64>,
    /// open (calls as they are), pinned (what they found then wins) or closed (callers read
    /// what they find and store what they do not) [default: open].
    #[arg(long, value_name = "NAME", value_parser = choice::<CallMode>)]
    mode: Option<CallMode>,
}

impl StorageFlags {
    fn args(self) -> StorageArgs {
        StorageArgs {
            l1_size_gb: self.l1_size_gb,
            l1_align_bytes: self.l1_align_bytes,
            l1_write_ttl_seconds: self.l1_write_ttl_seconds,
            l1_read_ttl_seconds: self.l1_read_ttl_seconds,
            eviction_policy: self.eviction_policy,
            eviction_trigger_watermark: self.eviction_trigger_watermark,
            eviction_ratio: self.eviction_ratio,
            l2_adapter: self.l2_adapter,
            l2_store_policy: self.l2_store_policy,
            l2_prefetch_policy: self.l2_prefetch_policy,
            store_delay_ms: self.store_delay_ms,
            background: self.background,
            ticks: self.ticks,
            tick_phase_s: self.tick_phase_s,
            tick_work_ms: self.tick_work_ms,
            mode: self.mode,
        }
    }
}

/// A recording, how fast its calls are made, and where the report goes.
pub(super) struct Calls<'a> {
    pub(super) file: &'a str,
    pub(super) pace: Option<CallPace>,
    pub(super) output: Option<&'a Path>,
}

pub(super) fn replay(calls: &Calls<'_>, flags: CallFlags) -> Result<Exit> {
    can_be_strict(&flags)?;
    let files = Files::of(calls, &flags)?;
    let CallFlags { strict, verbose, quiet, .. } = flags;
    let args = CallReplayArgs {
        recording: calls.file.to_owned(),
        against: flags.against.iter().map(|flags| variant(flags)).collect::<Result<Vec<_>>>()?,
        storage: flags.storage.args(),
        from_s: flags.from,
        to_s: flags.to,
        rounds: flags.rounds,
        expect: flags.expect,
        pace: calls.pace,
        threads: flags.threads,
        payload: flags.payload,
    };
    let stop = Interrupt::watch()?;
    limits::raise_open_files();
    let replayed = files.replay(&args, verbose, &stop)?;
    if !quiet {
        output::say(&replayed.to_string())?;
    }
    files.write(&replayed)?;
    if replayed.is_interrupted() {
        return Ok(Exit::from(INTERRUPTED));
    }
    let (broken, unstored) = (replayed.broken(), replayed.unstored());
    if broken > 0 {
        output::complain(&format!("error: objects that did not come as they were written: {broken}"));
    }
    if unstored > 0 {
        output::complain(&format!("error: objects that a device failed to store: {unstored}"));
    }
    if broken + unstored > 0 {
        return Ok(Exit::FAILED);
    }
    let complaint = if !replayed.is_faithful() {
        "an outcome is other than recorded, and --strict was asked for"
    } else if !replayed.is_whole() {
        "not all of the recording could be read, and --strict was asked for"
    } else if strict && !replayed.is_compared() {
        return Err(Error::usage("no outcome was compared: none is known of the calls that were counted")
            .at("--strict")
            .hint("--expect auto compares with what later calls imply; only the first round is compared"));
    } else {
        return Ok(Exit::DONE);
    };
    if !strict {
        return Ok(Exit::DONE);
    }
    output::complain(complaint);
    Ok(Exit::FAILED)
}

/// Whether outcomes are compared at all.
fn can_be_strict(flags: &CallFlags) -> Result<()> {
    let nothing = |what: &str, at: &str| {
        Err(Error::usage(format!("{what}: --strict has nothing to go by")).at(at.to_owned()))
    };
    match (flags.expect, flags.storage.mode) {
        _ if !flags.strict => Ok(()),
        (Some(Expect::None), _) => nothing("nothing is compared", "--expect none"),
        (_, Some(CallMode::Closed)) => {
            nothing("callers that decide again have no recorded outcome to meet", "--mode closed")
        }
        _ => Ok(()),
    }
}

/// One --against.
fn variant(flags: &str) -> Result<CallVariant> {
    let wrong = |what: String| {
        let hint = "flags of storage, as in \"--l1-size-gb 1 --eviction-policy arc\"";
        Error::usage(what).at("--against").hint(hint)
    };
    let words = words::split(flags).map_err(|what| wrong(what.to_owned()))?;
    if words.is_empty() {
        return Err(wrong("no flags".to_owned()));
    }
    let command = Command::new("--against").no_binary_name(true).disable_help_flag(true);
    let matches = StorageFlags::augment_args(command).try_get_matches_from(words);
    let parsed = matches.and_then(|matches| StorageFlags::from_arg_matches(&matches));
    let parsed = parsed.map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        wrong(first.trim_start_matches("error: ").to_owned())
    })?;
    Ok(CallVariant { flags: flags.to_owned(), storage: parsed.args() })
}

/// Where everything goes.
struct Files {
    report: Option<PathBuf>,
    csv: Option<PathBuf>,
    summary: Option<PathBuf>,
    jsonl: Option<PathBuf>,
    recording: Option<CallRecording>,
}

impl Files {
    fn of(calls: &Calls<'_>, flags: &CallFlags) -> Result<Self> {
        let here = flags.json.then(|| PathBuf::from("."));
        let folder = flags.output_dir.clone().or(here);
        let inside = |name: &str| folder.as_ref().map(|folder| folder.join(name));
        let files = Self {
            report: calls.output.map(Path::to_owned),
            csv: inside("trace_replay_ops.csv").filter(|_| !flags.no_csv),
            summary: inside("trace_replay_summary.json").filter(|_| flags.json),
            jsonl: flags.jsonl_out.clone(),
            recording: flags.recording.recording()?,
        };
        let named = [
            ("the input", Some(Path::new(calls.file))),
            ("--output", files.report.as_deref()),
            ("--output-dir", files.csv.as_deref()),
            ("--json", files.summary.as_deref()),
            ("--jsonl-out", files.jsonl.as_deref()),
            ("--trace-output", files.recording.as_ref().map(|recording| recording.path.as_path())),
        ];
        let named: Vec<(&str, &Path)> =
            named.into_iter().filter_map(|(flag, path)| Some((flag, path?))).collect();
        output::keep_apart(&named)?;
        if let Some(recording) = &files.recording {
            output::keep_parts_apart(recording, &named)?;
        }
        named.iter().skip(1).try_for_each(|(_, path)| output::try_out(path))?;
        Ok(files)
    }

    fn replay(&self, args: &CallReplayArgs, verbose: bool, stop: &Interrupt) -> Result<CallReplay> {
        let mut jsonl = self.jsonl.as_deref().map(WholeFile::begin).transpose()?;
        let mut words = verbose.then(|| BufWriter::new(io::stderr()));
        let outputs = CallOutputs {
            recording: self.recording.as_ref(),
            jsonl: jsonl.as_mut().map(|out| out as &mut dyn Write),
            verbose: words.as_mut().map(|out| out as &mut dyn Write),
            stop: Arc::clone(&stop.raised),
            loaded: Arc::clone(&stop.loaded),
        };
        let replayed = replay_calls(args, outputs)?;
        if let Some(RecordedCalls { files, calls, lost, .. }) = &replayed.recorded {
            let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
            let files = files.join(", ");
            output::complain(&format!("the replay is recorded in {files}: {calls} calls, {lost} lost"));
        }
        jsonl.map_or(Ok(()), WholeFile::keep)?;
        Ok(replayed)
    }

    fn write(&self, replayed: &CallReplay) -> Result<()> {
        if let Some(path) = &self.csv {
            output::write(path, |out| out.write_all(replayed.operations_csv().as_bytes()))?;
        }
        if let Some(path) = &self.summary {
            output::write(path, |out| render::json::write(&replayed.summary_json(), out))?;
        }
        if let Some(path) = &self.report {
            output::write(path, |out| render::json::write(&replayed.json(), out))?;
        }
        Ok(())
    }
}
