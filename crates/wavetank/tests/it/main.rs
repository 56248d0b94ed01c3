//! The facade as a library user sees it: acceptance cases, laws, and checks against shared data.

mod drive;
mod laws;
mod router;
mod runs;
mod shared;
