//! Our side: the store's example `entries`, which waits for a phase, runs it and says what it cost.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::{MIB, Rate};
use crate::bench::rate::median;
use crate::process::target_dir;

/// A running `entries`.
pub(super) struct Entries {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Entries {
    pub(super) fn start(
        backend: &str,
        place: &Path,
        size: u64,
        depth: usize,
        total: u64,
    ) -> Result<Self, String> {
        let program = target_dir().join("release/examples/entries");
        let told = |e: std::io::Error| format!("{}: {e}", program.display());
        let mut command = Command::new(&program);
        command.arg(backend).arg(place).args([size, depth as u64, total].map(|number| number.to_string()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(told)?;
        let asks = child.stdin.take().ok_or("no standard input")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Self { child, asks, answers })
    }

    /// Runs one phase.
    pub(super) fn run(&mut self, phase: &str) -> Result<Rate, String> {
        writeln!(self.asks, "{phase}").map_err(|e| format!("entries: {e}"))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|e| format!("entries: {e}"))?;
        let cost: Value = serde_json::from_str(&line).map_err(|e| format!("entries said `{line}`: {e}"))?;
        let number =
            |name: &str| cost[name].as_f64().ok_or_else(|| format!("entries said no {name}: {line}"));
        Ok(Rate { bytes: number("bytes")?, seconds: number("seconds")?, cpu_s: number("cpu_seconds")? })
    }

    pub(super) fn end(mut self) -> Result<(), String> {
        drop(self.asks);
        let status = self.child.wait().map_err(|e| format!("entries: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("entries ended with {status}")) }
    }
}

/// The memory tier beside a plain copy of as many bytes through as many buffers.
pub(super) fn memory(reps: usize) -> Result<String, String> {
    let mut text =
        "| memory tier, 16 MiB entries | ours GB/s | plain copy GB/s | ratio |\n|---|---:|---:|---:|\n"
            .to_owned();
    let (mut reads, mut copies, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut entries = Entries::start("memory", Path::new(""), 16 * MIB, 4, 1024 * MIB)?;
    entries.run("write")?;
    for _ in 0..reps {
        let (ours, plain) = (entries.run("read")?.mb_per_s(), entries.run("copy")?.mb_per_s());
        reads.push(ours / 1000.0);
        copies.push(plain / 1000.0);
        ratios.push(ours / plain);
    }
    entries.end()?;
    text += &format!("| read | {:.2} | {:.2} | {:.2} |\n", median(&reads), median(&copies), median(&ratios));
    Ok(text)
}
