//! Arrival processes: the times at which sessions start. The first one starts at zero.

use rand::Rng;
use rand_distr::{Distribution, Exp1, Gamma};
use serde::{Deserialize, Serialize};
use wavetank_model::{Draw, seeded};

/// A process of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Process {
    /// Equal gaps; zero is a burst.
    Constant {
        /// The gap.
        interval_ms: f64,
    },
    /// Exponential gaps.
    Poisson {
        /// Mean arrivals per second.
        per_second: f64,
    },
    /// Gamma gaps: smoother than Poisson above a smoothness of 1, burstier below.
    Gamma {
        /// Mean arrivals per second.
        per_second: f64,
        /// The shape parameter.
        smoothness: f64,
    },
}

/// Start times in milliseconds, without end.
#[derive(Clone, Debug)]
pub struct Times {
    process: Process,
    draw: Draw,
    count: u64,
    last_ms: f64,
}

impl Process {
    /// The start times under `seed`.
    pub fn times(self, seed: u64) -> Times {
        Times { process: self, draw: seeded(seed, "arrivals"), count: 0, last_ms: 0.0 }
    }
}

impl Iterator for Times {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        let first = self.count == 0;
        self.last_ms = match self.process {
            Process::Constant { interval_ms } => self.count as f64 * interval_ms,
            _ if first => 0.0,
            Process::Poisson { per_second } => {
                self.last_ms + exponential(&mut self.draw) * 1000.0 / per_second
            }
            Process::Gamma { per_second, smoothness } => {
                let mean = 1000.0 / per_second;
                let gaps = Gamma::new(smoothness, mean / smoothness).expect("plans hold positive parameters");
                self.last_ms + gaps.sample(&mut self.draw)
            }
        };
        self.count += 1;
        Some(self.last_ms)
    }
}

fn exponential(draw: &mut impl Rng) -> f64 {
    Exp1.sample(draw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(process: Process) -> (f64, f64) {
        let times: Vec<f64> = process.times(42).take(100_001).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn l9_constant() {
        let times: Vec<f64> = Process::Constant { interval_ms: 100.0 }.times(42).take(4).collect();
        assert_eq!(times, [0.0, 100.0, 200.0, 300.0]);
    }

    #[test]
    fn l9_poisson() {
        let (mean, deviation) = gaps(Process::Poisson { per_second: 10.0 });
        assert!((mean - 100.0).abs() < 1.0 && (deviation - 100.0).abs() < 2.0, "{mean} {deviation}");
    }

    #[test]
    fn l9_gamma() {
        let (mean, deviation) = gaps(Process::Gamma { per_second: 20.0, smoothness: 4.0 });
        assert!((mean - 50.0).abs() < 0.5 && (deviation - 25.0).abs() < 0.5, "{mean} {deviation}");
    }

    #[test]
    fn seeds_differ() {
        let third = |seed| Process::Poisson { per_second: 1.0 }.times(seed).nth(2);
        assert_eq!(third(1), third(1));
        assert_ne!(third(1), third(2));
    }
}
