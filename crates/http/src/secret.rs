//! A word that is never shown.

use std::fmt;

/// A password. It is compared by its hash, in constant time, and shows nothing of itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: String,
    hash: blake3::Hash,
}

impl Secret {
    /// This word.
    pub fn of(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { hash: blake3::hash(text.as_bytes()), text }
    }

    /// Whether `given` is it; how long that takes says nothing.
    pub fn is(&self, given: &[u8]) -> bool {
        blake3::hash(given) == self.hash
    }

    /// The word itself, for whoever has to send it.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl serde::Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("set")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a derived `Debug` or `Serialize`, or a comparison of lengths or prefixes.
    #[test]
    fn it_shows_nothing_of_itself() {
        let secret = Secret::of("open sesame");
        let shown = format!("{secret:?} {}", serde_json::to_string(&secret).unwrap());
        assert_eq!(shown, "Secret(…) \"set\"");
        assert!(secret.is(b"open sesame") && !secret.is(b"open") && !secret.is(b"") && !secret.is(b"x"));
    }
}
