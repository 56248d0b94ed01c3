//! How much of a prompt can be served from what is there.
//!
//! A row is a group of layers on one rank, a column a chunk of the prompt. A row with a window needs only the
//! last chunks of what is served, one without needs all of them.

/// How many of the last chunks a row needs; all of them when absent.
pub(crate) type Window = Option<u32>;

/// The longest prefix that every row can serve: `is_there(row, column)` of `columns` chunks.
pub(crate) fn servable(windows: &[Window], columns: usize, is_there: impl Fn(usize, usize) -> bool) -> usize {
    // Chunks in a row that end before each column: a window is served when its run is long enough.
    let mut longest = columns;
    for (row, window) in windows.iter().enumerate() {
        if window.is_none() {
            longest = (0..longest).find(|&column| !is_there(row, column)).unwrap_or(longest);
        }
    }
    let windowed: Vec<(usize, usize)> =
        windows.iter().enumerate().filter_map(|(row, window)| Some((row, (*window)? as usize))).collect();
    if windowed.is_empty() {
        return longest;
    }
    let fits = |length: usize| {
        windowed
            .iter()
            .all(|&(row, window)| (length.saturating_sub(window)..length).all(|column| is_there(row, column)))
    };
    (0..=longest).rev().find(|&length| fits(length)).unwrap_or(0)
}

/// The columns of a row that a served prefix of `length` needs.
pub(crate) fn needed(window: Window, length: usize) -> std::ops::Range<usize> {
    window.map_or(0, |window| length.saturating_sub(window as usize))..length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Broken by: a window that looks at the wrong end, rows that are not all asked.
        #[test]
        fn the_longest_prefix_is_served(
            windows in prop::collection::vec(prop::option::of(1u32..6), 1..4),
            there in prop::collection::vec(prop::collection::vec(any::<bool>(), 8), 4),
        ) {
            let serves = |length: usize| windows.iter().enumerate().all(|(row, &window)| {
                needed(window, length).all(|column| there[row][column])
            });
            let expected = (0..=8).rev().find(|&length| serves(length)).unwrap();
            prop_assert_eq!(servable(&windows, 8, |row, column| there[row][column]), expected);
        }
    }
}
