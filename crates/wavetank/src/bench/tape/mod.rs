//! `--trace-level storage`: calls on the store of a benchmark, recorded as an engine would have made them.

mod header;
mod scribe;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use wavetank_bench::{Call, Calls};
use wavetank_model::{Error, Nanos, Result};
use wavetank_trace::calls::lct::{LctOptions, Recording, check_place, is_later_part};
use wavetank_trace::recorder::{Kept, ROOM, Recorder, Recordist};

use super::plan::BenchPlan;
use scribe::StoreScribe;

/// Where calls are recorded, and how much of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecording {
    /// The file, compressed if it ends in `.zst`.
    pub path: PathBuf,
    /// A file that would be larger is followed by another; without it there is one.
    pub rotate_bytes: Option<u64>,
    /// The recording stops when all its files would be larger; without it, it does not.
    pub cap_bytes: Option<u64>,
}

impl CallRecording {
    /// How large its files get.
    pub(crate) fn options(&self) -> LctOptions {
        LctOptions { rotate_bytes: self.rotate_bytes, cap_bytes: self.cap_bytes }
    }

    /// Whether it may go on in a file of this name.
    pub fn may_go_on_in(&self, path: &Path) -> bool {
        self.rotate_bytes.is_some() && is_later_part(&self.path, path)
    }

    /// Refuses to write where another recording is being written, or to go on in a file that is there.
    pub fn check_place(&self) -> Result<()> {
        check_place(&self.path, self.options())
    }
}

/// What a recording came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedCalls {
    /// Its files in order.
    pub files: Vec<PathBuf>,
    /// Records in them.
    pub calls: u64,
    /// Bytes before compression.
    pub bytes: u64,
    /// Calls that are not in it.
    pub lost: u64,
    /// Why it ended before the run did; absent if it did not.
    pub failure: Option<String>,
}

impl RecordedCalls {
    /// What to know about it.
    pub(super) fn warnings(&self) -> Vec<String> {
        let name = self.files.first().map_or_else(String::new, |path| path.display().to_string());
        let failure = self.failure.as_ref().map(|why| format!("the recording ended early: {why}"));
        let lost =
            (self.lost > 0).then(|| format!("{} calls are missing in the recording {name}", self.lost));
        failure.into_iter().chain(lost).collect()
    }
}

/// What is noted on the data path.
#[derive(Clone, Copy)]
struct Noted {
    at: Nanos,
    call: Call,
}

/// A recording that runs.
pub(super) struct Tape {
    recordist: Recordist<Noted>,
}

impl Tape {
    /// Records the calls of trial `number`, from 1; each has its own file.
    pub(super) fn start(to: &CallRecording, plan: &BenchPlan, number: u32) -> Result<Self> {
        let path = trial_path(&to.path, number);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| Error::io(&path, error))?;
        }
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let header = header::of(plan, since_1970.as_secs_f64());
        let recording = Recording::buffered(&path, header, to.options())?;
        let recordist = Recordist::start(recording, StoreScribe::of(&plan.model), ROOM)?;
        Ok(Self { recordist })
    }

    /// Whom the store tells.
    pub(super) fn calls(&self) -> Arc<dyn Calls> {
        Arc::new(Overhearing { recorder: self.recordist.recorder(), started: Instant::now() })
    }

    /// Writes what was noted.
    pub(super) fn finish(self) -> Result<RecordedCalls> {
        let kept = self.recordist.finish()?;
        let lost = kept.lost();
        let Kept { written, failure, .. } = kept;
        Ok(RecordedCalls { files: written.files, calls: written.calls, bytes: written.bytes, lost, failure })
    }
}

/// Notes calls, at the wall's time unless the run has its own.
struct Overhearing {
    recorder: Recorder<Noted>,
    started: Instant,
}

impl Calls for Overhearing {
    fn hear(&self, call: Call, at: Option<Nanos>) {
        self.recorder.note(|| {
            let at = at.unwrap_or_else(|| Nanos(self.started.elapsed().as_nanos() as u64));
            Noted { at, call }
        });
    }
}

/// `x.lct` of the second trial is `x.trial-2.lct`.
fn trial_path(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if number < 2 {
        return path.to_owned();
    }
    let (stem, ending) = name.find(".lct").map_or((name.as_str(), ""), |at| name.split_at(at));
    path.with_file_name(format!("{stem}.trial-{number}{ending}"))
}
