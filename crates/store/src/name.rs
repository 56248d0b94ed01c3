//! The names of a folder's files, and what they say.

/// Versions in names are below this; a name with another is not one of ours, however it looks.
const VERSION_LIMIT: u64 = 1 << 63;

/// What a file's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A committed entry.
    Entry {
        /// Its key's.
        hash: u128,
        /// Its version.
        version: u64,
    },
    /// A file without an entry.
    Spare {
        /// The number it was made or last used with.
        version: u64,
        /// Never held an entry.
        fresh: bool,
    },
    /// Not ours.
    Foreign,
}

impl Named {
    /// What `name` says.
    pub(crate) fn read(name: &str) -> Self {
        let found = match name.rsplit_once('.') {
            Some((stem, "part")) => version(stem).map(|version| Self::Spare { version, fresh: true }),
            Some((stem, "free")) => version(stem).map(|version| Self::Spare { version, fresh: false }),
            Some((stem, "kv")) => stem.split_once('-').and_then(|(hash, number)| {
                Some(Self::Entry { hash: hexadecimal(hash, 32)?, version: version(number)? })
            }),
            _ => None,
        };
        found.unwrap_or(Self::Foreign)
    }

    /// The version in the name.
    pub(crate) fn version(self) -> Option<u64> {
        match self {
            Self::Entry { version, .. } | Self::Spare { version, .. } => Some(version),
            Self::Foreign => None,
        }
    }
}

/// The name of a committed entry's file.
pub(crate) fn of_entry(hash: u128, version: u64) -> String {
    format!("{hash:032x}-{version:016x}.kv")
}

fn version(text: &str) -> Option<u64> {
    let version = hexadecimal(text, 16)? as u64;
    (version < VERSION_LIMIT).then_some(version)
}

fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let plain = text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if plain { u128::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_strictly() {
        let name = of_entry(0xabc, 7);
        assert_eq!(Named::read(&name), Named::Entry { hash: 0xabc, version: 7 });
        assert_eq!(Named::read("0000000000000010.part"), Named::Spare { version: 16, fresh: true });
        assert_eq!(Named::read("0000000000000010.free"), Named::Spare { version: 16, fresh: false });
        for name in [
            "10.part",
            "0000000000000010.PART",
            "+000000000000010.free",
            "8000000000000000.free",
            "notes.txt",
            "x.kv",
            ".kv",
            "-.kv",
        ] {
            assert_eq!(Named::read(name), Named::Foreign, "{name}");
        }
    }
}
