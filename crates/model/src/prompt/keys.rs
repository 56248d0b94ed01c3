//! The keys of a prompt's blocks, one after the other.

use super::Prompt;
use crate::TierObject;
use crate::block_key::BlockKey;

/// Iterator over the block keys of a prompt; most steps only count.
#[derive(Clone, Debug)]
pub struct BlockKeys<'a> {
    prompt: &'a Prompt,
    block_size: u32,
    block: u32,
    end: u32,
    named: u32,
    id: usize,
    id_end: u32,
    last: Option<BlockKey>,
}

impl<'a> BlockKeys<'a> {
    /// The keys of `prompt` from block `first` on.
    pub(super) fn of(prompt: &'a Prompt, first: u32, block_size: u32) -> Self {
        let end = first * block_size;
        let id = end / prompt.tokens_per_id;
        let id_end = (id + 1).saturating_mul(prompt.tokens_per_id);
        let (id, named) = (id as usize, prompt.named_tokens());
        Self { prompt, block_size, block: first, end, named, id, id_end, last: None }
    }

    /// The next keys of one group together, `most` of them at most.
    pub(super) fn next_group(&mut self, most: u32) -> Option<TierObject> {
        let BlockKey { group, slot } = self.next()?;
        let room = (most - 1).min(BlockKey::PER_GROUP - 1 - slot);
        let mut count = 0;
        if self.end <= self.named {
            count = room.min((self.id_end.min(self.named) - self.end) / self.block_size);
            self.block += count;
            self.end += count * self.block_size;
            self.last = Some(BlockKey { group, slot: slot + count });
        } else {
            let tokens = self.prompt.tokens;
            while count < room && self.end + self.block_size <= tokens {
                let next = self.prompt.tail_key(self.block, self.end + self.block_size);
                if next.group != group {
                    break;
                }
                (self.block, self.end, count) = (self.block + 1, self.end + self.block_size, count + 1);
            }
        }
        let slots = ((1u16 << (count + 1)) - 1) << slot;
        Some(TierObject { group, slots: slots as u8 })
    }

    /// The next key beyond what ids name.
    #[cold]
    fn next_of_tail(&mut self) -> Option<BlockKey> {
        let (block, end) = (self.block, self.end + self.block_size);
        (end <= self.prompt.tokens).then(|| {
            (self.end, self.block) = (end, block + 1);
            self.prompt.tail_key(block, end)
        })
    }
}

impl Iterator for BlockKeys<'_> {
    type Item = BlockKey;

    fn next(&mut self) -> Option<BlockKey> {
        let end = self.end + self.block_size;
        if end > self.named {
            return self.next_of_tail();
        }
        let neighbour = self.last.filter(|last| last.slot + 1 < BlockKey::PER_GROUP && end <= self.id_end);
        while self.id_end < end {
            self.id += 1;
            self.id_end = self.id_end.saturating_add(self.prompt.tokens_per_id);
        }
        let key = match neighbour {
            Some(BlockKey { group, slot }) => BlockKey { group, slot: slot + 1 },
            None => BlockKey::at(self.prompt.chain[self.id], self.block),
        };
        (self.end, self.block, self.last) = (end, self.block + 1, Some(key));
        Some(key)
    }
}
