//! What a request asks for: rows of ranks and object groups, a column per chunk; and what was found of it.

use std::fmt;
use std::sync::Arc;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use wavetank_model::{BlendHits, Error, Fate, FetchPolicy, LookupOutcome, Result};

use super::session::Kept;
use crate::name::{LONE_RANK, Owner, chain, check_hash, check_model, check_salt};

/// Cells of one request: objects that are looked up under one lock.
const MOST_CELLS: usize = 1 << 17;
/// Bytes that say where a text is.
const TEXT: u64 = 24;
/// Bytes of an allocation besides what was asked for.
const ALLOCATION: u64 = 16;

/// How a request looks up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LookupMode {
    /// The longest prefix.
    #[default]
    Prefix,
    /// All that is there.
    Blend,
}

impl LookupMode {
    pub(super) fn policy(self) -> FetchPolicy {
        match self {
            Self::Prefix => FetchPolicy::Prefix,
            Self::Blend => FetchPolicy::Full,
        }
    }
}

/// What objects a request is about, as clients say it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// The request's name outside.
    pub(super) request_id: String,
    /// Whose objects.
    #[serde(default)]
    pub(super) model: String,
    /// Whose, among tenants.
    #[serde(default)]
    pub(super) cache_salt: String,
    /// The prompt.
    pub(super) token_ids: Option<Vec<u32>>,
    /// Its chunks, where the client has hashes of its own.
    #[serde(default, deserialize_with = "hashes")]
    pub(super) chunk_hashes: Option<Vec<String>>,
    /// How to look up.
    #[serde(default)]
    pub(super) mode: LookupMode,
    /// Ranks whose objects are asked for.
    pub(super) kv_ranks: Option<Vec<u32>>,
    /// Object groups.
    pub(super) groups: Option<Vec<u32>>,
    /// Where the client has the objects.
    pub(super) device: Option<String>,
    /// The client's engine.
    pub(super) engine_id: Option<u64>,
}

/// Hashes, up to those that one request may name: a short body could name millions.
pub(super) fn hashes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    from.deserialize_any(Hashes)
}

struct Hashes;

impl<'de> Visitor<'de> for Hashes {
    type Value = Option<Vec<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of hashes, {MOST_CELLS} at most")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Self::Value, S::Error> {
        let mut hashes = Vec::new();
        while let Some(hash) = list.next_element()? {
            if hashes.len() == MOST_CELLS {
                return Err(serde::de::Error::custom(format!("more than {MOST_CELLS} hashes are named")));
            }
            hashes.push(hash);
        }
        Ok(Some(hashes))
    }
}

/// The objects of a request.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) model: Arc<str>,
    pub(super) salt: Arc<str>,
    pub(super) mode: LookupMode,
    pub(super) chunk_size: u64,
    pub(super) hashes: Vec<String>,
    rows: Vec<(u32, u32)>,
    names: Vec<Vec<u8>>,
    /// Its part of what requests may name.
    _kept: Option<Kept>,
}

impl Grid {
    /// Checks what was asked.
    pub(super) fn of(asked: &Asked, chunk_size: u64) -> Result<Self> {
        check_model(&asked.model)?;
        check_salt(&asked.cache_salt)?;
        let hashes = match (&asked.token_ids, &asked.chunk_hashes) {
            (Some(tokens), None) => chain(tokens, chunk_size as usize),
            (None, Some(hashes)) => hashes.iter().map(|text| check_hash(text)).collect::<Result<_>>()?,
            _ => return Err(Error::input("give token_ids or chunk_hashes, and not both")),
        };
        let or = |given: &Option<Vec<u32>>, usual| given.clone().unwrap_or_else(|| vec![usual]);
        let (ranks, groups) = (or(&asked.kv_ranks, LONE_RANK), or(&asked.groups, 0));
        if ranks.is_empty() || groups.is_empty() {
            return Err(Error::input("kv_ranks and groups are not empty where they are given"));
        }
        // Before anything is made of them: a short body can ask for more rows than memory holds.
        if ranks.len().saturating_mul(groups.len()).saturating_mul(hashes.len().max(1)) > MOST_CELLS {
            return Err(Error::input(format!("more than {MOST_CELLS} objects are asked for")));
        }
        let rows: Vec<(u32, u32)> =
            groups.iter().flat_map(|group| ranks.iter().map(move |rank| (*rank, *group))).collect();
        let owner = Owner { model: &asked.model, salt: &asked.cache_salt };
        let name_row = |row| hashes.iter().map(move |hash| owner.name(row, hash));
        Ok(Self {
            names: rows.iter().flat_map(|row| name_row(*row)).collect(),
            model: asked.model.as_str().into(),
            salt: asked.cache_salt.as_str().into(),
            mode: asked.mode,
            chunk_size,
            hashes,
            rows,
            _kept: None,
        })
    }

