//! The KV blocks of one worker as a plain list (spec/engine.md 6). Content is the whole prefix, spelled out.

/// A physical block.
#[derive(Clone, Debug, Default)]
struct Block {
    /// All tokens from the start of the sequence to the end of the block, once it is published.
    content: Option<Vec<u64>>,
    /// When it was published: a count of operations.
    published: u64,
    /// How many requests hold it.
    users: u32,
    /// When the last of them let go: a count of operations.
    released: u64,
}

/// The blocks of one worker.
pub(crate) struct Pool {
    blocks: Vec<Block>,
    block_size: usize,
    caching: bool,
    operations: u64,
}

impl Pool {
    pub(crate) fn of(blocks: usize, block_size: usize, caching: bool) -> Self {
        Self { blocks: vec![Block::default(); blocks], block_size, caching, operations: 0 }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.blocks.len()
    }

    /// Blocks that nobody holds, cached or empty.
    pub(crate) fn available(&self) -> usize {
        self.blocks.iter().filter(|block| block.users == 0).count()
    }

    pub(crate) fn is_active(&self, block: usize) -> bool {
        self.blocks[block].users > 0
    }

    /// The longest run of published blocks from the start of `tokens` that leaves at least one token to
    /// compute; of several copies the oldest.
    pub(crate) fn lookup(&self, tokens: &[u64]) -> Vec<usize> {
        let mut hits = Vec::new();
        for count in 1..=(tokens.len() - 1) / self.block_size {
            let wanted = &tokens[..count * self.block_size];
            let copies =
                (0..self.blocks.len()).filter(|&i| self.blocks[i].content.as_deref() == Some(wanted));
            let Some(oldest) = copies.min_by_key(|&i| self.blocks[i].published) else { break };
            hits.push(oldest);
        }
        hits
    }

    /// One more request holds a cached block.
    pub(crate) fn pin(&mut self, block: usize) {
        self.blocks[block].users += 1;
    }

    /// An empty block if there is one, else the cached one that was released first.
    pub(crate) fn take(&mut self) -> usize {
        let idle = (0..self.blocks.len()).filter(|&i| self.blocks[i].users == 0);
        let first = idle.min_by_key(|&i| (self.blocks[i].content.is_some(), self.blocks[i].released));
        let block = first.expect("the caller checked that enough are available");
        self.blocks[block] = Block { users: 1, ..Block::default() };
        block
    }

    /// The block is completely computed: others may find it from now on.
    pub(crate) fn publish(&mut self, block: usize, prefix: &[u64]) {
        if self.caching && self.blocks[block].content.is_none() {
            self.operations += 1;
            self.blocks[block].content = Some(prefix.to_vec());
            self.blocks[block].published = self.operations;
        }
    }

    /// A request gives all its blocks back, the last one first.
    pub(crate) fn release(&mut self, blocks: Vec<usize>) {
        for block in blocks.into_iter().rev() {
            self.operations += 1;
            self.blocks[block].users -= 1;
            self.blocks[block].released = self.operations;
        }
    }
}
