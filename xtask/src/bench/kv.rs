//! `bench kv`: what `wavetank bench` reports for storage alone, beside fio on the same directory.
//!
//! Like with like: fio gets the mean size of our entries, our share of reads, our number of pieces in flight
//! and our time, on files that are there already; ours makes its bytes, sums them, creates files, and lets
//! users decide what comes next.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::fio::{self, Job};
use super::measure;
use super::rate::{median, variation};
use super::{Options, Page, store};
use crate::process::{self, cargo};

const GIB: f64 = (1u64 << 30) as f64;
const PIECE: u64 = 1 << 20;
/// Pieces in flight.
const DEPTHS: [usize; 3] = [4, 16, 32];
const USERS: &str = "16";
/// Bytes of entries, on either side.
const CAPACITY_GIB: u64 = 4;
const SECONDS: &str = "10";
const WARMUP: &str = "2";
/// Where entries go; `WAVETANK_BENCH_DIRECTORY` names another place.
const FOLDER: &str = "target/bench/kv";

/// One run of one program.
struct Run {
    gib_per_s: f64,
    cpu_s_per_gib: f64,
}

/// What ours did, for fio to do the same.
struct Shape {
    entry_bytes: u64,
    reads_percent: u64,
}

/// Runs every depth.
pub(super) fn measure(options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release"]))?;
    let version = fio::install()?;
    let place = store::place(FOLDER);
    let mut table = HEAD.to_owned();
    for depth in DEPTHS {
        table += &row(&place, depth, options.reps)?;
    }
    let method = format!(
        "- {version}; file system: {}\n\n`wavetank bench --model tiny-1b --num-users {USERS} \
         --persona-mix chatbot=1 --gpu-mem-gb 0 --cpu-mem-gb 0 --generation-mode none --duration \
         {SECONDS} --warmup {WARMUP} --storage-capacity-gb {CAPACITY_GIB} --io-depth N` beside `fio \
         --rw=rw` on files of the mean entry size with the same share of reads, pieces of 1 MiB, as many \
         in flight. Medians of {} interleaved pairs; CV is the standard deviation over the mean; ratio is \
         the median of ours / fio within a pair. Reads and writes together.\n",
        store::file_system(&place)?,
        options.reps,
    );
    Ok(Page { method, table })
}

const HEAD: &str = "\
| in flight | entry | reads | ours GiB/s | CV | fio GiB/s | CV | ratio | CV ratio | ours CPU/GiB \
| fio CPU/GiB |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

fn row(place: &Path, depth: usize, reps: usize) -> Result<String, String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (our_folder, fio_folder) = (place.join("ours"), place.join("fio"));
    for folder in [&our_folder, &fio_folder] {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    // The first run says what fio has to do.
    let (_, shape) = run_ours(&our_folder, depth)?;
    run_fio(&fio_folder, depth, &shape)?;
    for rep in 0..reps {
        eprintln!("measuring {depth} in flight, pair {}", rep + 1);
        // Who goes first alternates, so that neither always finds the device as the other left it.
        if rep % 2 == 0 {
            ours.push(run_ours(&our_folder, depth)?.0);
            theirs.push(run_fio(&fio_folder, depth, &shape)?);
        } else {
            theirs.push(run_fio(&fio_folder, depth, &shape)?);
            ours.push(run_ours(&our_folder, depth)?.0);
        }
    }
    fs::remove_dir_all(place).map_err(|e| format!("{}: {e}", place.display()))?;
    let of = |runs: &[Run], value: fn(&Run) -> f64| runs.iter().map(value).collect::<Vec<f64>>();
    let (our_rates, fio_rates) = (of(&ours, |run| run.gib_per_s), of(&theirs, |run| run.gib_per_s));
    let ratios: Vec<f64> = our_rates.iter().zip(&fio_rates).map(|(ours, fio)| ours / fio).collect();
    let (our_cv, fio_cv) = (variation(&our_rates), variation(&fio_rates));
    Ok(format!(
        "| {depth} | {:.1} MiB | {} % | {:.2} | {:.1} % | {:.2} | {:.1} % | {:.2} | {:.2} | {:.3} \
         | {:.3} |\n",
        shape.entry_bytes as f64 / PIECE as f64,
        shape.reads_percent,
        median(&our_rates),
        our_cv * 100.0,
        median(&fio_rates),
        fio_cv * 100.0,
        median(&ratios),
        our_cv / fio_cv,
        median(&of(&ours, |run| run.cpu_s_per_gib)),
        median(&of(&theirs, |run| run.cpu_s_per_gib)),
    ))
}