    /// It counts as `kept` from here on.
    pub(super) fn kept_by(self, kept: Kept) -> Self {
        Self { _kept: Some(kept), ..self }
    }

    /// What it takes, and what was found of it: texts, where they are, and what an allocation costs.
    pub(super) fn bytes(&self) -> u64 {
        let texts = |lengths: u64, count: usize| lengths + count as u64 * (TEXT + ALLOCATION);
        let hashes = texts(self.hashes.iter().map(|hash| hash.len() as u64).sum(), self.hashes.len());
        let names = texts(self.names.iter().map(|name| name.len() as u64).sum(), self.names.len());
        hashes + names + (self.names.len() as u64 + self.rows.len() as u64) * 8
    }

    /// Chunks.
    pub(super) fn columns(&self) -> usize {
        self.hashes.len()
    }

    /// Objects of a chunk.
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The name of a cell; cells are counted row by row.
    pub(super) fn name(&self, cell: usize) -> Option<&[u8]> {
        self.names.get(cell).map(Vec::as_slice)
    }

    /// Names, row by row.
    pub(super) fn names(&self) -> Vec<Vec<&[u8]>> {
        let columns = self.columns().max(1);
        self.names.chunks(columns).map(|row| row.iter().map(Vec::as_slice).collect()).collect()
    }

    /// What became of each chunk: the worst of its objects.
    pub(super) fn states(&self, fates: &[Fate]) -> Vec<ChunkState> {
        let columns = self.columns();
        let state = |column: usize| {
            let cells = (0..self.rows()).map(|row| ChunkState::of(fates[row * columns + column]));
            cells.max().unwrap_or(ChunkState::Absent)
        };
        (0..columns).map(state).collect()
    }

    /// What a lookup found, as spans and answers tell it.
    pub(super) fn outcome(&self, fates: &[Fate]) -> LookupOutcome {
        let states = self.states(fates);
        let tokens = |chunks: usize| chunks as u64 * self.chunk_size;
        let is_found = |state: &ChunkState| *state != ChunkState::Absent;
        let prefix = states.iter().take_while(|state| is_found(state)).count();
        let (found, near) = match self.mode {
            LookupMode::Prefix => (prefix, states.iter().take_while(|s| **s == ChunkState::L1).count()),
            LookupMode::Blend => (
                states.iter().filter(|state| is_found(state)).count(),
                states.iter().filter(|state| **state == ChunkState::L1).count(),
            ),
        };
        let keys = |fate: Fate| fates.iter().filter(|found| **found == fate).count() as u64;
        LookupOutcome {
            found_count: found as u64,
            requested_tokens: tokens(states.len()),
            hit_tokens: tokens(found),
            l1_hit_tokens: tokens(near),
            l2_hit_tokens: tokens(found - near),
            l1_hit_keys: keys(Fate::FirstTier),
            l2_hit_keys: keys(Fate::LowerTier),
            early_exit_reason: if states.is_empty() { "empty_chunk_hashes" } else { "" },
            model_name: Arc::clone(&self.model),
            cache_salt: Arc::clone(&self.salt),
            blend: (self.mode == LookupMode::Blend).then(|| blend(&states, prefix, self.chunk_size)),
        }
    }
}

