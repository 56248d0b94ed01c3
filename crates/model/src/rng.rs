//! Seeded draws. Every random choice in wavetank comes from a seed that is part of the plan.

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// The generator behind every draw: its stream is fixed by its algorithm, not by the platform.
pub type Draw = Pcg64;

/// A generator for one purpose: the same seed gives independent streams for different purposes.
pub fn seeded(seed: u64, purpose: &str) -> Draw {
    let stream = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Draw::seed_from_u64(seed ^ stream)
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn streams_are_repeatable_and_apart() {
        let first = |seed, purpose| seeded(seed, purpose).next_u64();
        assert_eq!(first(42, "arrivals"), first(42, "arrivals"));
        assert_ne!(first(42, "arrivals"), first(43, "arrivals"));
        assert_ne!(first(42, "arrivals"), first(42, "lengths"));
    }
}
