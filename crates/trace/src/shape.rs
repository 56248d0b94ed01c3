//! Changing the shape of rows without changing what they share.

use crate::Row;

/// Replaces every id by `depth` ids and every token by `depth` tokens: prompts get longer, sharing stays.
pub fn expand_prefix_depth(row: &mut Row, depth: u32) {
    let depth_ids = u64::from(depth);
    row.ids = row.ids.iter().flat_map(|&id| (0..depth_ids).map(move |i| id * depth_ids + i)).collect();
    row.input_tokens = row.input_tokens.map(|tokens| tokens.saturating_mul(depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l10_ids_and_length_grow_together() {
        let mut row = Row { input_tokens: Some(6), ids: vec![7, 8], ..Row::default() };
        expand_prefix_depth(&mut row, 3);
        assert_eq!(row.input_tokens, Some(18));
        assert_eq!(row.ids, [21, 22, 23, 24, 25, 26]);
    }
}
