//! `bench calls`: a recording of 25,529 storage calls, read, decoded and replayed, and what recording costs a
//! store.

mod recording;
mod replay;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::measure::{self, Sample};
use super::{Options, Page, rate, trace};
use crate::process::{self, cargo};

const PACKED: &str = "../shared/data/lct/big.lct.gz";

/// What the reference needs for the same file (spec/storage-trace.md 8, 10.5).
const REFERENCE: &str = "\
- the reference on its own machine: 12,645 records/s read and decoded, 8 to 15 s to start, about 1.1 GB\n";

/// Measures reading the recording, and an empty one, which is the cost of starting.
pub(super) fn measure(options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release"]))?;
    let whole = recording()?;
    let empty = first_frame(&whole)?;
    let records = records(&whole)?;
    let bytes = fs::metadata(&whole).map_err(|e| format!("{whole}: {e}"))?.len();
    let (start, read) = (samples(&empty, options.reps)?, samples(&whole, options.reps)?);
    let method = format!(
        "`target/release/wavetank trace info {whole}`: the file is read, every record decoded, its keys \
         counted, and the outcomes it implies; {bytes} bytes, {records} records. Records per second are \
         those of the time above that of a file without records (`start`). Least CPU and wall time of {} \
         runs, the most memory.\n{REFERENCE}\n{}\n{}",
        options.reps,
        replay::METHOD,
        recording::METHOD
    );
    let replayed = replay::measure(&whole, options.reps)?;
    let cost = recording::measure(options.reps)?;
    let tables = [table(records, bytes, &start, &read), replayed, cost];
    Ok(Page { method, table: tables.join("\n") })
}

/// The recording, unpacked.
fn recording() -> Result<String, String> {
    trace::once("big.lct", |path| {
        if !Path::new(PACKED).exists() {
            return Err(format!("no {PACKED} beside the checkout"));
        }
        let file = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
        process::run(Command::new("gzip").args(["-dc", PACKED]).stdout(file))
    })
}

/// Its header alone.
fn first_frame(recording: &str) -> Result<String, String> {
    trace::once("empty.lct", |path| {
        let bytes = fs::read(recording).map_err(|e| format!("{recording}: {e}"))?;
        let frame = header_of(&bytes).ok_or_else(|| format!("{recording}: no header"))?;
        fs::write(path, frame).map_err(|e| format!("{}: {e}", path.display()))
    })
}

fn header_of(bytes: &[u8]) -> Option<&[u8]> {
    let (length, _) = bytes.split_first_chunk::<4>()?;
    bytes.get(..4 + u32::from_be_bytes(*length) as usize)
}

fn records(recording: &str) -> Result<u64, String> {
    let binary = process::release_binary().display().to_string();
    let text = process::text_of(&binary, &["trace", "info", recording, "--json"])?;
    let info: Value = serde_json::from_str(&text).map_err(|e| format!("trace info: {e}"))?;
    info["total_records"].as_u64().ok_or_else(|| "trace info: no total_records".to_owned())
}

fn samples(recording: &str, reps: usize) -> Result<Vec<Sample>, String> {
    eprintln!("measuring {recording} ({reps} runs)");
    let args = ["trace", "info", recording].map(str::to_owned);
    (0..reps).map(|_| measure::in_fresh_process(&process::release_binary(), &args)).collect()
}

#[allow(clippy::cast_precision_loss, reason = "records and bytes are far fewer than 2^52")]
fn table(records: u64, bytes: u64, start: &[Sample], read: &[Sample]) -> String {
    let least =
        |samples: &[Sample], of: fn(&Sample) -> f64| samples.iter().map(of).fold(f64::INFINITY, f64::min);
    let peak = |samples: &[Sample]| samples.iter().map(|sample| sample.max_rss_bytes).max().unwrap_or(0);
    let row = |case: &str, samples: &[Sample], rates: &str| {
        let (cpu, wall) = (least(samples, |sample| sample.cpu_s), least(samples, |sample| sample.wall_s));
        let walls: Vec<f64> = samples.iter().map(|sample| sample.wall_s).collect();
        let (middle, peak) = (rate::median(&walls), peak(samples) as f64 / 1e6);
        format!("| {case} | {cpu:.4} | {wall:.4} | {middle:.4} | {peak:.1} | {rates} |\n")
    };
    let seconds = least(read, |sample| sample.wall_s) - least(start, |sample| sample.wall_s);
    let rates = format!("{:.0} | {:.0}", records as f64 / seconds, bytes as f64 / seconds / 1e6);
    let head = "\
| case | CPU s (least) | wall s (least) | wall s (median) | peak MB (most) | records/s | MB/s |
|---|---:|---:|---:|---:|---:|---:|
";
    format!("{head}{}{}", row("start", start, "– | –"), row("read and decoded", read, &rates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_above_the_start() {
        let sample = |wall_s, max_rss_bytes| Sample { cpu_s: wall_s, wall_s, max_rss_bytes };
        let start = [sample(0.01, 5_000_000), sample(0.02, 5_000_000)];
        let read = [sample(0.06, 9_000_000), sample(0.07, 8_000_000)];
        let table = table(50_000, 100_000_000, &start, &read);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| start | 0.0100 | 0.0100 | 0.0150 | 5.0 | – | – |",
                "| read and decoded | 0.0600 | 0.0600 | 0.0650 | 9.0 | 1000000 | 2000 |",
            ]
        );
    }

    #[test]
    fn a_header_is_the_first_frame() {
        assert_eq!(header_of(b"\0\0\0\x02abcdef"), Some(&b"\0\0\0\x02ab"[..]));
        assert_eq!((header_of(b"\0\0\0\x09a"), header_of(b"\0")), (None, None));
    }
}
