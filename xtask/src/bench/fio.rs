//! fio, from Debian's packages.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::rate::Rate;
use crate::process::{self, text_of};

/// Makes sure that fio is there; gives its version.
pub(super) fn install() -> Result<String, String> {
    let version = || text_of("fio", &["--version"]);
    version().or_else(|_| {
        process::run(Command::new("apt-get").args(["install", "-y", "-qq", "fio"]))?;
        version()
    })
}

/// What fio is asked to do.
pub(super) struct Job<'a> {
    /// fio's name for it: `read`, `write` or `rw`.
    pub(super) way: &'a str,
    pub(super) folder: &'a Path,
    /// Bytes of a file, and how many there are; those that are not there are made first, outside the
    /// measurement.
    pub(super) size: u64,
    pub(super) files: u64,
    /// Bytes of one request.
    pub(super) piece: u64,
    pub(super) depth: usize,
    /// What else is asked for.
    pub(super) more: Vec<String>,
}

/// Runs fio: io_uring, direct, registered buffers, one job. Gives what it read and what it wrote.
pub(super) fn run(job: &Job<'_>) -> Result<[Rate; 2], String> {
    let Job { way, folder, size, files, piece, depth, more } = job;
    let mut args = vec![
        "--name=entries".to_owned(),
        format!("--directory={}", folder.display()),
        format!("--rw={way}"),
        format!("--nrfiles={files}"),
        format!("--filesize={size}"),
        format!("--size={}", files * size),
        format!("--bs={}", size.min(piece)),
        format!("--iodepth={depth}"),
        "--ioengine=io_uring".to_owned(),
        "--direct=1".to_owned(),
        "--fixedbufs=1".to_owned(),
        "--output-format=json".to_owned(),
    ];
    args.extend(more.iter().cloned());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    rates(&text_of("fio", &args)?)
}

/// Runs fio with the job in a file, whose jobs are reported as one.
pub(super) fn run_job(file: &Path) -> Result<[Rate; 2], String> {
    rates(&text_of("fio", &["--output-format=json", &file.display().to_string()])?)
}

/// fio's own figures: bytes, the run time of its I/O phase, and the shares of it spent on the CPU.
fn rates(report: &str) -> Result<[Rate; 2], String> {
    let start = report.find('{').ok_or("fio printed no report")?;
    let report: Value = serde_json::from_str(&report[start..]).map_err(|e| format!("fio's report: {e}"))?;
    let job = &report["jobs"][0];
    let number =
        |value: &Value, name: &str| value.as_f64().ok_or_else(|| format!("fio's report has no {name}"));
    let busy = number(&job["usr_cpu"], "usr_cpu")? + number(&job["sys_cpu"], "sys_cpu")?;
    let cpu_s = busy / 100.0 * number(&job["job_runtime"], "job_runtime")? / 1000.0;
    let rate = |way: &str| -> Result<Rate, String> {
        let bytes = number(&job[way]["io_bytes"], "io_bytes")?;
        let per_second = number(&job[way]["bw_bytes"], "bw_bytes")?;
        Ok(Rate { bytes, seconds: if per_second > 0.0 { bytes / per_second } else { 0.0 }, cpu_s })
    };
    Ok([rate("read")?, rate("write")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let report = r#"note: both iodepth >= 1
            {"jobs":[{"read":{"io_bytes":2000,"bw_bytes":1000},"write":{"io_bytes":0,"bw_bytes":0},
                      "usr_cpu":10.0,"sys_cpu":15.0,"job_runtime":4000}]}"#;
        let [read, written] = rates(report).unwrap();
        assert_eq!(read, Rate { bytes: 2000.0, seconds: 2.0, cpu_s: 1.0 });
        assert_eq!(written, Rate { bytes: 0.0, seconds: 0.0, cpu_s: 1.0 });
        assert!(rates("{}").is_err() && rates("").is_err());
    }
}
