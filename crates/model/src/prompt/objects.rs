//! The keys of a request's blocks by their groups, for who moves whole groups.

use super::Prompt;
use crate::TierObject;
use crate::block_key::BlockKey;

impl Prompt {
    /// The keys of the full blocks `blocks` of a request as [`Self::content_keys`] has them, neighbours of
    /// one group together.
    pub fn content_objects(
        &self,
        owner: u64,
        blocks: std::ops::Range<u32>,
        block_size: u32,
    ) -> impl Iterator<Item = TierObject> + '_ {
        let prompt_blocks = self.full_blocks(block_size);
        let mut at = blocks.start;
        let mut keys = self.keys_from(at.min(prompt_blocks), block_size);
        let mut next = move || {
            let left = blocks.end.checked_sub(at).filter(|&left| left > 0)?;
            let object = match at < prompt_blocks {
                true => keys.next_group(left.min(prompt_blocks - at))?,
                false => {
                    let BlockKey { group, slot } = self.output_key(owner, at, block_size);
                    TierObject { group, slots: 1 << slot }
                }
            };
            at += object.slots.count_ones();
            Some(object)
        };
        let mut ahead = next();
        std::iter::from_fn(move || {
            let mut object = ahead?;
            loop {
                ahead = next();
                match ahead {
                    Some(TierObject { group, slots }) if group == object.group => object.slots |= slots,
                    _ => return Some(object),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u32; 6] = [1, 3, 4, 16, 24, 64];

    /// Broken by: a group that goes beyond its id, its eight slots or what is asked for, or is told twice; a
    /// block that has another key by itself.
    #[test]
    fn objects_are_the_keys_of_their_groups() {
        let asked = |tokens| Prompt::from_ids(1.., tokens + 90, 50).answered_after(tokens);
        let spoken = |tokens| Prompt::from_ids([7, 8, 9], tokens, 50).continued(1).lengthened(tokens + 61);
        let plain = |tokens| Prompt::from_ids([7, 8, 9, 10], tokens, 50);
        let prompts =
            [1, 64, 100, 128].into_iter().flat_map(|tokens| [asked(tokens), spoken(tokens), plain(tokens)]);
        for (prompt, size) in prompts.flat_map(|prompt| SIZES.map(|size| (prompt.clone(), size))) {
            let all: Vec<_> = prompt.content_keys(5, 300, 0, size).collect();
            let one_by_one = (0..all.len() as u32).map(|block| prompt.content_key(5, block, size));
            assert!(one_by_one.eq(all.iter().copied()), "by {size}");
            for (first, last) in [(0, all.len()), (all.len() / 3, all.len()), (1, all.len() / 2), (2, 2)] {
                let first = first.min(last);
                let mut expected: Vec<TierObject> = Vec::new();
                for &BlockKey { group, slot } in &all[first..last] {
                    match expected.last_mut().filter(|object| object.group == group) {
                        Some(object) => object.slots |= 1 << slot,
                        None => expected.push(TierObject { group, slots: 1 << slot }),
                    }
                }
                let found = prompt.content_objects(5, first as u32..last as u32, size);
                assert!(found.eq(expected), "{first}..{last} by {size}");
            }
        }
    }
}
