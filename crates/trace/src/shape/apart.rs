//! Ids and names of several parts, kept apart.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Row;

/// Makes what `row`, of part `part` of `parts`, names differ from what other parts name: ids by their rest
/// when divided by `parts`, names by a suffix from the second part on.
pub(super) fn keep_apart(row: &mut Row, part: u64, parts: u64) {
    keep_ids_apart(row, part, parts);
    keep_names_apart(row, part);
}

/// The ids alone.
pub(super) fn keep_ids_apart(row: &mut Row, part: u64, parts: u64) {
    for id in &mut row.ids {
        *id = match id.checked_mul(parts).and_then(|id| id.checked_add(part)) {
            Some(id) => id,
            // Ids that are hashes already: others of their size do not meet.
            None => xxh3_64_with_seed(&id.to_le_bytes(), part),
        };
    }
}

/// The names alone.
pub(super) fn keep_names_apart(row: &mut Row, part: u64) {
    if part == 0 {
        return;
    }
    for name in row.request.iter_mut().chain(&mut row.session).chain(&mut row.wait_for) {
        name.push_str(&format!("~{}", part + 1));
    }
}