/// Where what was found lies: at the start, in later runs, or alone.
fn blend(states: &[ChunkState], prefix: usize, chunk_size: u64) -> BlendHits {
    let later = states[prefix..].chunk_by(|one, other| one.is_found() == other.is_found());
    let runs = later.filter(|run| run[0].is_found()).map(<[ChunkState]>::len);
    let (alone, segments): (Vec<usize>, Vec<usize>) = runs.partition(|length| *length == 1);
    let tokens = |chunks: usize| chunks as u64 * chunk_size;
    BlendHits {
        prefix_hits: prefix as u64,
        prefix_hit_tokens: tokens(prefix),
        segmented_prefix_hit_tokens: tokens(segments.iter().sum()),
        non_prefix_hit_tokens: tokens(alone.len()),
    }
}

/// Where a chunk was found, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChunkState {
    /// In memory.
    L1,
    /// Behind it.
    L2,
    /// Not all of it.
    Absent,
}

impl ChunkState {
    fn of(fate: Fate) -> Self {
        match fate {
            Fate::FirstTier => Self::L1,
            Fate::LowerTier => Self::L2,
            _ => Self::Absent,
        }
    }

    fn is_found(self) -> bool {
        self != Self::Absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(hashes: &[&str]) -> Asked {
        let chunk_hashes = Some(hashes.iter().map(|hash| (*hash).to_owned()).collect());
        Asked { request_id: "r".to_owned(), model: "m".to_owned(), chunk_hashes, ..Asked::default() }
    }

    const NEAR: Fate = Fate::FirstTier;
    const FAR: Fate = Fate::LowerTier;
    const GONE: Fate = Fate::Absent;

    /// Broken by: a prefix that goes on behind a gap, memory counted behind what is not in it, or a chunk
    /// found of which one rank has nothing.
    #[test]
    fn a_prefix_ends_at_the_first_chunk_that_is_not_whole() {
        let grid = Grid::of(&Asked { kv_ranks: Some(vec![1, 2]), ..asked(&["aa", "bb", "cc", "dd"]) }, 256);
        let grid = grid.unwrap();
        let fates = [NEAR, NEAR, NEAR, NEAR, NEAR, FAR, GONE, NEAR];
        let outcome = grid.outcome(&fates);
        assert_eq!((outcome.found_count, outcome.requested_tokens), (2, 1024));
        assert_eq!((outcome.hit_tokens, outcome.l1_hit_tokens, outcome.l2_hit_tokens), (512, 256, 256));
        assert_eq!((outcome.l1_hit_keys, outcome.l2_hit_keys), (6, 1));
        assert_eq!(grid.name(5), Some(&b"m@00000002@0@bb"[..]));
    }

    /// Broken by: runs that are counted with the prefix, or a lone chunk counted as a run.
    #[test]
    fn blend_says_where_hits_lie() {
        let grid = Grid::of(&Asked { mode: LookupMode::Blend, ..asked(&["aa"; 8]) }, 10).unwrap();
        let outcome = grid.outcome(&[NEAR, GONE, NEAR, FAR, GONE, NEAR, GONE, GONE]);
        let blend = outcome.blend.unwrap();
        assert_eq!((outcome.found_count, outcome.hit_tokens, outcome.l1_hit_tokens), (4, 40, 30));
        assert_eq!((blend.prefix_hits, blend.prefix_hit_tokens), (1, 10));
        assert_eq!((blend.segmented_prefix_hit_tokens, blend.non_prefix_hit_tokens), (20, 10));
    }

    #[test]
    fn what_makes_no_grid_is_refused() {
        let told = |asked: &Asked| Grid::of(asked, 256).unwrap_err().to_string();
        assert!(told(&Asked { model: String::new(), ..asked(&["aa"]) }).contains("model"));
        assert!(told(&Asked { token_ids: Some(vec![1]), ..asked(&["aa"]) }).contains("not both"));
        assert!(told(&Asked { groups: Some(Vec::new()), ..asked(&["aa"]) }).contains("groups"));
        assert!(told(&Asked { kv_ranks: Some(vec![0; 2000]), ..asked(&["aa"; 1000]) }).contains("131072"));
        let many = Some(vec![0; 1 << 20]);
        let rows = Asked { kv_ranks: many.clone(), groups: many, ..asked(&[]) };
        assert!(told(&rows).contains("131072"), "rows are counted before they are made");
        let empty = Grid::of(&asked(&[]), 256).unwrap();
        assert_eq!(empty.outcome(&[]).early_exit_reason, "empty_chunk_hashes");
    }
}
