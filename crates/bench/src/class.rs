//! Service classes: who is served first, and what each is promised.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use wavetank_model::{Class, Draw};

/// What a class is promised, in milliseconds of end-to-end latency, and how urgent it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// 95 of 100 requests.
    pub target_latency_p95_ms: f64,
    /// 99 of 100.
    pub target_latency_p99_ms: f64,
    /// 999 of 1,000.
    pub target_latency_p999_ms: f64,
    /// 9,999 of 10,000.
    pub target_latency_p9999_ms: f64,
    /// The higher is served first.
    pub priority: u32,
}

impl Target {
    /// What `class` is promised unless the configuration says otherwise (spec/kv-bench.md 6).
    pub fn of(class: Class) -> Self {
        let (priority, [p95, p99, p999, p9999]) = match class {
            Class::Interactive => (3, [50.0, 100.0, 150.0, 200.0]),
            Class::Responsive => (2, [100.0, 200.0, 350.0, 500.0]),
            Class::Batch => (1, [1000.0, 5000.0, 7500.0, 10_000.0]),
        };
        Self {
            target_latency_p95_ms: p95,
            target_latency_p99_ms: p99,
            target_latency_p999_ms: p999,
            target_latency_p9999_ms: p9999,
            priority,
        }
    }
}

/// How users fall into classes: one draw below the first bound is interactive, below the second responsive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClassShare {
    /// The share of interactive users.
    pub interactive_probability: f64,
    /// The share of interactive and responsive users together.
    pub responsive_threshold: f64,
}

impl Default for ClassShare {
    fn default() -> Self {
        Self { interactive_probability: 0.15, responsive_threshold: 0.50 }
    }
}

impl ClassShare {
    /// One user's class.
    pub fn draw(&self, draw: &mut Draw) -> Class {
        match draw.random::<f64>() {
            u if u < self.interactive_probability => Class::Interactive,
            u if u < self.responsive_threshold => Class::Responsive,
            _ => Class::Batch,
        }
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::seeded;

    use super::*;

    #[test]
    fn shares_are_met_and_the_urgent_have_priority() {
        let mut draw = seeded(42, "classes");
        let mut counts = [0; 3];
        for _ in 0..20_000 {
            counts[ClassShare::default().draw(&mut draw) as usize] += 1;
        }
        let share = |class: Class| f64::from(counts[class as usize]) / 20_000.0;
        assert!((share(Class::Interactive) - 0.15).abs() < 0.01);
        assert!((share(Class::Responsive) - 0.35).abs() < 0.015);
        assert!(Class::ALL.is_sorted_by_key(|class| std::cmp::Reverse(Target::of(*class).priority)));
    }
}
