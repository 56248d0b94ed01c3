//! What recording costs a store: the same work with it and without, in turn.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::bench::rate::median;
use crate::bench::{FOLDER, store};
use crate::process;

/// Pairs are compared, so that what the machine does besides hits both; fewer say little.
const PAIRS: usize = 7;

/// Work that keeps a store busy.
struct Work {
    name: &'static str,
    flags: &'static str,
}

const WORKS: [Work; 3] = [
    Work {
        name: "memory and drive",
        flags: "--cpu-mem-gb 0.25 --storage-capacity-gb 1 --backend direct --max-requests 300",
    },
    Work {
        name: "memory",
        flags: "--cpu-mem-gb 0 --storage-capacity-gb 1 --backend memory --max-requests 400",
    },
    Work {
        name: "nothing behind it",
        flags: "--cpu-mem-gb 0 --storage-capacity-gb 1 --backend null --backend-option moves=no \
                --max-requests 20000",
    },
];

/// Users who ask as soon as they are answered, of entries of a few MiB.
const USERS: &str = "bench --model tiny-1b --num-users 16 --load closed --generation-mode none \
    --gpu-mem-gb 0 --warmup 0 --duration 300 --quiet";
const SCALED: &str = "user_templates:
  chatbot: {context_range: [51, 410], generation_range: [5, 20], think_time_range: [0.0, 0.0]}
  coding: {context_range: [51, 410], generation_range: [10, 50], think_time_range: [0.0, 0.0]}
  document: {context_range: [51, 410], generation_range: [20, 80], think_time_range: [0.0, 0.0]}
";

pub(super) const METHOD: &str = "\
`recording` is a benchmark on the store with `--trace-level storage` beside the same without, in turn; who \
goes first alternates. Users ask as soon as they are answered (closed loop, no generation time), for entries \
of 1 to 10 MiB. Times are the wall's and the CPU's of the process from the first request to the last, the \
recorder's thread included; ratios are with / without, the median over pairs, and of the least of all runs, \
which other work on the machine disturbs least. With nothing behind it no byte moves: what is left is the \
store's bookkeeping and the benchmark, so that its CPU says what a record costs, and with that what the \
records of the other rows come to.\n";

const HEAD: &str = "\
| recording | pairs | wall s without | ratio | of the least | CPU s without | ratio | of the least \
| records | records/s | lost |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

/// One run.
struct Run {
    wall_s: f64,
    cpu_s: f64,
    records: f64,
    lost: f64,
}

/// Every work, as a table.
pub(super) fn measure(reps: usize) -> Result<String, String> {
    let place = store::place(&format!("{FOLDER}/recording"));
    fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    fs::write(place.join("scaled.yaml"), SCALED).map_err(|e| format!("{}: {e}", place.display()))?;
    let mut table = HEAD.to_owned();
    let mut measured = Vec::new();
    for work in &WORKS {
        let (without, with) = run_pairs(work, &place, reps.max(PAIRS))?;
        table += &line(work.name, &without, &with);
        measured.push((work.name, without, with));
    }
    table += &shares(&measured);
    fs::remove_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    Ok(table)
}

fn run_pairs(work: &Work, place: &Path, pairs: usize) -> Result<(Vec<Run>, Vec<Run>), String> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    run(work, place, "")?;
    for pair in 0..pairs {
        eprintln!("measuring recording on {}, pair {}", work.name, pair + 1);
        let recorded = format!("--trace-output {}", place.join("calls.lct").display());
        if pair % 2 == 0 {
            without.push(run(work, place, "")?);
            with.push(run(work, place, &recorded)?);
        } else {
            with.push(run(work, place, &recorded)?);
            without.push(run(work, place, "")?);
        }
    }
    Ok((without, with))
}

fn run(work: &Work, place: &Path, more: &str) -> Result<Run, String> {
    let (report, cache) = (place.join("report.json"), place.join("cache"));
    let line = format!(
        "{USERS} {} {more} --config {} --cache-dir {} --output {}",
        work.flags,
        place.join("scaled.yaml").display(),
        cache.display(),
        report.display(),
    );
    let binary = process::release_binary().display().to_string();
    process::text_of(&binary, &line.split_whitespace().collect::<Vec<_>>())?;
    let text = fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    let report: Value = serde_json::from_str(&text).map_err(|e| format!("the report: {e}"))?;
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64);
    Ok(Run {
        wall_s: number("/wall/run_seconds").ok_or("no /wall/run_seconds in the report")?,
        cpu_s: number("/wall/cpu_seconds").ok_or("no /wall/cpu_seconds in the report")?,
        records: number("/recording/calls").unwrap_or(0.0),
        lost: number("/recording/lost").unwrap_or(0.0),
    })
}

fn of(runs: &[Run], value: fn(&Run) -> f64) -> Vec<f64> {
    runs.iter().map(value).collect()
}

fn least(runs: &[Run], value: fn(&Run) -> f64) -> f64 {
    runs.iter().map(value).fold(f64::INFINITY, f64::min)
}

/// What a record costs where there is little else, and what the records of each work come to.
fn shares(measured: &[(&str, Vec<Run>, Vec<Run>)]) -> String {
    let Some((_, without, with)) = measured.last() else { return String::new() };
    let records = median(&of(with, |run| run.records));
    let each = (least(with, |run| run.cpu_s) - least(without, |run| run.cpu_s)) / records;
    let share = |(name, without, with): &(&str, Vec<Run>, Vec<Run>)| {
        let records = median(&of(with, |run| run.records));
        format!("{:.2} % of the CPU on {name}", 100.0 * each * records / least(without, |run| run.cpu_s))
    };
    let shares: Vec<String> = measured[..measured.len() - 1].iter().map(share).collect();
    format!("\nA record costs {:.2} us of CPU: {}.\n", each * 1e6, shares.join(", "))
}

fn line(name: &str, without: &[Run], with: &[Run]) -> String {
    let compared = |value: fn(&Run) -> f64| {
        let ratios = with.iter().zip(without).map(|(with, without)| value(with) / value(without));
        let ratios: Vec<f64> = ratios.collect();
        let quiet = least(with, value) / least(without, value);
        format!("{:.2} | {:.3} | {quiet:.3}", median(&of(without, value)), median(&ratios))
    };
    let (records, seconds) = (median(&of(with, |run| run.records)), median(&of(with, |run| run.wall_s)));
    format!(
        "| {name} | {} | {} | {} | {records:.0} | {:.0} | {:.0} |\n",
        with.len(),
        compared(|run| run.wall_s),
        compared(|run| run.cpu_s),
        records / seconds,
        of(with, |run| run.lost).iter().sum::<f64>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_middle_of_the_ratios() {
        let run = |wall_s: f64, records| Run { wall_s, cpu_s: 2.0 * wall_s, records, lost: records / 100.0 };
        let without = [run(1.0, 0.0), run(2.0, 0.0), run(4.0, 0.0)];
        let with = [run(1.1, 100.0), run(2.02, 100.0), run(4.0, 100.0)];
        assert_eq!(
            line("x", &without, &with),
            "| x | 3 | 2.00 | 1.010 | 1.100 | 4.00 | 1.010 | 1.100 | 100 | 50 | 3 |\n"
        );
        let busy = |cpu_s| vec![Run { wall_s: 1.0, cpu_s, records: 1000.0, lost: 0.0 }];
        let measured = [("y", busy(1.0), busy(1.0)), ("x", busy(0.5), busy(0.502))];
        assert_eq!(shares(&measured), "\nA record costs 2.00 us of CPU: 0.20 % of the CPU on y.\n");
    }
}
