//! Counts in logarithmic buckets: 2048 per octave, so a bucket's middle is within 0.025 % of its values.

/// Sub-buckets per octave, as a power of two. Values below 2^11 have a bucket of their own.
const BITS: u32 = 11;
const PER_OCTAVE: usize = 1 << BITS;

/// A weighted histogram of whole numbers.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Counts of the buckets of each octave; none where nothing fell into it.
    octaves: Vec<Vec<u64>>,
    total: u64,
}

impl Histogram {
    /// Adds `weight` occurrences of each of `values`. Neighbours that fall into one bucket cost one update.
    pub(crate) fn record_all(&mut self, values: impl Iterator<Item = u64>, weight: u64) {
        let (mut bucket, mut count) = (0, 0);
        for value in values {
            let next = bucket_of(value);
            if next != bucket {
                self.add(bucket, count);
                (bucket, count) = (next, 0);
            }
            count += weight;
        }
        self.add(bucket, count);
    }

    fn add(&mut self, bucket: usize, count: u64) {
        if count == 0 {
            return;
        }
        let (octave, place) = (bucket / PER_OCTAVE, bucket % PER_OCTAVE);
        if octave >= self.octaves.len() {
            self.octaves.resize_with(octave + 1, Vec::new);
        }
        let counts = &mut self.octaves[octave];
        if counts.is_empty() {
            *counts = vec![0; PER_OCTAVE];
        }
        counts[place] += count;
        self.total += count;
    }

    /// How many values were recorded.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many of them were zero.
    pub(crate) fn zeros(&self) -> u64 {
        self.octaves.first().and_then(|counts| counts.first()).copied().unwrap_or(0)
    }

    /// The value of rank `rank` (from 0, ascending), to the middle of its bucket.
    pub(crate) fn at_rank(&self, rank: u64) -> f64 {
        self.at_ranks([rank]).first().copied().unwrap_or(0.0)
    }

    /// The values of ascending ranks, in one pass; none where there are not so many values.
    pub(crate) fn at_ranks(&self, ranks: impl IntoIterator<Item = u64>) -> Vec<f64> {
        let octaves = self.octaves.iter().enumerate();
        let mut buckets = octaves.flat_map(|(octave, counts)| (octave * PER_OCTAVE..).zip(counts));
        let (mut before, mut bucket) = (0, 0);
        let mut at = |rank: u64| {
            while before <= rank {
                let (next, &count) = buckets.next()?;
                before += count;
                bucket = next;
            }
            Some(middle_of(bucket))
        };
        ranks.into_iter().map_while(&mut at).collect()
    }
}

fn bucket_of(value: u64) -> usize {
    let exponent = (value | (PER_OCTAVE as u64 - 1)).ilog2();
    if exponent < BITS {
        return value as usize;
    }
    let shift = exponent - BITS;
    ((shift as usize) << BITS) + (value >> shift) as usize
}

fn middle_of(bucket: usize) -> f64 {
    let octave = bucket >> BITS;
    if octave < 2 {
        return bucket as f64;
    }
    let shift = octave as u32 - 1;
    let low = ((bucket & (PER_OCTAVE - 1)) as u64 + PER_OCTAVE as u64) << shift;
    low as f64 + ((1u64 << shift) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bucket_is_as_narrow_as_promised(value in 0u64..(1 << 50)) {
            let middle = middle_of(bucket_of(value));
            prop_assert!((middle - value as f64).abs() <= value as f64 * 0.00025);
        }

        #[test]
        fn buckets_keep_the_order(a in 0u64..(1 << 50), b in 0u64..(1 << 50)) {
            prop_assert_eq!(a.cmp(&b) as i32 * (bucket_of(a).cmp(&bucket_of(b)) as i32) >= 0, true);
        }

        #[test]
        fn ranks_agree_with_a_sorted_list(mut values in proptest::collection::vec(0u64..5_000_000, 1..200)) {
            let mut histogram = Histogram::default();
            histogram.record_all(values.iter().copied(), 1);
            values.sort_unstable();
            for (rank, &value) in values.iter().enumerate() {
                let found = histogram.at_rank(rank as u64);
                prop_assert!((found - value as f64).abs() <= value as f64 * 0.00025);
            }
        }
    }

    #[test]
    fn neighbours_meet() {
        for value in [2047, 2048, 4095, 4096, (1 << 20) - 1, 1 << 20] {
            assert_eq!(bucket_of(value + 1) - bucket_of(value), usize::from(value < 4096 || value % 2 == 1));
        }
    }
}
