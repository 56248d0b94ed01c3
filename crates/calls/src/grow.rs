//! Tables that grow by an eighth: there are many entries, and half a table of nothing is a lot of memory.

/// Makes room for `len` rows.
pub(crate) fn grow<T: Clone + Default>(table: &mut Vec<T>, len: usize) {
    if table.len() < len {
        if table.capacity() < len {
            table.reserve_exact(len.max(table.len() + table.len() / 8 + LEAST) - table.len());
        }
        table.resize(len, T::default());
    }
}

/// Rows that are added at least.
const LEAST: usize = 64;
