//! The choice among prices: the lowest, ties by lot; or by lot altogether, weighted by temperature.

use rand::RngExt;
use wavetank_model::{Draw, seeded};

/// Chooses positions.
pub(super) struct Pick {
    temperature: f64,
    draw: Draw,
    weights: Vec<f64>,
}

impl Pick {
    pub(super) fn of(temperature: f64, seed: u64) -> Self {
        Self { temperature, draw: seeded(seed, "kv router"), weights: Vec::new() }
    }

    /// The position of the chosen cost; there is at least one.
    pub(super) fn cheapest(&mut self, costs: &[f64]) -> usize {
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = costs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if self.temperature > 0.0 && most > least {
            return self.by_temperature(costs, least, most);
        }
        let tied = |cost: f64| self.temperature > 0.0 || cost == least;
        let ties = costs.iter().filter(|&&cost| tied(cost)).count();
        let chosen = if ties > 1 { self.draw.random_range(0..ties) } else { 0 };
        let mut candidates = (0..costs.len()).filter(|&position| tied(costs[position]));
        candidates.nth(chosen).unwrap_or(0)
    }

    /// Softmax of the negated costs, scaled by their range: the temperature has no unit.
    fn by_temperature(&mut self, costs: &[f64], least: f64, most: f64) -> usize {
        let scale = (most - least) * self.temperature;
        self.weights.clear();
        self.weights.extend(costs.iter().map(|cost| (-(cost - least) / scale).exp()));
        let total: f64 = self.weights.iter().sum();
        let mut left = self.draw.random::<f64>() * total;
        for (position, weight) in self.weights.iter().enumerate() {
            left -= weight;
            if left <= 0.0 {
                return position;
            }
        }
        self.weights.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of_first(temperature: f64, costs: &[f64]) -> f64 {
        let mut pick = Pick::of(temperature, 42);
        let first = (0..20_000).filter(|_| pick.cheapest(costs) == 0).count();
        first as f64 / 20_000.0
    }

    #[test]
    fn the_cheapest_wins_and_ties_are_even() {
        assert_eq!(share_of_first(0.0, &[1.0, 2.0, 3.0]), 1.0);
        assert_eq!(share_of_first(0.0, &[2.0, 1.0]), 0.0);
        assert!((share_of_first(0.0, &[1.0, 1.0, 9.0, 1.0]) - 1.0 / 3.0).abs() < 0.02);
        assert!((share_of_first(0.5, &[4.0, 4.0]) - 0.5).abs() < 0.02);
    }

    #[test]
    fn temperature_is_free_of_scale() {
        // With two workers the better one gets 1 / (1 + e^(-1/T)).
        for temperature in [0.2, 1.0, 5.0] {
            let expected = 1.0 / (1.0 + (-1.0f64 / temperature).exp());
            for costs in [[1.0, 2.0], [100.0, 900.0]] {
                let found = share_of_first(temperature, &costs);
                assert!((found - expected).abs() < 0.02, "{temperature} {found} {expected}");
            }
        }
    }
}
