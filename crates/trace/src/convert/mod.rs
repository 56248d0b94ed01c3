//! From the rows of one format to those of another: what the target needs and the source does not say is
//! filled by a rule, what the target cannot hold is counted.

mod ability;
mod filler;
mod fit;

pub use ability::Ability;
pub(crate) use filler::key;
pub use fit::{Fitting, Setting};
