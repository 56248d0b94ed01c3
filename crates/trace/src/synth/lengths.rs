//! Distributions of lengths: what a user asks for in words, and draws from it.

use std::sync::Arc;

use rand::RngExt;
use rand_distr::{Distribution, Exp1, LogNormal, Normal};
use wavetank_model::{Draw, Error, Result};

use crate::Input;

/// Whole numbers from 1 to `most`, drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Lengths {
    /// What they are like.
    pub shape: Shape,
    /// Longer ones are cut to it.
    pub most: u32,
}

/// How lengths are spread.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// All the same.
    Fixed(u32),
    /// Each as often as the others, from the first to the second.
    Uniform(u32, u32),
    /// A bell.
    Normal {
        /// Its middle.
        mean: f64,
        /// Its width.
        deviation: f64,
    },
    /// A long tail: the logarithms have a bell.
    LogNormal {
        /// Its middle.
        mean_log: f64,
        /// Its width.
        deviation_log: f64,
    },
    /// Gaps between independent events.
    Exponential {
        /// Their mean.
        mean: f64,
    },
    /// As counted elsewhere.
    Empirical(Arc<Counted>),
}

/// Lengths of a file and how often each is drawn.
#[derive(Debug, PartialEq)]
pub struct Counted {
    lengths: Vec<u32>,
    /// Sums of weights up to and including each.
    sums: Vec<f64>,
}

const GRAMMAR: &str = "N, uniform:LOW,HIGH, normal:MEAN,SD, lognormal:MEAN,SD, exponential:MEAN, or \
                       empirical:FILE with a length on every line, and its weight if they differ";

impl Lengths {
    /// One length.
    pub fn fixed(length: u32) -> Self {
        Self { shape: Shape::Fixed(length), most: u32::MAX }
    }

    /// What `text` asks for; `flag` is where it stands.
    pub fn parse(text: &str, flag: &str) -> Result<Self> {
        let wrong = || Error::usage(format!("\"{text}\" is no distribution")).at(flag).hint(GRAMMAR);
        let (name, rest) = text.split_once(':').unwrap_or(("", text));
        if name == "empirical" {
            let shape = Shape::Empirical(Arc::new(Counted::read(&Input::named(rest))?));
            return Ok(Self { shape, most: u32::MAX });
        }
        let parsed: Option<Vec<f64>> = rest.split(',').map(|number| number.trim().parse().ok()).collect();
        let numbers = parsed.ok_or_else(wrong)?;
        let is_length = |number: f64| number.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&number);
        let shape = match (name, &numbers[..]) {
            ("" | "fixed", &[length]) if is_length(length) => Shape::Fixed(length as u32),
            ("uniform", &[low, high]) if is_length(low) && is_length(high) && low <= high => {
                Shape::Uniform(low as u32, high as u32)
            }
            ("normal", &[mean, deviation])
                if is_positive(mean) && (0.0..f64::INFINITY).contains(&deviation) =>
            {
                Shape::Normal { mean, deviation }
            }
            ("lognormal", &[mean, deviation]) if is_positive(mean) && is_positive(deviation) => {
                Shape::lognormal(mean, deviation)
            }
            ("exponential", &[mean]) if is_positive(mean) => Shape::Exponential { mean },
            _ => return Err(wrong()),
        };
        Ok(Self { shape, most: u32::MAX })
    }

    /// The largest that can be drawn.
    pub fn largest(&self) -> u32 {
        let largest = match &self.shape {
            Shape::Fixed(length) => *length,
            Shape::Uniform(_, high) => *high,
            Shape::Empirical(counted) => counted.lengths.iter().copied().max().unwrap_or(1),
            Shape::Normal { .. } | Shape::LogNormal { .. } | Shape::Exponential { .. } => u32::MAX,
        };
        largest.min(self.most)
    }

    /// Draws one.
    pub fn draw(&self, draw: &mut Draw) -> u32 {
        let known = "plans hold positive parameters";
        let length: f64 = match &self.shape {
            Shape::Fixed(length) => return (*length).min(self.most),
            Shape::Uniform(low, high) => return draw.random_range(*low..=*high).min(self.most),
            Shape::Empirical(counted) => return counted.draw(draw).clamp(1, self.most),
            Shape::Normal { mean, deviation } => Normal::new(*mean, *deviation).expect(known).sample(draw),
            Shape::LogNormal { mean_log, deviation_log } => {
                LogNormal::new(*mean_log, *deviation_log).expect(known).sample(draw)
            }
            Shape::Exponential { mean } => {
                let unit: f64 = Exp1.sample(draw);
                unit * mean
            }
        };
        (length.round() as u32).clamp(1, self.most)
    }
}

