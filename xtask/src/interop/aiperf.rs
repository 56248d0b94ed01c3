//! AIPerf measures `wavetank mock`, with a tokenizer made here: every request is answered, every token
//! counted alike by both, prompts that begin alike are found in the cache, and `wavetank compare` reads what
//! it wrote.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::process::{self, cargo, target_dir};
use crate::{Failure, no_arguments, peers};

const PACKAGES: &[&str] = &["aiperf==0.13.0"];
/// Makes the tokenizer.
const TOKENIZER: &str = include_str!("aiperf.py");
const REQUESTS: u64 = 60;
const OUTPUT_TOKENS: u64 = 24;
/// Of every prompt, the same for all.
const SHARED_TOKENS: u64 = 256;
const OWN_TOKENS: u64 = 64;

/// Installs AIPerf and has it measure us.
pub(super) fn check(args: &[String]) -> Result<(), Failure> {
    no_arguments(args)?;
    let python = peers::python("aiperf", PACKAGES)?;
    process::run(&mut cargo(&["build"]))?;
    let folder = target_dir().join("interop/aiperf");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let tokenizer = folder.join("tokenizer");
    process::run(Command::new(&python).args(["-c", TOKENIZER]).arg(&tokenizer))?;
    for endpoint in ["chat", "completions"] {
        let mock = Mock::start(&tokenizer)?;
        let report = profile(&python, &mock, endpoint, &folder)?;
        println!("aiperf {endpoint}: {}", told(&report)?);
        mock.end()?;
    }
    let [chat, completions] = ["chat", "completions"].map(|endpoint| folder.join(endpoint));
    let mut compare = Command::new(process::test_binary());
    compare.arg("compare").args([&chat, &completions]);
    // Both were asked for as many tokens of as many requests.
    compare.args(["--within", "completed_requests 0%", "--within", "total_output_tokens 0%"]);
    Ok(process::run(&mut compare)?)
}

/// Has AIPerf measure the mock; what it found.
fn profile(python: &Path, mock: &Mock, endpoint: &str, folder: &Path) -> Result<Value, String> {
    let out = folder.join(endpoint);
    let mut command = Command::new(python.with_file_name("aiperf"));
    command.args(["profile", "--model", "tank", "--url", &mock.address, "--endpoint-type", endpoint]);
    command.args(["--streaming", "--use-legacy-max-tokens", "--extra-inputs", "ignore_eos:true"]);
    command.arg("--tokenizer").arg(folder.join("tokenizer"));
    for (flag, number) in [
        ("--request-count", REQUESTS),
        ("--concurrency", 6),
        ("--prompt-prefix-pool-size", 1),
        ("--prompt-prefix-length", SHARED_TOKENS),
        ("--prompt-input-tokens-mean", OWN_TOKENS),
        ("--prompt-output-tokens-mean", OUTPUT_TOKENS),
        ("--random-seed", 7),
    ] {
        command.args([flag, &number.to_string()]);
    }
    command.arg("--output-artifact-dir").arg(&out);
    process::output_of(&mut command)?;
    let report = out.join("profile_export_aiperf.json");
    let text = fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", report.display()))
}

/// What AIPerf found, if it is as it should be.
fn told(report: &Value) -> Result<String, String> {
    let number = |metric: &str, what: &str| {
        report[metric][what].as_f64().ok_or_else(|| format!("the report has no {what} of {metric}"))
    };
    let wanted = [
        ("request_count", "avg", REQUESTS as f64),
        ("request_error_rate", "avg", 0.0),
        ("output_sequence_length", "min", OUTPUT_TOKENS as f64),
        ("output_sequence_length", "max", OUTPUT_TOKENS as f64),
        ("usage_completion_tokens", "min", OUTPUT_TOKENS as f64),
        ("usage_completion_tokens", "max", OUTPUT_TOKENS as f64),
    ];
    for (metric, what, wanted) in wanted {
        let found = number(metric, what)?;
        if found != wanted {
            return Err(format!("{what} of {metric} is {found}, not {wanted}"));
        }
    }
    let cached = number("usage_prompt_cache_read_tokens", "avg")?;
    if cached < SHARED_TOKENS as f64 * 0.8 {
        return Err(format!(
            "only {cached} tokens of {SHARED_TOKENS} that all prompts share were in the cache"
        ));
    }
    Ok(format!(
        "{REQUESTS} requests of {OUTPUT_TOKENS} tokens, no error; TTFT {:.1} ms, ITL {:.2} ms; {cached:.0} \
         tokens of a prompt in the cache",
        number("time_to_first_token", "avg")?,
        number("inter_token_latency", "avg")?
    ))
}

/// Our mock.
struct Mock {
    child: Child,
    address: String,
}

impl Mock {
    fn start(tokenizer: &Path) -> Result<Self, String> {
        let program: PathBuf = process::test_binary();
        let mut command = Command::new(program);
        command.args(["mock", "--port", "0", "--model", "tank", "--enable-prompt-tokens-details"]);
        command.args(["--num-workers", "2", "--router-mode", "kv_router"]);
        command.args(["--extra-engine-args", r#"{"block_size":16}"#]).arg("--tokenizer").arg(tokenizer);
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|e| format!("wavetank: {e}"))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(|e| e.to_string())?;
        }
        let address = line.trim().strip_prefix("listening on ").unwrap_or_default().to_owned();
        let mock = Self { child, address };
        if mock.address.is_empty() { Err(format!("the mock said {line:?}")) } else { Ok(mock) }
    }

    /// As a service manager ends it.
    fn end(mut self) -> Result<(), String> {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).map_err(|e| e.to_string())?;
        let status = self.child.wait().map_err(|e| e.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the mock ended with {status}")) }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // One that has ended has no process of this number any more, as far as we know it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
