//! Tables of choices: every plug-in folder has a `const ALL` of entries, found by name here.

use crate::{Error, Result};

/// What every row of a table of choices can say about itself.
pub trait Described {
    /// The name users type.
    fn name(&self) -> &'static str;
    /// One line for `wavetank list`.
    fn about(&self) -> &'static str;
}

/// Has a row of a table say what its fields `name` and `about` hold.
#[macro_export]
macro_rules! described {
    ($row:ty) => {
        impl $crate::Described for $row {
            fn name(&self) -> &'static str {
                self.name
            }

            fn about(&self) -> &'static str {
                self.about
            }
        }
    };
}

/// The row called `name`; otherwise an error that lists the names there are.
pub fn find<'t, T: Described>(kind: &str, table: &'t [T], name: &str) -> Result<&'t T> {
    table.iter().find(|row| row.name() == name).ok_or_else(|| {
        let known: Vec<_> = table.iter().map(Described::name).collect();
        Error::usage(format!("unknown {kind} \"{name}\"")).hint(format!("known: {}", known.join(", ")))
    })
}

/// The known name that `name` was most likely meant to be: letters of either case, dashes as underscores.
pub fn nearest<'t>(name: &str, known: impl IntoIterator<Item = &'t str>) -> Option<&'t str> {
    let plain = |word: &str| word.to_lowercase().replace('-', "_");
    let tried = plain(name);
    let steps = known.into_iter().map(|known| (distance(&tried, &plain(known)), known));
    let near = |(steps, known): &(usize, &str)| *steps <= 2.max(known.len() / 4) && *steps < known.len();
    steps.min().filter(near).map(|(_, known)| known)
}

/// Letters to insert, delete or change that make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], above + 1);
        for (place, theirs) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *theirs);
            corner = row[place + 1];
            row[place + 1] = changed.min(corner + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_far_apart_as_letters_to_change() {
        let cases = [("", "abc", 3), ("abc", "abc", 0), ("abc", "axc", 1), ("kitten", "sitting", 3)];
        for (one, other, steps) in cases {
            assert_eq!((distance(one, other), distance(other, one)), (steps, steps));
        }
    }

    #[test]
    fn what_is_too_far_is_not_meant() {
        let known = ["num_workers", "seed"];
        assert_eq!(nearest("Num-Wrokers", known), Some("num_workers"));
        assert_eq!(nearest("sed", known), Some("seed"));
        assert_eq!(nearest("wholly_other_thing", known), None);
    }
}
