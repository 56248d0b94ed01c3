//! Personas: how long the prompts and answers of a kind of user are, and how long it thinks.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use wavetank_model::Draw;

/// A kind of user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persona {
    /// Short prompts, short answers, little thought.
    Chatbot,
    /// Long prompts.
    Coding,
    /// Long prompts, long answers, long thought.
    Document,
}

/// What is drawn for a user of a persona; ranges include their ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// Prompt tokens.
    pub context_range: [u32; 2],
    /// Generated tokens.
    pub generation_range: [u32; 2],
    /// Seconds between requests.
    pub think_time_range: [f64; 2],
}

impl Persona {
    /// Every persona.
    pub const ALL: [Self; 3] = [Self::Chatbot, Self::Coding, Self::Document];

    /// Its name in flags and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chatbot => "chatbot",
            Self::Coding => "coding",
            Self::Document => "document",
        }
    }

    /// What is drawn unless the configuration says otherwise (spec/kv-bench.md 5).
    pub fn template(self) -> Template {
        let (context_range, generation_range, think_time_range) = match self {
            Self::Chatbot => ([512, 4096], [50, 200], [0.1, 0.5]),
            Self::Coding => ([4096, 25_000], [100, 500], [0.2, 1.0]),
            Self::Document => ([4096, 16_384], [200, 800], [0.3, 1.5]),
        };
        Template { context_range, generation_range, think_time_range }
    }
}

/// How many users there are of each persona, relative to each other, in the order of [`Persona::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mix(pub [f64; 3]);

impl Default for Mix {
    fn default() -> Self {
        Self([1.0; 3])
    }
}

impl Mix {
    /// One user's persona.
    pub fn draw(&self, draw: &mut Draw) -> Persona {
        let mut left = draw.random::<f64>() * self.0.iter().sum::<f64>();
        for (persona, share) in Persona::ALL.into_iter().zip(self.0) {
            left -= share;
            if left < 0.0 {
                return persona;
            }
        }
        // Rounding may leave a hair: the last persona that there is.
        let last = Persona::ALL.into_iter().zip(self.0).rev().find(|(_, share)| *share > 0.0);
        last.map_or(Persona::Document, |(persona, _)| persona)
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::seeded;

    use super::*;

    #[test]
    fn a_mix_is_met() {
        let mut draw = seeded(1, "personas");
        let mix = Mix([0.0, 3.0, 1.0]);
        let coding = (0..8000).filter(|_| mix.draw(&mut draw) == Persona::Coding).count();
        assert!((coding as f64 / 8000.0 - 0.75).abs() < 0.02, "{coding}");
        assert!((0..1000).all(|_| mix.draw(&mut draw) != Persona::Chatbot));
    }
}
