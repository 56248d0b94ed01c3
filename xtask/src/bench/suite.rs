//! `bench suite`: jobs that `wavetank bench --fio-job` distils, run by fio on the same directory.
//!
//! A job is good when fio moves as much with it as the run did that it comes from. Runs and jobs take turns;
//! each job is the one of the run before it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::rate::{median, variation};
use super::{Options, Page, fio, measure, store};
use crate::process::{self, cargo};

const GIB: f64 = (1u64 << 30) as f64;
/// Where entries go; `WAVETANK_BENCH_DIRECTORY` names another place.
const FOLDER: &str = "target/bench/suite";
/// What a job may be off by.
const CLOSE: f64 = 0.15;
/// Huge pages of 2 MiB for fio's buffers: more than any job below asks for.
const HUGE_PAGES: u32 = 64;
const HUGE_PAGES_FILE: &str = "/proc/sys/vm/nr_hugepages";

/// A load, and the flags that make it.
struct Load {
    name: &'static str,
    flags: &'static str,
}

const LOADS: &[Load] = &[
    Load { name: "saturated", flags: "--num-users 16 --generation-mode none --io-depth 32" },
    Load { name: "saturated, 4 deep", flags: "--num-users 16 --generation-mode none --io-depth 4" },
    Load { name: "paced", flags: "--num-users 5 --generation-mode realistic" },
];
/// What all of them have in common.
const EACH: &str = "--model tiny-1b --persona-mix chatbot=1 --gpu-mem-gb 0 --cpu-mem-gb 0 --duration 10 \
    --warmup 2 --storage-capacity-gb 4";

/// A run and its job.
struct Pair {
    run: Run,
    fio_gib_per_s: f64,
}

/// What a report says of what went to the drive.
#[derive(Debug, PartialEq)]
struct Run {
    gib_per_s: f64,
    depth: f64,
    idle_percent: f64,
}

/// Runs every load.
pub(super) fn measure(options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release"]))?;
    let version = fio::install()?;
    let place = store::place(FOLDER);
    let huge = HugePages::set_aside(HUGE_PAGES);
    let memory = match &huge {
        Some(_) => "fio's buffers are on huge pages, as ours are (`mem=shmhuge`)",
        None => "no huge pages could be set aside: fio's buffers are on small ones",
    };
    let mut table = HEAD.to_owned();
    for load in LOADS {
        let pairs = (0..options.reps).map(|rep| {
            eprintln!("measuring {}, pair {}", load.name, rep + 1);
            pair(&place, load)
        });
        table += &row(load, &pairs.collect::<Result<Vec<_>, _>>()?);
    }
    fs::remove_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    let flags: String = LOADS.iter().map(|load| format!("- {}: `{}`\n", load.name, load.flags)).collect();
    let method = format!(
        "- {version}; file system: {}; {memory}\n\n`wavetank bench {EACH} --fio-job FILE` with the flags \
         below, then `fio FILE` on the same directory, {} pairs in turn. GiB/s are reads and writes \
         together, medians; CV is the standard deviation over the mean; fio / run is within a \
         pair.\n\n{flags}",
        store::file_system(&place)?,
        options.reps,
    );
    Ok(Page { method, table })
}

const HEAD: &str = "\
| load | depth | idle | run GiB/s | CV | fio GiB/s | CV | fio / run | range | within 15 % |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

fn row(load: &Load, pairs: &[Pair]) -> String {
    let of = |value: fn(&Pair) -> f64| pairs.iter().map(value).collect::<Vec<f64>>();
    let (runs, jobs) = (of(|pair| pair.run.gib_per_s), of(|pair| pair.fio_gib_per_s));
    let ratios = of(|pair| pair.fio_gib_per_s / pair.run.gib_per_s);
    let (least, most) = ratios.iter().fold((f64::MAX, 0.0_f64), |(a, b), r| (a.min(*r), b.max(*r)));
    let ratio = median(&ratios);
    format!(
        "| {} | {:.1} | {:.0} % | {:.2} | {:.1} % | {:.2} | {:.1} % | {ratio:.2} | {least:.2} to {most:.2} \
         | {} |\n",
        load.name,
        median(&of(|pair| pair.run.depth)),
        median(&of(|pair| pair.run.idle_percent)),
        median(&runs),
        variation(&runs) * 100.0,
        median(&jobs),
        variation(&jobs) * 100.0,
        if (ratio - 1.0).abs() <= CLOSE { "yes" } else { "no" },
    )
}