fn run_ours(folder: &Path, depth: usize) -> Result<(Run, Shape), String> {
    let report = folder.with_extension("json");
    let (depth, folder) = (depth.to_string(), folder.display().to_string());
    let (output, capacity) = (report.display().to_string(), CAPACITY_GIB.to_string());
    let args = [
        ["--model", "tiny-1b"],
        ["--num-users", USERS],
        ["--persona-mix", "chatbot=1"],
        ["--gpu-mem-gb", "0"],
        ["--cpu-mem-gb", "0"],
        ["--generation-mode", "none"],
        ["--duration", SECONDS],
        ["--warmup", WARMUP],
        ["--storage-capacity-gb", &capacity],
        ["--io-depth", &depth],
        ["--cache-dir", &folder],
        ["--output", &output],
    ];
    let args: Vec<String> = ["bench", "--quiet", "--keep-cache"]
        .into_iter()
        .chain(args.into_iter().flatten())
        .map(str::to_owned)
        .collect();
    measure::in_fresh_process(&process::release_binary(), &args)?;
    let text = fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    ours_of(&serde_json::from_str(&text).map_err(|e| format!("our report: {e}"))?)
}

/// What a report says: the window's bandwidth, and the whole run's bytes for its processor time.
fn ours_of(report: &Value) -> Result<(Run, Shape), String> {
    let number = |path: &str| {
        let value = report.pointer(path).and_then(Value::as_f64);
        value.ok_or_else(|| format!("our report has no {path}"))
    };
    let read = number("/summary/cache_stats/tier_storage_read_bandwidth_gbps")?;
    let written = number("/summary/cache_stats/tier_storage_write_bandwidth_gbps")?;
    let (whole_read, whole_written) =
        (number("/accounting/storage/read_bytes")?, number("/accounting/storage/written_bytes")?);
    let run = Run {
        gib_per_s: read + written,
        cpu_s_per_gib: number("/wall/cpu_seconds")? / ((whole_read + whole_written) / GIB),
    };
    let shape = Shape {
        entry_bytes: (whole_written / number("/accounting/storage/writes")?) as u64 / PIECE * PIECE,
        reads_percent: (100.0 * read / (read + written)).round() as u64,
    };
    Ok((run, shape))
}

fn run_fio(folder: &Path, depth: usize, shape: &Shape) -> Result<Run, String> {
    let files = CAPACITY_GIB * (1 << 30) / shape.entry_bytes;
    let more = vec![
        format!("--rwmixread={}", shape.reads_percent),
        "--time_based".to_owned(),
        format!("--runtime={SECONDS}"),
        format!("--ramp_time={WARMUP}"),
        "--file_service_type=sequential".to_owned(),
    ];
    let job = Job { way: "rw", folder, size: shape.entry_bytes, files, piece: PIECE, depth, more };
    let [read, written] = fio::run(&job)?;
    let bytes = read.bytes + written.bytes;
    let gib_per_s = (read.mb_per_s() + written.mb_per_s()) * 1e6 / GIB;
    Ok(Run { gib_per_s, cpu_s_per_gib: read.cpu_s / (bytes / GIB) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_read() {
        let report = json!({
            "summary": { "cache_stats": {
                "tier_storage_read_bandwidth_gbps": 3.0, "tier_storage_write_bandwidth_gbps": 1.0 } },
            "accounting": { "storage": {
                "read_bytes": 3u64 << 30, "written_bytes": 1u64 << 30, "writes": 64 } },
            "wall": { "cpu_seconds": 0.2 },
        });
        let (run, shape) = ours_of(&report).unwrap();
        assert_eq!((run.gib_per_s, run.cpu_s_per_gib), (4.0, 0.05));
        assert_eq!((shape.entry_bytes, shape.reads_percent), (16 << 20, 75));
        assert!(ours_of(&json!({})).is_err());
    }
}
