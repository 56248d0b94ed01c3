//! The requests of a measured run, at the times they reached its engine.

use std::path::{Path, PathBuf};
use std::vec;

use wavetank_model::{Error, Nanos, Opening, Request, Result, SessionId, Workload};
use wavetank_trace::requests::{ReadOptions, Source};
use wavetank_trace::{Loaded, Options, Starts};

/// How long before its timestamp in the workload a request reached the engine, on the measured clock, whose
/// zero is when request 0 did. Found by matching events of the public runs.
const LEAD: Nanos = Nanos(62_500_000);

/// The requests of a run, by row; all times are [`LEAD`] after the measured clock, so that none is negative.
pub(super) struct Schedule {
    pub(super) path: PathBuf,
    pub(super) format: &'static str,
    openings: Vec<Opening>,
}

impl Schedule {
    /// Reads a workload whose hash ids stand for `tokens_per_id` tokens each.
    pub(super) fn read(path: PathBuf, tokens_per_id: u32) -> Result<Self> {
        let format = "mooncake";
        let read = ReadOptions { tokens_per_id: Some(tokens_per_id), ..ReadOptions::default() };
        let options = Options { read, ..Options::of(Starts::Scheduled { speedup: 1.0 }) };
        let source = Source::of(&[path.display().to_string()], Some(format))?;
        let Loaded { mut workload, survey } = wavetank_trace::open(&source, &options)?;
        if workload.has_follow_ups() {
            return Err(Error::input("requests wait for the end of others")
                .at(path.display().to_string())
                .hint(
                    "the workload of a measured run has one request per row, without session_id or wait_for",
                ));
        }
        let origin = Nanos(survey.first_start.nanos.unsigned_abs());
        let mut openings = Vec::new();
        while let Some(mut opening) = workload.open()? {
            // Request 0 is the zero of the measured clock, and nothing is there before it.
            let first = opening.request.session == SessionId(0);
            opening.at = if first { LEAD } else { (opening.at + origin).max(LEAD) };
            openings.push(opening);
        }
        openings.sort_by_key(|opening| opening.request.session);
        Ok(Self { path, format, openings })
    }

    /// How many requests.
    pub(super) fn len(&self) -> usize {
        self.openings.len()
    }

    /// Prompt and output tokens of row `index`.
    pub(super) fn tokens(&self, index: usize) -> (u32, u32) {
        let request = &self.openings[index].request;
        (request.prompt.tokens(), request.output_tokens)
    }

    /// As many blocks as the requests could ever use together.
    pub(super) fn blocks(&self, block_size: u32) -> u32 {
        let blocks = |opening: &Opening| {
            let Request { prompt, output_tokens, .. } = &opening.request;
            (u64::from(prompt.tokens()) + u64::from(*output_tokens)).div_ceil(u64::from(block_size)) + 1
        };
        let most = u64::from(u32::MAX / block_size);
        self.openings.iter().map(blocks).sum::<u64>().min(most) as u32
    }

    /// The requests as a simulation takes them.
    pub(super) fn workload(&self) -> Arrivals {
        let mut openings = self.openings.clone();
        openings.sort_by_key(|opening| opening.at);
        Arrivals { requests: openings.len() as u64, openings: openings.into_iter() }
    }
}

/// Seconds on the measured clock.
pub(super) fn measured_clock(at: Nanos) -> f64 {
    (at.0 as f64 - LEAD.0 as f64) / 1e9
}

/// The first of the files that exists: `name` or `name.gz` in `dir`.
pub(super) fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    [dir.join(name), dir.join(format!("{name}.gz"))].into_iter().find(|path| path.exists())
}

/// Requests in the order of their arrival.
pub(super) struct Arrivals {
    requests: u64,
    openings: vec::IntoIter<Opening>,
}

impl Workload for Arrivals {
    fn open(&mut self) -> Result<Option<Opening>> {
        Ok(self.openings.next())
    }

    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        unreachable!("session {} of a measured run has no turn {turn}", session.0)
    }

    fn has_follow_ups(&self) -> bool {
        false
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_0_is_the_zero_and_the_others_lead_their_timestamps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.jsonl");
        let row = |ms: f64| {
            format!(r#"{{"timestamp":{ms},"input_length":17,"output_length":3,"hash_ids":[1,2]}}"#) + "\n"
        };
        std::fs::write(&path, [46.926_808, 50.0, 347.5].map(row).concat()).unwrap();
        let schedule = Schedule::read(path, 16).unwrap();
        let clock: Vec<f64> = schedule.openings.iter().map(|opening| measured_clock(opening.at)).collect();
        assert_eq!(clock, [0.0, 0.0, 0.285]);
        assert_eq!((schedule.tokens(2), schedule.blocks(16)), ((17, 3), 9));
    }
}
