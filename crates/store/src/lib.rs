//! The real multi-tier store: bytes between GPU memory, RAM and storage at the speed of the devices.
//!
//! [`backends`] hold bytes, each behind a [`backend::Port`] per thread; [`wrappers`] go around any of them.
#![deny(unsafe_code)]

mod arena;
mod around;
pub mod backend;
pub mod backends;
mod blocks;
pub mod buffer;
mod bus;
mod call;
pub mod checksum;
mod clock;
mod copy;
mod dice;
mod files;
mod flow;
mod folder;
mod frame;
mod gate;
mod ground;
mod immediate;
mod index;
mod job;
mod kept;
mod key;
mod lane;
mod layout;
mod ledger;
mod mapping;
pub mod meter;
mod name;
mod options;
pub mod payload;
mod pipes;
mod recording;
mod recover;
mod ring;
mod sleep;
mod spares;
mod step;
mod store;
mod threads;
mod transfer;
pub mod wrappers;

pub use bus::Events;
pub use call::{Call, Deed, Listener};
pub use clock::Clock;
pub use flow::Flow;
pub use ground::dismantle;
pub use job::{Done, Existing, OpId, Outcome, Put};
pub use key::{KEY_BYTES_MAX, Key};
pub use lane::Lane;
pub use options::Options;
pub use payload::{Payload, Shared};
pub use ring::{Buffers, TriedRing, try_ring};
pub use store::{Store, Tier, Usage};
pub use transfer::Want;
