//! What every HTTP server of ours has: a door with places, clients that are given up when they take too long,
//! bodies that come in, and who may ask. What is asked and answered is its owner's.
#![forbid(unsafe_code)]

mod activity;
mod answering;
mod door;
mod inflow;
mod login;
mod origin;
mod secret;
mod socket;
mod tally;

pub use activity::Pace;
pub use door::{Door, Settings};
pub use inflow::{Fault, Inflow, Room, give_back};
pub use login::Login;
pub use origin::{Foreign, check_origin};
pub use secret::Secret;
pub use tally::Tally;
