//! Calls with the bytes they move, or without them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use wavetank_calls::{
    Contents, Keep, Listener, Manner, Pace, PlayOptions, PlayReport, Recording, Tally, play, replay_until,
};
use wavetank_model::{Error, Result};

use super::args::{CallPace, CallReplayArgs, Payload};

/// What seeded objects are made from.
const SEED: u64 = 42;
/// More threads than this wait for each other.
const MOST_THREADS: u32 = 256;

/// How bytes move; absent in virtual time, which has none.
pub(super) fn options(args: &CallReplayArgs) -> Result<Option<PlayOptions>> {
    let pace = match args.pace.unwrap_or_default() {
        CallPace::Virtual => return without_bytes(args).map(|()| None),
        CallPace::Max => Pace::Max,
        CallPace::Recorded(speed) => Pace::Recorded(speed),
    };
    let threads = args.threads.unwrap_or(1);
    if !(1..=MOST_THREADS).contains(&threads) {
        let wrong = format!("must be from 1 to {MOST_THREADS}, not {threads}");
        return Err(Error::usage(wrong).at("--threads"));
    }
    let contents = match args.payload.unwrap_or_default() {
        Payload::Zeros => Contents::Zeros,
        Payload::Seeded => Contents::Seeded(SEED),
    };
    let (keep, stop) = (Keep::Nothing, Arc::<AtomicBool>::default());
    Ok(Some(PlayOptions { pace, threads: threads as usize, contents, keep, stop }))
}

fn without_bytes(args: &CallReplayArgs) -> Result<()> {
    let typed = [("--threads", args.threads.is_some()), ("--payload", args.payload.is_some())];
    match typed.into_iter().find(|(_, typed)| *typed) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::usage("in virtual time there are no bytes and no threads")
            .at(flag)
            .hint("--pace max or recorded has them")),
    }
}

/// Makes the calls, until `stop` is raised; with bytes where there are options for them.
pub(super) fn make(
    recording: &Recording<'_>,
    manner: &Manner,
    (options, stop): (Option<&PlayOptions>, &AtomicBool),
    listener: Option<&mut dyn Listener>,
) -> Result<(Tally, Option<PlayReport>)> {
    match options {
        Some(options) => {
            play(recording, manner, options, listener).map(|(tally, report)| (tally, Some(report)))
        }
        None => {
            let mut listener = listener;
            let listener = listener.as_mut().map(|listener| listener as &mut dyn Listener);
            replay_until(recording, manner, stop, listener).map(|tally| (tally, None))
        }
    }
}
