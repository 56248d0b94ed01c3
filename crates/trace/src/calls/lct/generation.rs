//! Which releases of the reference write arguments like these (spec/storage-trace.md 1.7). Their files all
//! claim the same version, so every record is evidence.

use std::fmt;

/// A set of generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generations(u8);

/// Releases by generation, A first.
const RELEASES: [&str; 7] = ["0.4.4–0.4.6", "0.4.7", "0.5.0", "0.5.1–0.5.2", "0.5.3–0.5.4", "0.5.5", "0.5.6"];

impl Generations {
    /// Nothing is known.
    pub const ANY: Self = Self(0x7f);
    pub(super) const A: Self = Self(0x01);
    pub(super) const B: Self = Self(0x02);
    pub(super) const C: Self = Self(0x04);
    pub(super) const D: Self = Self(0x08);
    pub(super) const E: Self = Self(0x10);
    pub(super) const F: Self = Self(0x20);
    pub(super) const G: Self = Self(0x40);
    pub(super) const A_TO_E: Self = Self(0x1f);
    pub(super) const A_TO_F: Self = Self(0x3f);
    pub(super) const B_TO_G: Self = Self(0x7e);
    pub(super) const F_TO_G: Self = Self(0x60);

    /// What both may be.
    pub(super) fn narrow(&mut self, evidence: Self) {
        self.0 &= evidence.0;
    }

    fn letters(self) -> impl Iterator<Item = usize> {
        (0..RELEASES.len()).filter(move |place| self.0 & (1 << place) != 0)
    }
}

impl fmt::Display for Generations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters: Vec<usize> = self.letters().collect();
        let letter = |place: usize| char::from(b'A' + place as u8);
        match letters[..] {
            [] => f.write_str("mixed"),
            [one] => write!(f, "{} (releases {})", letter(one), RELEASES[one]),
            [..] if *self == Self::ANY => f.write_str("any (nothing in it tells)"),
            [first, .., last] if letters.len() == last - first + 1 => {
                write!(f, "{} to {}", letter(first), letter(last))
            }
            _ => letters.iter().try_for_each(|&place| write!(f, "{}", letter(place))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_adds_up() {
        let mut found = Generations::ANY;
        assert_eq!(found.to_string(), "any (nothing in it tells)");
        found.narrow(Generations::B_TO_G);
        found.narrow(Generations::A_TO_F);
        assert_eq!(found.to_string(), "B to F");
        found.narrow(Generations::F_TO_G);
        assert_eq!(found.to_string(), "F (releases 0.5.5)");
        found.narrow(Generations::A);
        assert_eq!(found.to_string(), "mixed");
        assert_eq!(Generations(0x05).to_string(), "AC");
    }
}
