//! Receivers of events: one file per question.

pub mod course;
pub mod records;
pub mod serving;
pub mod storage;
pub mod tiers;