fn is_positive(number: f64) -> bool {
    number > 0.0 && number.is_finite()
}

impl Shape {
    /// Lengths whose own mean and deviation are these.
    fn lognormal(mean: f64, deviation: f64) -> Self {
        let variance_log = (1.0 + (deviation / mean).powi(2)).ln();
        Self::LogNormal { mean_log: mean.ln() - variance_log / 2.0, deviation_log: variance_log.sqrt() }
    }
}

impl Counted {
    /// Reads a file: on every line a length, and its weight where they differ.
    fn read(input: &Input) -> Result<Self> {
        let mut lines = input.lines()?;
        let (mut lengths, mut sums, mut sum) = (Vec::new(), Vec::new(), 0.0);
        while lines.advance()? {
            let text = String::from_utf8_lossy(lines.current()).into_owned();
            let mut fields = text.split([',', ' ', '\t']).filter(|field| !field.is_empty());
            let length =
                fields.next().and_then(|field| field.parse::<u32>().ok()).filter(|length| *length > 0);
            let weight = fields.next().map_or(Some(1.0), |field| field.parse().ok());
            let weight = weight.filter(|weight: &f64| (0.0..f64::INFINITY).contains(weight));
            let (Some(length), Some(weight), None) = (length, weight, fields.next()) else {
                return Err(Error::input(format!("\"{text}\" is no length"))
                    .at(lines.place())
                    .hint("a whole number from 1, and its weight if they differ"));
            };
            sum += weight;
            lengths.push(length);
            sums.push(sum);
        }
        if sum == 0.0 {
            return Err(Error::input("there are no lengths in it").at(input.name()).hint(GRAMMAR));
        }
        Ok(Self { lengths, sums })
    }

    fn draw(&self, draw: &mut Draw) -> u32 {
        let all = *self.sums.last().expect("there are lengths");
        let at = draw.random::<f64>() * all;
        let position = self.sums.partition_point(|sum| *sum <= at);
        self.lengths[position.min(self.lengths.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::seeded;

    use super::*;

    fn mean_and_deviation(text: &str) -> (f64, f64) {
        let (lengths, mut draw) = (Lengths::parse(text, "--x").unwrap(), seeded(42, "test"));
        let all: Vec<f64> = (0..100_000).map(|_| lengths.draw(&mut draw).into()).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let variance = all.iter().map(|length| (length - mean).powi(2)).sum::<f64>() / all.len() as f64;
        (mean, variance.sqrt())
    }

    /// Broken by: a log-normal whose parameters are those of the logarithms.
    #[test]
    fn draws_have_the_mean_and_deviation_asked_for() {
        for (text, mean, deviation) in [
            ("7", 7.0, 0.0),
            ("uniform:1,9", 5.0, 2.582),
            ("normal:1000,50", 1000.0, 50.0),
            ("lognormal:1000,500", 1000.0, 500.0),
            ("exponential:300", 300.0, 300.0),
        ] {
            let found = mean_and_deviation(text);
            assert!((found.0 - mean).abs() <= mean * 0.01, "{text}: {found:?}");
            assert!((found.1 - deviation).abs() <= deviation * 0.03, "{text}: {found:?}");
        }
    }

    #[test]
    fn lengths_of_a_file_are_drawn_by_weight() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lengths.txt");
        std::fs::write(&path, "10\n20, 3\n").unwrap();
        let (mean, _) = mean_and_deviation(&format!("empirical:{}", path.display()));
        assert!((mean - 17.5).abs() < 0.1, "{mean}");
        for (text, expected) in [("", "no lengths"), ("1\nx\n", ":2: \"x\" is no length"), ("0\n", "\"0\"")] {
            std::fs::write(&path, text).unwrap();
            let error = Counted::read(&Input::File(path.clone())).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_is_no_distribution_is_said() {
        for text in
            ["", "0", "1.5", "normal:1", "normal:0,1", "uniform:5,2", "lognormal:5,0", "beta:1,2", "x"]
        {
            let error = Lengths::parse(text, "--x").unwrap_err().to_string();
            assert!(error.starts_with("--x: ") && error.contains("lognormal:MEAN,SD"), "{error}");
        }
    }
}
