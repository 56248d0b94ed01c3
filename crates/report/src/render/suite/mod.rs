//! The results of a suite as text, as JSON and as a workbook.

mod json;
mod sheet;
mod table;

pub use self::json::json;
pub use self::sheet::{SuiteSheet, xlsx};
pub use self::table::table;

use crate::render::table::number;

/// Three digits or so: what fits a narrow column.
pub fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 99.95 => number(value.round()).trim_end_matches(".00").to_owned(),
        middle if middle >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit() {
        let shown = [0.0, 0.004, 9.99, 9.996, 99.9, 99.96, 1234.5, 1e6].map(short);
        assert_eq!(shown, ["0.00", "0.00", "9.99", "10.0", "99.9", "100", "1,235", "1,000,000"]);
    }
}
