//! The cost of one command: CPU seconds, peak memory, wall time. Measured from a fresh, small process
//! (`xtask measure -- CMD…`), because the kernel reports all children of a process as one sum and one
//! maximum, and a child's peak starts at the size of the process that started it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::{Value, json};

use crate::Failure;

/// What one run cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    pub(crate) max_rss_bytes: u64,
}

/// `measure -- CMD…`: runs the command with its output discarded and prints its cost as JSON.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let command = args.strip_prefix(&["--".to_owned()]).and_then(<[String]>::split_first);
    let (program, rest) = command.ok_or_else(|| Failure::Usage("measure takes `-- CMD...`".into()))?;
    println!("{}", cost(program, rest)?);
    Ok(())
}

fn cost(program: &str, args: &[String]) -> Result<Value, String> {
    let start = Instant::now();
    let status = Command::new(program).args(args).stdout(Stdio::null()).status();
    let wall_s = start.elapsed().as_secs_f64();
    let status = status.map_err(|e| format!("{program}: {e}"))?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|e| format!("getrusage: {e}"))?;
    let cpu_s = seconds(usage.user_time()) + seconds(usage.system_time());
    // Linux counts ru_maxrss in KiB.
    let max_rss_bytes = usage.max_rss() * 1024;
    Ok(json!({
        "cpu_s": cpu_s, "max_rss_bytes": max_rss_bytes, "wall_s": wall_s, "exit_code": status.code(),
    }))
}

#[allow(clippy::cast_precision_loss, reason = "seconds of a run and microseconds of a second are small")]
fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

/// Has a fresh copy of this program measure the command; a failed command is an error with what it said.
pub(crate) fn in_fresh_process(program: &Path, args: &[String]) -> Result<Sample, String> {
    let own = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let output = Command::new(own).args(["measure", "--"]).arg(program).args(args).output();
    let output = output.map_err(|e| format!("xtask measure: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let result = sample(&String::from_utf8_lossy(&output.stdout));
    result.map_err(|problem| format!("{}: {problem}\n{}", program.display(), said.trim()))
}

/// Reads what `measure` printed.
fn sample(text: &str) -> Result<Sample, String> {
    let cost: Value = serde_json::from_str(text).map_err(|e| format!("no measurement: {e}"))?;
    if cost["exit_code"] != 0 {
        return Err(format!("ended with exit code {}", cost["exit_code"]));
    }
    let number = |key: &str| cost[key].as_f64().ok_or_else(|| format!("no `{key}` in the measurement"));
    let max_rss_bytes = cost["max_rss_bytes"].as_u64().ok_or("no `max_rss_bytes` in the measurement")?;
    Ok(Sample { cpu_s: number("cpu_s")?, wall_s: number("wall_s")?, max_rss_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost_of(script: &str) -> Value {
        cost("sh", &["-c".to_owned(), script.to_owned()]).unwrap()
    }

    #[test]
    fn a_busy_command_costs_cpu_and_memory() {
        let cost = cost_of("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
        assert!(cost["cpu_s"].as_f64().unwrap() > 0.001, "{cost}");
        assert!(cost["wall_s"].as_f64().unwrap() > 0.001, "{cost}");
        assert!(cost["max_rss_bytes"].as_u64().unwrap() > 100_000, "{cost}");
        assert!(sample(&cost.to_string()).is_ok());
    }

    #[test]
    fn a_failed_or_killed_command_is_no_sample() {
        let failed = cost_of("exit 3");
        assert_eq!(failed["exit_code"], 3);
        assert_eq!(sample(&failed.to_string()), Err("ended with exit code 3".to_owned()));
        assert_eq!(cost_of("kill -9 $$")["exit_code"], Value::Null);
        assert!(cost("no-such-program", &[]).is_err());
        assert!(sample("").is_err());
    }
}
