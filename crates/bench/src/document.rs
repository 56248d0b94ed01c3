//! Documents for retrieval: split into chunks whose KV is written before anyone asks, and read by whoever
//! does.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use wavetank_model::{Draw, seeded};

/// How documents are made and retrieved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Documents {
    /// How many; none without retrieval.
    pub count: u32,
    /// Tokens of a whole chunk.
    pub chunk_tokens: u32,
    /// Chunks one request reads.
    pub top_k: u32,
    /// The share of requests that read some.
    pub request_probability: f64,
    /// Shortest and longest document, in tokens.
    pub tokens_range: [u32; 2],
    /// A chunk is no longer than this many bytes, whatever the model.
    pub chunk_bytes_max: u64,
    /// Which documents are asked for.
    pub popularity: Popularity,
}

/// Which documents are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Popularity {
    /// A few of them often: Zipf's law with exponent 1.
    #[default]
    Zipfian,
    /// All alike.
    Uniform,
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            count: 0,
            chunk_tokens: 512,
            top_k: 5,
            request_probability: 0.1,
            tokens_range: [4000, 12_000],
            chunk_bytes_max: 256 << 20,
            popularity: Popularity::Zipfian,
        }
    }
}

/// The documents of a run: how many chunks each has, and how long its last one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    tokens: Vec<u32>,
    chunk_tokens: u32,
    popularity: Popularity,
}

impl Library {
    /// The documents of `seed`. A token takes `bytes_per_token`, which may shorten chunks.
    pub fn new(documents: &Documents, bytes_per_token: u64, seed: u64) -> Self {
        let mut draw = seeded(seed, "documents");
        let [low, high] = documents.tokens_range;
        let tokens = (0..documents.count).map(|_| draw.random_range(low..=high)).collect();
        let fit = (documents.chunk_bytes_max / bytes_per_token.max(1)).clamp(1, u64::from(u32::MAX)) as u32;
        Self {
            tokens,
            chunk_tokens: documents.chunk_tokens.min(fit).max(1),
            popularity: documents.popularity,
        }
    }

    /// How many documents there are.
    pub fn len(&self) -> u32 {
        self.tokens.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// How many chunks document `number` has.
    pub fn chunks(&self, number: u32) -> u32 {
        self.tokens[number as usize].div_ceil(self.chunk_tokens)
    }

    /// The tokens of one chunk.
    pub fn chunk_tokens(&self, number: u32, chunk: u32) -> u32 {
        (self.tokens[number as usize] - chunk * self.chunk_tokens).min(self.chunk_tokens)
    }

    /// Every chunk of every document, with its tokens.
    pub fn all(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        let chunks = move |number| (0..self.chunks(number)).map(move |chunk| (number, chunk));
        (0..self.len())
            .flat_map(chunks)
            .map(|(number, chunk)| (number, chunk, self.chunk_tokens(number, chunk)))
    }

    /// A document and the chunks of it that a request reads: neighbours, as a good index gives them.
    pub fn retrieve(&self, top_k: u32, draw: &mut Draw) -> (u32, std::ops::Range<u32>) {
        let document = match self.popularity {
            Popularity::Zipfian => self.zipf(draw),
            Popularity::Uniform => draw.random_range(0..self.len()),
        };
        let chunks = self.chunks(document);
        let count = top_k.min(chunks);
        let first = draw.random_range(0..=chunks - count);
        (document, first..first + count)
    }

    fn zipf(&self, draw: &mut Draw) -> u32 {
        let total: f64 = (1..=self.len()).map(|rank| 1.0 / f64::from(rank)).sum();
        let mut left = draw.random::<f64>() * total;
        for rank in 1..=self.len() {
            left -= 1.0 / f64::from(rank);
            if left < 0.0 {
                return rank - 1;
            }
        }
        self.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_a_document_and_the_first_is_asked_for_most() {
        let documents = Documents { count: 10, ..Documents::default() };
        let library = Library::new(&documents, 131_072, 42);
        for number in 0..10 {
            let total: u32 =
                (0..library.chunks(number)).map(|chunk| library.chunk_tokens(number, chunk)).sum();
            assert!((4000..=12_000).contains(&total), "{total}");
        }
        let mut draw = seeded(42, "retrieval");
        let mut asked = [0; 10];
        for _ in 0..5000 {
            let (document, chunks) = library.retrieve(5, &mut draw);
            assert!(chunks.len() == 5 && chunks.end <= library.chunks(document));
            asked[document as usize] += 1;
        }
        assert!(asked[0] > 2 * asked[2] && asked[2] > asked[9], "{asked:?}");
    }

    #[test]
    fn a_chunk_is_never_longer_than_it_may_be() {
        let documents = Documents { count: 1, chunk_bytes_max: 1000, ..Documents::default() };
        let library = Library::new(&documents, 100, 1);
        assert!((0..library.chunks(0)).all(|chunk| library.chunk_tokens(0, chunk) <= 10));
    }
}
