//! Batches of events as the bytes that vLLM publishes: MessagePack of `[seconds, [events], rank]`.
//!
//! Since June 2026 (vLLM pull request 42892) an event is a map of names with its kind under `type`; before,
//! and in SGLang, it is an array that begins with its kind. Fields are those of
//! `vllm/distributed/kv_events.py`: a map has them where they differ from their default, an array up to the
//! last one without a default.

use rmp::encode;
use serde::Serialize;

/// What an event is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// A map of names, as vLLM publishes it now.
    #[default]
    Map,
    /// An array, as vLLM published it before and SGLang does.
    Array,
}

impl Encoding {
    /// Every one, by the name users type.
    pub const ALL: [(&str, Self); 2] = [("map", Self::Map), ("array", Self::Array)];
}

/// What happened to blocks of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// They can be found now, each after the one before it.
    Stored {
        hashes: Vec<u64>,
        /// The one before the first; `None` at the beginning of a prompt.
        parent: Option<u64>,
        /// Those of all of them.
        tokens: Vec<u32>,
    },
    /// They cannot be found any more.
    Removed(Vec<u64>),
    /// Nothing can be found any more.
    Cleared,
}

/// What happened on a worker at one time.
#[derive(Debug)]
pub(super) struct Batch<'e> {
    /// Seconds since 1970.
    pub(super) at: f64,
    pub(super) events: &'e [Event],
    pub(super) rank: u32,
    pub(super) block_size: u32,
}

impl Batch<'_> {
    pub(super) fn encode(&self, encoding: Encoding) -> Vec<u8> {
        let mut pen = Pen { bytes: Vec::with_capacity(256), encoding };
        pen.array(3);
        pen.float(self.at);
        pen.array(self.events.len() as u32);
        for event in self.events {
            pen.event(event, self.block_size);
        }
        pen.natural(u64::from(self.rank));
        pen.bytes
    }
}

/// Where blocks are.
const MEDIUM: &str = "GPU";
/// What the blocks of a model without sliding windows are for.
const SPEC_KIND: &str = "full_attention";

/// A payload being written; memory takes every byte, so nothing fails.
struct Pen {
    bytes: Vec<u8>,
    encoding: Encoding,
}

macro_rules! put {
    ($($name:ident($value:ty) = $write:path;)*) => {$(
        fn $name(&mut self, value: $value) {
            $write(&mut self.bytes, value).expect("memory takes every byte");
        }
    )*};
}

impl Pen {
    put! {
        map(u32) = encode::write_map_len;
        array(u32) = encode::write_array_len;
        text(&str) = encode::write_str;
        float(f64) = encode::write_f64;
    }

    fn natural(&mut self, value: u64) {
        encode::write_uint(&mut self.bytes, value).expect("memory takes every byte");
    }

    fn nil(&mut self) {
        encode::write_nil(&mut self.bytes).expect("memory takes every byte");
    }

    fn natural_or_nil(&mut self, value: Option<u64>) {
        match value {
            Some(value) => self.natural(value),
            None => self.nil(),
        }
    }

    fn naturals(&mut self, values: impl ExactSizeIterator<Item = u64>) {
        self.array(values.len() as u32);
        values.for_each(|value| self.natural(value));
    }

    fn event(&mut self, event: &Event, block_size: u32) {
        match event {
            Event::Stored { hashes, parent, tokens } => {
                self.begin("BlockStored", [7, 3]);
                self.name("block_hashes").naturals(hashes.iter().copied());
                self.name("parent_block_hash").natural_or_nil(*parent);
                self.name("token_ids").naturals(tokens.iter().map(|&token| u64::from(token)));
                self.name("block_size").natural(u64::from(block_size));
                self.name("lora_id").nil();
                self.name("medium").text(MEDIUM);
                self.name("lora_name").nil();
                self.more_of_stored(hashes.len() as u32);
            }
            Event::Removed(hashes) => {
                self.begin("BlockRemoved", [2, 1]);
                self.name("block_hashes").naturals(hashes.iter().copied());
                self.name("medium").text(MEDIUM);
                if self.encoding == Encoding::Map {
                    self.name("group_idx").natural(0);
                }
            }
            Event::Cleared => self.begin("AllBlocksCleared", [0, 0]),
        }
    }

