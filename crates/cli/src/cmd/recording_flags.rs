//! The flags of every verb that can record calls on its store.

use std::path::{Path, PathBuf};

use clap::Args;
use wavetank::{CallRecording, Error, Result};

/// What is recorded, and where.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Recording")]
pub(crate) struct RecordingFlags {
    /// Record calls on the store: storage (events is read, not written).
    #[arg(long, value_name = "LEVEL")]
    trace_level: Option<String>,
    /// Where calls are recorded, .lct or .lct.zst; implies --trace-level storage [default:
    /// wavetank-trace-PID-TIME.lct in the directory for temporary files].
    #[arg(long, value_name = "FILE")]
    trace_output: Option<PathBuf>,
    /// Go on in another file at so many 10^6 bytes, before compression: x.lct, x.2.lct.
    #[arg(long, value_name = "MB")]
    trace_rotate_mb: Option<f64>,
    /// Stop recording at so many 10^6 bytes in all.
    #[arg(long, value_name = "MB")]
    trace_cap_mb: Option<f64>,
}

impl RecordingFlags {
    /// These, and those of a server's configuration where there is none.
    pub(crate) fn or(self, under: &wavetank_serve::Args) -> Self {
        Self {
            trace_level: self.trace_level.or_else(|| under.trace_level.clone()),
            trace_output: self.trace_output.or_else(|| under.trace_output.clone()),
            trace_rotate_mb: self.trace_rotate_mb.or(under.trace_rotate_mb),
            trace_cap_mb: self.trace_cap_mb.or(under.trace_cap_mb),
        }
    }

    /// What was asked for; nothing if nothing is recorded.
    pub(crate) fn recording(&self) -> Result<Option<CallRecording>> {
        match self.trace_level.as_deref() {
            Some("storage") => {}
            Some("events") => {
                return Err(Error::usage("recordings of level events are read, not written")
                    .at("--trace-level")
                    .hint("use storage"));
            }
            Some(other) => {
                return Err(Error::usage(format!("unknown level \"{other}\""))
                    .at("--trace-level")
                    .hint("use storage"));
            }
            None if self.trace_output.is_some() => {}
            None => return self.nothing(),
        }
        let path = self.trace_output.clone().unwrap_or_else(default_path);
        check_name(&path)?;
        Ok(Some(CallRecording {
            path,
            rotate_bytes: bytes("--trace-rotate-mb", self.trace_rotate_mb)?,
            cap_bytes: bytes("--trace-cap-mb", self.trace_cap_mb)?,
        }))
    }

    fn nothing(&self) -> Result<Option<CallRecording>> {
        let sizes = [("--trace-rotate-mb", self.trace_rotate_mb), ("--trace-cap-mb", self.trace_cap_mb)];
        match sizes.iter().find(|(_, size)| size.is_some()) {
            Some((flag, _)) => {
                Err(Error::usage("nothing is recorded").at(*flag).hint("give --trace-level storage"))
            }
            None => Ok(None),
        }
    }
}

fn check_name(path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".lct") || name.ends_with(".lct.zst") {
        return Ok(());
    }
    Err(Error::usage("a recording is called .lct, or .lct.zst if it is to be compressed")
        .at(format!("--trace-output {}", path.display())))
}

fn bytes(flag: &str, megabytes: Option<f64>) -> Result<Option<u64>> {
    let Some(size) = megabytes else { return Ok(None) };
    // Below this a header fills a file.
    if !(0.01..=1e12).contains(&size) {
        return Err(Error::usage(format!("must be 0.01 or more, not {size}")).at(flag));
    }
    Ok(Some((size * 1e6) as u64))
}

/// A name that no other process has, with the time in UTC.
fn default_path() -> PathBuf {
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    std::env::temp_dir().join(format!("wavetank-trace-{}-{time}.lct", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(flags: &RecordingFlags) -> String {
        flags.recording().unwrap_err().to_string()
    }

    #[test]
    fn a_level_or_a_file_is_enough() {
        assert_eq!(RecordingFlags::default().recording().unwrap(), None);
        let named = RecordingFlags { trace_output: Some("a.lct.zst".into()), ..Default::default() };
        assert_eq!(named.recording().unwrap().unwrap().path, Path::new("a.lct.zst"));
        let level = RecordingFlags {
            trace_level: Some("storage".into()),
            trace_rotate_mb: Some(1.5),
            ..Default::default()
        };
        let recording = level.recording().unwrap().unwrap();
        assert_eq!((recording.rotate_bytes, recording.cap_bytes), (Some(1_500_000), None));
        let name = recording.path.file_name().unwrap().to_string_lossy().into_owned();
        let parts: Vec<&str> = name.strip_suffix(".lct").unwrap().split('-').collect();
        assert_eq!((&parts[..2], parts.len()), (&["wavetank", "trace"][..], 5));
        assert_eq!(parts[2], std::process::id().to_string());
        assert_eq!((parts[3].len(), parts[4].len()), (8, 6));
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        let events = RecordingFlags { trace_level: Some("events".into()), ..Default::default() };
        assert!(said(&events).contains("read, not written"));
        let other = RecordingFlags { trace_level: Some("all".into()), ..Default::default() };
        assert!(said(&other).contains("unknown level \"all\""));
        let size = RecordingFlags { trace_cap_mb: Some(1.0), ..Default::default() };
        assert!(said(&size).contains("nothing is recorded"));
        let csv = RecordingFlags { trace_output: Some("a.csv".into()), ..Default::default() };
        assert!(said(&csv).contains("is called .lct"));
        let small = RecordingFlags {
            trace_output: Some("a.lct".into()),
            trace_cap_mb: Some(0.0),
            ..Default::default()
        };
        assert!(said(&small).contains("--trace-cap-mb"));
    }
}
