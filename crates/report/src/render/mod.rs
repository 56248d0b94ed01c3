//! Numbers as text.

pub mod comparison;
pub mod html;
pub mod json;
mod markup;
mod number;
pub mod plots;
mod png;
pub mod points_csv;
pub mod scaling;
pub mod storage;
pub mod suite;
mod svg;
pub mod table;
mod theme;
pub mod tiers;
pub mod workbook;
