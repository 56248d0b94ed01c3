//! What objects are called: `MODEL@RANK@GROUP@HASH[@SALT]`, as the reference's RESP client calls them
//! (spec/storage-trace.md 7.1), so that all clients see the same objects; and the hashes of chunks of tokens.

use wavetank_model::{Error, Result};

/// One worker of its own: world 1, rank 0, local world 1, local rank 0.
pub(crate) const LONE_RANK: u32 = 0x0100_0100;

const LONGEST_MODEL: usize = 512;
const LONGEST_SALT: usize = 128;
const LONGEST_HASH: usize = 128;

/// Whose objects they are.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) model: &'a str,
    pub(crate) salt: &'a str,
}

impl Owner<'_> {
    /// The name of one object.
    pub(crate) fn name(&self, (rank, group): (u32, u32), hash: &str) -> Vec<u8> {
        let Self { model, salt } = self;
        let name = format!("{model}@{rank:08x}@{group:x}@{hash}");
        if salt.is_empty() { name.into_bytes() } else { format!("{name}@{salt}").into_bytes() }
    }
}

pub(crate) fn check_model(model: &str) -> Result<()> {
    match model {
        "" => Err(Error::input("model is missing")),
        long if long.len() > LONGEST_MODEL => Err(Error::input("model is longer than 512 bytes")),
        odd if odd.contains(['@', '\0']) => Err(Error::input("model holds @ or a zero byte")),
        _ => Ok(()),
    }
}

pub(crate) fn check_salt(salt: &str) -> Result<()> {
    if salt.chars().count() > LONGEST_SALT {
        return Err(Error::input("cache_salt is longer than 128 characters"));
    }
    match salt.contains(['@', '/', '\\', '\0']) {
        true => Err(Error::input("cache_salt holds @, /, \\ or a zero byte")),
        false => Ok(()),
    }
}

/// A chunk's hash as names have it: hexadecimal digits, in lower case, without `0x`.
pub(crate) fn check_hash(text: &str) -> Result<String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_length = (1..=LONGEST_HASH / 2).contains(&(digits.len() / 2)) && digits.len().is_multiple_of(2);
    if !is_length || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        let shown: String = text.chars().take(80).collect();
        return Err(Error::input(format!("\"{shown}\" is no hash: 1 to 64 pairs of hexadecimal digits")));
    }
    Ok(digits.to_ascii_lowercase())
}

/// The hash of every whole chunk of `tokens`: BLAKE3 over the hash before, 32 bytes, which the first has not,
/// and the token ids, 4 bytes each, the lowest first.
pub(crate) fn chain(tokens: &[u32], chunk_size: usize) -> Vec<String> {
    let mut before: Option<blake3::Hash> = None;
    let chunks = tokens.chunks_exact(chunk_size).map(|chunk| {
        let mut hasher = blake3::Hasher::new();
        if let Some(before) = &before {
            hasher.update(before.as_bytes());
        }
        let bytes: Vec<u8> = chunk.iter().flat_map(|token| token.to_le_bytes()).collect();
        let hash = hasher.update(&bytes).finalize();
        before = Some(hash);
        hash.to_hex().to_string()
    });
    chunks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: another order of parts, width of the rank, or a salt where there is none.
    #[test]
    fn names_are_those_of_the_reference() {
        let owner = Owner { model: "meta-llama/Llama-3.1-8B", salt: "" };
        let name = owner.name((0x0201_0201, 0), "6e34");
        assert_eq!(name, b"meta-llama/Llama-3.1-8B@02010201@0@6e34");
        let salted = Owner { model: "m", salt: "tenant-a" };
        assert_eq!(salted.name((LONE_RANK, 0x1f), "0a"), b"m@01000100@1f@0a@tenant-a");
    }

    /// Broken by: a chain that forgets what came before, or a last chunk that is not whole. The first value
    /// is BLAKE3 of the bytes 01 00 00 00 02 00 00 00.
    #[test]
    fn a_hash_stands_for_all_tokens_up_to_its_chunk() {
        let hashes = chain(&[1, 2, 3, 4, 5], 2);
        assert_eq!(hashes.len(), 2);
        let first = blake3::hash(&[1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(hashes[0], first.to_hex().as_str());
        let mut second = first.as_bytes().to_vec();
        second.extend([3, 0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(hashes[1], blake3::hash(&second).to_hex().as_str());
        assert_ne!(chain(&[9, 2, 3, 4], 2)[1], hashes[1]);
        assert!(chain(&[1], 2).is_empty());
    }

    #[test]
    fn what_cannot_be_in_a_name_is_refused() {
        assert!(check_model("a@b").is_err() && check_model("").is_err() && check_model("a/b").is_ok());
        assert!(check_salt("a/b").is_err() && check_salt("").is_ok());
        assert!(check_salt(&"é".repeat(128)).is_ok() && check_salt(&"a".repeat(129)).is_err());
        assert_eq!(check_hash("0xAB").unwrap(), "ab");
        assert!(check_hash("").is_err() && check_hash("0x").is_err() && check_hash("xyz").is_err());
        assert!(check_hash(&"a".repeat(130)).is_err() && check_hash("abc").is_err());
    }
}
