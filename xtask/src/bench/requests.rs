//! `bench trace`: a generated trace of five gigabytes, made, checked and converted.

use std::fs;

use super::measure::{self, Sample};
use super::{FOLDER, Options, Page};
use crate::process::{self, cargo};

/// Requests of the trace, as many as make five gigabytes.
const REQUESTS: u64 = 16_500_000;
/// Prompts as long as those of the public conversation trace, about 12,000 tokens, in blocks of 512.
const SHAPE: &str =
    "--input-dist lognormal:11500,9000 --output-dist lognormal:340,300 --rate 30 --shared-prefixes 64";

/// Something that is done with the trace.
struct Case {
    name: &'static str,
    line: String,
}

/// What a case cost.
struct Outcome {
    name: &'static str,
    samples: Vec<Sample>,
}

/// Measures all cases; the files are gone afterwards.
pub(super) fn measure(options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release"]))?;
    fs::create_dir_all(FOLDER).map_err(|e| format!("{FOLDER}: {e}"))?;
    let (large, out) = (format!("{FOLDER}/large.jsonl"), format!("{FOLDER}/large-out.jsonl"));
    let measured = cases(&large, &out).iter().map(|case| outcome(case, options.reps)).collect();
    let outcomes: Result<Vec<Outcome>, String> = measured;
    let bytes = fs::metadata(&large).map(|file| file.len());
    for file in [&large, &out] {
        // A case that failed may not have made it.
        let _ = fs::remove_file(file);
    }
    let (outcomes, bytes) = (outcomes?, bytes.map_err(|e| format!("{large}: {e}"))?);
    let method = format!(
        "A trace of {REQUESTS} requests and {bytes} bytes in Mooncake's format, made by `wavetank trace \
         synth {SHAPE}`, on the drive that `target/` is on. MB/s are bytes of the trace by CPU seconds of \
         the process, kernel included, so that other work on the machine does not count; `lint` reads and \
         checks every row, `convert` writes all of them again, into a file and into nothing. One thread does \
         the work. Least CPU and wall time of {} runs, the most memory.\n",
        options.reps
    );
    Ok(Page { method, table: table(&outcomes, bytes) })
}

fn cases(large: &str, out: &str) -> Vec<Case> {
    vec![
        Case { name: "synth", line: format!("synth {large} --requests {REQUESTS} {SHAPE}") },
        Case { name: "lint", line: format!("lint {large}") },
        Case { name: "convert", line: format!("convert {large} {out} --to mooncake") },
        Case { name: "convert, not kept", line: format!("convert {large} /dev/null --to mooncake") },
    ]
}

fn outcome(case: &Case, reps: usize) -> Result<Outcome, String> {
    eprintln!("measuring {} ({reps} runs)", case.name);
    let args: Vec<String> =
        ["trace"].into_iter().chain(case.line.split_whitespace()).map(str::to_owned).collect();
    let samples: Result<_, String> =
        (0..reps).map(|_| measure::in_fresh_process(&process::release_binary(), &args)).collect();
    Ok(Outcome { name: case.name, samples: samples? })
}

#[allow(clippy::cast_precision_loss, reason = "bytes are far fewer than 2^52")]
fn table(outcomes: &[Outcome], bytes: u64) -> String {
    let row = |Outcome { name, samples }: &Outcome| {
        let least = |of: fn(&Sample) -> f64| samples.iter().map(of).fold(f64::INFINITY, f64::min);
        let (cpu, wall) = (least(|sample| sample.cpu_s), least(|sample| sample.wall_s));
        let peak = samples.iter().map(|sample| sample.max_rss_bytes).max().unwrap_or(0) as f64 / 1e6;
        format!("| {name} | {cpu:.2} | {wall:.2} | {:.0} | {peak:.1} |\n", bytes as f64 / cpu / 1e6)
    };
    let head = "\
| case | CPU s (least) | wall s (least) | MB/s per core | peak MB (most) |
|---|---:|---:|---:|---:|
";
    head.to_owned() + &outcomes.iter().map(row).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_by_cpu_time() {
        let sample = |cpu_s, max_rss_bytes| Sample { cpu_s, wall_s: 2.0 * cpu_s, max_rss_bytes };
        let samples = vec![sample(2.0, 9_000_000), sample(1.0, 8_000_000)];
        let table = table(&[Outcome { name: "lint", samples }], 500_000_000);
        assert_eq!(table.lines().nth(2), Some("| lint | 1.00 | 2.00 | 500 | 9.0 |"));
    }
}
