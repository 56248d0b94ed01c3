//! Pairs of runs, and what they come to.

use super::{KIB, MIB};
use crate::bench::rate::{Rate, median};

/// One run of each program, back to back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) ours: Rate,
    pub(super) fio: Rate,
}

/// What both programs do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// Our name for it.
    pub(super) ours: &'static str,
    /// fio's.
    pub(super) fio: &'static str,
}

/// In this order: what is read was written before, and is then written again.
pub(super) const PHASES: [Phase; 3] = [
    Phase { name: "write new", ours: "write", fio: "write" },
    Phase { name: "read", ours: "read", fio: "read" },
    Phase { name: "overwrite", ours: "overwrite", fio: "write" },
];

pub(super) const HEAD: &str = "\
| entry | in flight | phase | ours MB/s | spread | fio MB/s | spread | ratio | ours CPU/GiB | fio CPU/GiB |
|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|
";

/// One line of the table.
pub(super) fn row(size: u64, depth: usize, phase: Phase, pairs: &[Pair]) -> String {
    let size = if size < MIB { format!("{} KiB", size / KIB) } else { format!("{} MiB", size / MIB) };
    let of = |value: fn(&Pair) -> f64| pairs.iter().map(value).collect::<Vec<f64>>();
    let (ours, fio) = (of(|pair| pair.ours.mb_per_s()), of(|pair| pair.fio.mb_per_s()));
    format!(
        "| {size} | {depth} | {} | {:.0} | {:.0} % | {:.0} | {:.0} % | {:.2} | {:.3} | {:.3} |\n",
        phase.name,
        median(&ours),
        spread(&ours),
        median(&fio),
        spread(&fio),
        median(&of(|pair| pair.ours.mb_per_s() / pair.fio.mb_per_s())),
        median(&of(|pair| pair.ours.cpu_s_per_gib())),
        median(&of(|pair| pair.fio.cpu_s_per_gib())),
    )
}

/// (most - least) / median, in percent.
fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    100.0 * (most - least) / median(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_medians_spreads_and_the_paired_ratio() {
        let rate = |mb: f64, cpu_s| Rate { bytes: 1_073_741_824.0, seconds: 1_073.741_824 / mb, cpu_s };
        let pair = |ours, fio| Pair { ours: rate(ours, 0.1), fio: rate(fio, 0.2) };
        let pairs = [pair(100.0, 200.0), pair(300.0, 200.0), pair(200.0, 250.0)];
        let row = row(128 * KIB, 4, PHASES[1], &pairs);
        assert_eq!(row, "| 128 KiB | 4 | read | 200 | 100 % | 200 | 25 % | 0.80 | 0.100 | 0.200 |\n");
    }
}
