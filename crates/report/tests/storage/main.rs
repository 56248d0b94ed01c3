//! Laws of the results of a storage benchmark, and the forms in which they are written.

mod counting;
mod forms;
mod given;
mod judging;
mod laws;
mod merging;
