//! fio, from Debian's packages.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{PIECE, Rate, TOTAL};
use crate::process::{self, text_of};

/// Makes sure that fio is there; gives its version.
pub(super) fn install() -> Result<String, String> {
    let version = || text_of("fio", &["--version"]);
    version().or_else(|_| {
        process::run(Command::new("apt-get").args(["install", "-y", "-qq", "fio"]))?;
        version()
    })
}

/// Reads or writes files of `size` bytes in `folder`; files that are not there are made first, outside the
/// measurement.
pub(super) fn run(way: &str, folder: &Path, size: u64, depth: usize) -> Result<Rate, String> {
    let files = TOTAL / size;
    let args = [
        "--name=entries".to_owned(),
        format!("--directory={}", folder.display()),
        format!("--rw={way}"),
        format!("--nrfiles={files}"),
        format!("--filesize={size}"),
        format!("--size={}", files * size),
        format!("--bs={}", size.min(PIECE)),
        format!("--iodepth={depth}"),
        "--ioengine=io_uring".to_owned(),
        "--direct=1".to_owned(),
        "--fixedbufs=1".to_owned(),
        "--file_service_type=sequential".to_owned(),
        "--output-format=json".to_owned(),
    ];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let report = text_of("fio", &args)?;
    rate(&report, way)
}

/// fio's own figures: bytes, the run time of its I/O phase, and the shares of it spent on the CPU.
fn rate(report: &str, way: &str) -> Result<Rate, String> {
    let start = report.find('{').ok_or("fio printed no report")?;
    let report: Value = serde_json::from_str(&report[start..]).map_err(|e| format!("fio's report: {e}"))?;
    let job = &report["jobs"][0];
    let number =
        |value: &Value, name: &str| value.as_f64().ok_or_else(|| format!("fio's report has no {name}"));
    let bytes = number(&job[way]["io_bytes"], "io_bytes")?;
    let seconds = bytes / number(&job[way]["bw_bytes"], "bw_bytes")?;
    let busy = number(&job["usr_cpu"], "usr_cpu")? + number(&job["sys_cpu"], "sys_cpu")?;
    let runtime = number(&job["job_runtime"], "job_runtime")? / 1000.0;
    Ok(Rate { bytes, seconds, cpu_s: busy / 100.0 * runtime })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let report = r#"note: both iodepth >= 1
            {"jobs":[{"read":{"io_bytes":2000,"bw_bytes":1000},
                      "usr_cpu":10.0,"sys_cpu":15.0,"job_runtime":4000}]}"#;
        assert_eq!(rate(report, "read"), Ok(Rate { bytes: 2000.0, seconds: 2.0, cpu_s: 1.0 }));
        assert!(rate("{}", "read").is_err() && rate("", "read").is_err());
    }
}
