//! A keyed permutation of 64-bit numbers: four rounds of a Feistel network (Luby and Rackoff, 1988) whose
//! round function is SipHash-2-4 (Aumasson and Bernstein, 2012). Different numbers stay different, always,
//! which a truncated hash would only make likely.

/// Rounds; four make a permutation that cannot be told from a random one, forwards or backwards.
const ROUNDS: usize = 4;

/// The permutation of one key.
pub(super) struct Permutation {
    rounds: [[u64; 2]; ROUNDS],
}

impl Permutation {
    /// Of a key of four times 16 bytes.
    pub(super) fn of(key: &[u8; 16 * ROUNDS]) -> Self {
        let word = |at: usize| u64::from_le_bytes(key[8 * at..][..8].try_into().expect("eight bytes"));
        Self { rounds: std::array::from_fn(|round| [word(2 * round), word(2 * round + 1)]) }
    }

    /// What `number` becomes.
    pub(super) fn apply(&self, number: u64) -> u64 {
        let (mut left, mut right) = ((number >> 32) as u32, number as u32);
        for key in &self.rounds {
            (left, right) = (right, left ^ siphash(*key, right) as u32);
        }
        u64::from(left) << 32 | u64::from(right)
    }
}

/// SipHash-2-4 of the four bytes of `message`.
fn siphash(key: [u64; 2], message: u32) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let block = 4 << 56 | u64::from(message);
    state[3] ^= block;
    (0..2).for_each(|_| sip_round(&mut state));
    state[0] ^= block;
    state[2] ^= 0xff;
    (0..4).for_each(|_| sip_round(&mut state));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn sip_round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::Hasher;

    use super::*;

    /// The key 00 01 … 0f and the message 00 01 02 03, row 4 of the authors' table of test vectors.
    #[test]
    fn siphash_is_the_authors() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(siphash(key, 0x0302_0100).to_le_bytes(), [0xb7, 0x87, 0x71, 0x27, 0xe0, 0x94, 0x27, 0xcf]);
    }

    #[test]
    #[expect(deprecated, reason = "the standard library's own, to compare with")]
    fn siphash_is_the_standard_librarys() {
        for message in [0_u32, 1, 0x8000_0000, u32::MAX, 123_456_789] {
            let mut hasher = std::hash::SipHasher::new_with_keys(3, u64::MAX);
            hasher.write(&message.to_le_bytes());
            assert_eq!(siphash([3, u64::MAX], message), hasher.finish());
        }
    }

    #[test]
    fn different_numbers_stay_different() {
        let permutation = Permutation::of(&[7; 64]);
        let numbers = (0..50_000).chain((0..50_000).map(|n| n << 32));
        let images: BTreeSet<u64> = numbers.map(|number| permutation.apply(number)).collect();
        assert_eq!(images.len(), 99_999);
        assert_ne!(permutation.apply(1), Permutation::of(&[8; 64]).apply(1));
    }
}