    /// What only maps have of blocks that were stored.
    fn more_of_stored(&mut self, blocks: u32) {
        if self.encoding == Encoding::Map {
            self.name("extra_keys").array(blocks);
            (0..blocks).for_each(|_| self.nil());
            self.name("group_idx").natural(0);
            self.name("kv_cache_spec_kind").text(SPEC_KIND);
        }
    }

    /// Begins an event of so many fields, and more in a map.
    fn begin(&mut self, kind: &str, [fields, more]: [u32; 2]) {
        match self.encoding {
            Encoding::Map => self.map(1 + fields + more),
            Encoding::Array => self.array(1 + fields),
        }
        self.name("type").text(kind);
    }

    /// Names the next value where values have names.
    fn name(&mut self, name: &str) -> &mut Self {
        if self.encoding == Encoding::Map {
            self.text(name);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(encoding: Encoding) -> Vec<u8> {
        let events = [
            Event::Stored { hashes: vec![7, u64::MAX], parent: None, tokens: vec![1, 300, 70_000, 4] },
            Event::Stored { hashes: vec![9], parent: Some(1 << 63), tokens: vec![5, 6] },
            Event::Removed(vec![7, 256]),
            Event::Cleared,
        ];
        Batch { at: 1.5, events: &events, rank: 3, block_size: 2 }.encode(encoding)
    }

    /// What `msgspec.msgpack.encode` of msgspec 0.22.0 makes of the same batch, with structs that have vLLM's
    /// fields. Broken by: a field out of order, a number in another form, a count that is wrong.
    #[test]
    fn events_are_what_msgspec_writes() {
        let maps = b"\x93\xcb?\xf8\x00\x00\x00\x00\x00\x00\x94\
            \x8b\xa4type\xabBlockStored\xacblock_hashes\x92\x07\xcf\xff\xff\xff\xff\xff\xff\xff\xff\
            \xb1parent_block_hash\xc0\xa9token_ids\x94\x01\xcd\x01,\xce\x00\x01\x11p\x04\xaablock_size\x02\
            \xa7lora_id\xc0\xa6medium\xa3GPU\xa9lora_name\xc0\xaaextra_keys\x92\xc0\xc0\xa9group_idx\x00\
            \xb2kv_cache_spec_kind\xaefull_attention\
            \x8b\xa4type\xabBlockStored\xacblock_hashes\x91\t\
            \xb1parent_block_hash\xcf\x80\x00\x00\x00\x00\x00\x00\x00\xa9token_ids\x92\x05\x06\
            \xaablock_size\x02\xa7lora_id\xc0\xa6medium\xa3GPU\xa9lora_name\xc0\
            \xaaextra_keys\x91\xc0\xa9group_idx\x00\
            \xb2kv_cache_spec_kind\xaefull_attention\
            \x84\xa4type\xacBlockRemoved\xacblock_hashes\x92\x07\xcd\x01\x00\xa6medium\xa3GPU\
            \xa9group_idx\x00\x81\xa4type\xb0AllBlocksCleared\x03";
        assert_eq!(encoded(Encoding::Map).escape_ascii().to_string(), maps.escape_ascii().to_string());
        let arrays = b"\x93\xcb?\xf8\x00\x00\x00\x00\x00\x00\x94\
            \x98\xabBlockStored\x92\x07\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xc0\
            \x94\x01\xcd\x01,\xce\x00\x01\x11p\x04\x02\xc0\xa3GPU\xc0\
            \x98\xabBlockStored\x91\t\xcf\x80\x00\x00\x00\x00\x00\x00\x00\x92\x05\x06\x02\xc0\xa3GPU\xc0\
            \x93\xacBlockRemoved\x92\x07\xcd\x01\x00\xa3GPU\x91\xb0AllBlocksCleared\x03";
        assert_eq!(encoded(Encoding::Array).escape_ascii().to_string(), arrays.escape_ascii().to_string());
    }
}
