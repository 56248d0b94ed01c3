//! Names of objects as LMCache's clients write them (spec/storage-trace.md 7.1):
//! `model@rank@group@hash`, and `@salt` after it where there is one.

/// What such a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectName<'n> {
    /// The model.
    pub model_name: &'n str,
    /// World size, rank, local world size and local rank, a byte each.
    pub kv_rank: u64,
    /// The object group.
    pub object_group_id: u32,
    /// The hash of the chunk, as it is written: pairs of hexadecimal digits.
    pub chunk_hash: &'n str,
    /// The tenant; empty is none.
    pub cache_salt: &'n str,
}

impl<'n> ObjectName<'n> {
    /// Reads a name; absent where it is not of this form. A form that would be written differently is
    /// another one.
    pub fn parse(name: &'n [u8]) -> Option<Self> {
        let text = std::str::from_utf8(name).ok()?;
        let mut parts = text.split('@');
        let (model_name, rank, group) = (parts.next()?, parts.next()?, parts.next()?);
        let (chunk_hash, salt) = (parts.next()?, parts.next());
        let digits = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let is_rank = rank.len() == 8 && digits(rank);
        let is_group =
            matches!(group.len(), 1..=8) && digits(group) && (group == "0" || !group.starts_with('0'));
        let is_hash = !chunk_hash.is_empty() && chunk_hash.len().is_multiple_of(2) && digits(chunk_hash);
        let is_one = is_rank && is_group && is_hash && salt != Some("") && parts.next().is_none();
        is_one.then_some(Self {
            model_name,
            kv_rank: u64::from_str_radix(rank, 16).ok()?,
            object_group_id: u32::from_str_radix(group, 16).ok()?,
            chunk_hash,
            cache_salt: salt.unwrap_or(""),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a form that is taken though it would be written differently.
    #[test]
    fn names_of_clients_are_read() {
        let plain = ObjectName::parse(b"org/m@01000100@2@00ff").unwrap();
        assert_eq!((plain.model_name, plain.kv_rank, plain.object_group_id), ("org/m", 0x0100_0100, 2));
        assert_eq!((plain.chunk_hash, plain.cache_salt), ("00ff", ""));
        assert_eq!(ObjectName::parse(b"m@01000100@1f@00@tenant a").unwrap().cache_salt, "tenant a");
        for other in [
            &b"key"[..],
            b"m@1000100@0@00",
            b"m@01000100@00@00",
            b"m@01000100@0@0",
            b"m@01000100@0@0G",
            b"m@01000100@0@00@",
            b"m@01000100@0@00@a@b",
            b"m@01000100@@00",
            b"m@0100010G@0@00",
            b"\xff@01000100@0@00",
            b"m@01000100@+1@00",
        ] {
            assert_eq!(ObjectName::parse(other), None, "{}", String::from_utf8_lossy(other));
        }
    }
}
