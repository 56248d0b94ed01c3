//! `wavetank trace`: traces of requests looked into and reshaped; recorded storage calls, logs of operations.

mod anonymize;
mod calls;
mod convert;
mod files;
mod lint;
mod log;
mod merge;
mod mrc;
mod scale;
mod slice;
mod source_flags;
mod stats;
mod synth;
mod words;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use wavetank::{CallPace, Error, PlayPace, Result, guess_format, log_info, trace_info};

use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Say what a recording of storage calls (.lct) or a log of operations holds, and what of it
    /// cannot be read.
    Info(InfoFlags),
    /// Make the calls of a recording (.lct) again, or play a log of operations against a backend.
    Replay(Box<ReplayFlags>),
    /// Write a trace of requests in another format, and say what is filled and what is lost.
    Convert(convert::ConvertFlags),
    /// Tell every problem of a trace of requests, with file and line.
    Lint(lint::LintFlags),
    /// Write a trace that may be shown: names and ids re-mapped under a key, what is shared kept.
    Anonymize(anonymize::AnonymizeFlags),
    /// Write a part of a trace: whole sessions by time, number or chance.
    Slice(slice::SliceFlags),
    /// Write a trace at another rate, with copies of itself, or with other lengths.
    Scale(scale::ScaleFlags),
    /// Write several traces as one, by time.
    Merge(merge::MergeFlags),
    /// Write a trace of generated conversations.
    Synth(Box<synth::SynthFlags>),
    /// Say what share of a trace's blocks caches of different capacities and policies serve.
    Mrc(Box<mrc::MrcFlags>),
    /// Say what a request trace holds: lengths, rates, sessions, and what its prompts share.
    Stats(Box<stats::StatsFlags>),
}

#[derive(Args)]
struct InfoFlags {
    /// The recording or log, plain, .gz or .zst; - is standard input.
    #[arg(value_name = "FILE")]
    file: String,
    /// Its format: a row of `wavetank list calls` [default: by its name, with .lct or .csv in it, or
    /// else by how it begins].
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Stop before a record of an .lct that is larger, in MiB: a damaged length would be read into
    /// memory [default: 64].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=4095))]
    frame_limit: Option<u32>,
}

#[derive(Args)]
struct ReplayFlags {
    /// The recording or log, plain, .gz or .zst; - is standard input.
    #[arg(value_name = "FILE")]
    file: String,
    /// Its format: a row of `wavetank list calls` [default: by its name, with .lct or .csv in it, or
    /// else by how it begins].
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// Where the report goes.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// virtual (recordings: at once, without bytes), max, recorded, or so many times faster than
    /// recorded, as 2x [default: virtual for recordings, max for logs].
    #[arg(long, value_name = "PACE", value_parser = pace)]
    pace: Option<CallPace>,
    #[command(flatten)]
    calls: calls::CallFlags,
    #[command(flatten)]
    log: log::LogFlags,
}

const LCT: &str = "lct";

pub(crate) fn run(flags: Flags) -> Result<Exit> {
    match flags.what {
        What::Info(flags) => info(&flags),
        What::Replay(flags) => replay(*flags),
        What::Convert(flags) => convert::run(flags),
        What::Lint(flags) => lint::run(flags),
        What::Anonymize(flags) => anonymize::run(flags),
        What::Slice(flags) => slice::run(flags),
        What::Scale(flags) => scale::run(flags),
        What::Merge(flags) => merge::run(flags),
        What::Synth(flags) => synth::run(*flags),
        What::Mrc(flags) => mrc::run(&flags),
        What::Stats(flags) => stats::run(&flags),
    }
}

fn info(flags: &InfoFlags) -> Result<Exit> {
    let format = format_of(flags.format.as_deref(), &flags.file)?;
    if format != LCT {
        if flags.frame_limit.is_some() {
            return Err(Error::usage(format!("{format} has no frames")).at("--frame-limit"));
        }
        let info = log_info(&flags.file, format)?;
        output::say(&if flags.json { format!("{:#}\n", info.json()) } else { info.text() })?;
        return Ok(Exit::DONE);
    }
    let limit = flags.frame_limit.map(|mib| (mib as usize) << 20);
    let info = trace_info(&flags.file, limit)?;
    let text = || info.text(&date(info.wall_start_s));
    output::say(&if flags.json { format!("{:#}\n", info.json()) } else { text() })?;
    if info.is_whole() {
        return Ok(Exit::DONE);
    }
    output::complain(&format!("error: {} cannot be read to its end", info.file));
    Ok(Exit::FAILED)
}

/// Seconds since 1970 as a date of UTC; as they are where a calendar has none for them.
fn date(seconds: f64) -> String {
    match Timestamp::from_microsecond((seconds * 1e6).round() as i64) {
        Ok(moment) => format!("{moment:.6}"),
        Err(_) => format!("{seconds:.6} s since 1970"),
    }
}

fn format_of<'a>(given: Option<&'a str>, file: &str) -> Result<&'a str> {
    given.map_or_else(|| guess_format(file), Ok)
}

fn replay(flags: ReplayFlags) -> Result<Exit> {
    let ReplayFlags { file, format, output, pace, calls, log } = flags;
    if let Some(path) = &output {
        output::keep_apart(&[("the input", file.as_ref()), ("--output", path)])?;
    }
    let format = format_of(format.as_deref(), &file)?;
    let output = output.as_deref();
    let unfit = |kind: &str| {
        Err(Error::usage(format!("a flag of {kind} was given, and this is of format {format}"))
            .hint("see the headings of `wavetank trace replay --help`"))
    };
    if format == LCT {
        return if log == log::LogFlags::default() {
            calls::replay(&calls::Calls { file: &file, pace, output }, calls)
        } else {
            unfit("logs of operations")
        };
    }
    if calls != calls::CallFlags::default() {
        return unfit("recordings of calls");
    }
    let pace = match pace {
        None | Some(CallPace::Max) => PlayPace::Max,
        Some(CallPace::Recorded(speed)) => PlayPace::Recorded(speed),
        Some(CallPace::Virtual) => {
            return Err(Error::usage("a log of operations is played with its bytes")
                .at("--pace virtual")
                .hint("max, recorded, or a number above 0"));
        }
    };
    log::replay(&log::Log { file: &file, format, output, pace }, log)
}

fn pace(word: &str) -> std::result::Result<CallPace, String> {
    match (word, word.trim_end_matches('x').parse::<f64>()) {
        ("virtual", _) => Ok(CallPace::Virtual),
        ("max", _) => Ok(CallPace::Max),
        ("recorded", _) => Ok(CallPace::Recorded(1.0)),
        (_, Ok(speed)) if speed.is_finite() && speed > 0.0 => Ok(CallPace::Recorded(speed)),
        _ => Err("virtual, max, recorded, or a number above 0".to_owned()),
    }
}
