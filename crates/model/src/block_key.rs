//! The identity of a block of tokens, as caches know it.

/// The identity of a full block: equal keys mean equal tokens from the start of the prompt to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockKey {
    /// A mixed hash, shared by blocks that agree in all but their position among eight.
    pub group: u64,
    /// The position, below [`BlockKey::PER_GROUP`].
    pub slot: u32,
}

impl BlockKey {
    /// How many blocks a group can hold.
    pub const PER_GROUP: u32 = 8;

    /// A bit that no other bit of a hash depends on: set for content that only one request can have.
    const PRIVATE: u64 = 1 << 40;

    pub(crate) fn at(parent: u64, block: u32) -> Self {
        let group = mix(parent, u64::from(block / Self::PER_GROUP)) & !Self::PRIVATE;
        Self { group, slot: block % Self::PER_GROUP }
    }

    pub(crate) fn private(self) -> Self {
        Self { group: self.group | Self::PRIVATE, ..self }
    }

    /// Whether `group` holds content that no other request can ask for.
    pub fn is_private(group: u64) -> bool {
        group & Self::PRIVATE != 0
    }
}

/// Multiply-and-fold of two words (the core of wyhash, Wang Yi 2019): 64 well mixed bits.
pub fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left ^ 0xa076_1d64_78bd_642f) * u128::from(right ^ 0xe703_7ed1_a0b4_28db);
    (product as u64) ^ ((product >> 64) as u64)
}