/// One run, and fio with its job.
fn pair(place: &Path, load: &Load) -> Result<Pair, String> {
    let entries = place.join("entries");
    fs::create_dir_all(&entries).map_err(|e| format!("{}: {e}", entries.display()))?;
    let [report, job] = ["report.json", "job.fio"].map(|name| place.join(name));
    let mut args: Vec<String> = ["bench", "--quiet"].map(str::to_owned).into();
    args.extend(EACH.split_whitespace().chain(load.flags.split_whitespace()).map(str::to_owned));
    for (flag, path) in [("--cache-dir", &entries), ("--output", &report), ("--fio-job", &job)] {
        args.extend([flag.to_owned(), path.display().to_string()]);
    }
    measure::in_fresh_process(&process::release_binary(), &args)?;
    let text = fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    let run = run_of(&serde_json::from_str(&text).map_err(|e| format!("our report: {e}"))?)?;
    let [read, written] = fio::run_job(&job)?;
    let rates =
        [read, written].into_iter().filter(|rate| rate.seconds > 0.0).map(|rate| rate.bytes / rate.seconds);
    Ok(Pair { run, fio_gib_per_s: rates.sum::<f64>() / GIB })
}

/// What went to the drive while the window was open.
fn run_of(report: &Value) -> Result<Run, String> {
    let number = |key: &str| {
        let value = report.pointer(&format!("/block_layer/sent/{key}")).and_then(Value::as_f64);
        value.ok_or_else(|| format!("our report has no /block_layer/sent/{key}"))
    };
    let (busy, idle) = (number("busy_seconds")?, number("idle_seconds")?);
    Ok(Run {
        gib_per_s: (number("read_bytes")? + number("written_bytes")?) / GIB / number("window_seconds")?,
        depth: number("depth_while_busy")?,
        idle_percent: 100.0 * idle / (busy + idle),
    })
}

/// Huge pages that are set aside until this is dropped.
struct HugePages {
    before: String,
}

impl HugePages {
    /// `None` where that is not permitted, or there is no room.
    fn set_aside(count: u32) -> Option<Self> {
        let before = fs::read_to_string(HUGE_PAGES_FILE).ok()?;
        fs::write(HUGE_PAGES_FILE, count.to_string()).ok()?;
        let pages = Self { before };
        let there: u32 = fs::read_to_string(HUGE_PAGES_FILE).ok()?.trim().parse().ok()?;
        (there >= count).then_some(pages)
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if let Err(error) = fs::write(HUGE_PAGES_FILE, self.before.trim()) {
            eprintln!("{HUGE_PAGES_FILE} is not as it was ({}): {error}", self.before.trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_read() {
        let sent = json!({
            "read_bytes": 3u64 << 30, "written_bytes": 1u64 << 30, "window_seconds": 2.0,
            "busy_seconds": 1.5, "idle_seconds": 0.5, "depth_while_busy": 7.5,
        });
        let run = run_of(&json!({ "block_layer": { "sent": sent } })).unwrap();
        assert_eq!(run, Run { gib_per_s: 2.0, depth: 7.5, idle_percent: 25.0 });
        assert!(run_of(&json!({})).is_err());
    }

    #[test]
    fn a_row_has_the_middle_and_the_range() {
        let pair = |run: f64, fio: f64| Pair {
            run: Run { gib_per_s: run, depth: 30.0, idle_percent: 0.0 },
            fio_gib_per_s: fio,
        };
        let row = row(&LOADS[0], &[pair(2.0, 2.2), pair(2.0, 1.8), pair(4.0, 4.0)]);
        assert!(row.ends_with("| 1.00 | 0.90 to 1.10 | yes |\n"), "{row}");
    }
}
