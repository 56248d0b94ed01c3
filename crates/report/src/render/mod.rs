//! Numbers as text.

pub mod comparison;
pub mod json;
pub mod storage;
pub mod suite;
pub mod table;
pub mod workbook;
