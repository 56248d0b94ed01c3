//! The real multi-tier store: bytes between GPU memory, RAM and storage at the speed of the devices.
//!
//! [`backends`] hold bytes, each behind a [`backend::Port`] per thread; [`wrappers`] go around any of them.
#![deny(unsafe_code)]

mod arena;
mod around;
pub mod backend;
pub mod backends;
pub mod buffer;
pub mod checksum;
mod dice;
mod files;
mod folder;
mod frame;
mod gate;
mod ground;
mod key;
mod layout;
mod name;
mod options;
pub mod payload;
mod recording;
mod recover;
mod ring;
mod spares;
mod threads;
pub mod wrappers;

pub use key::{KEY_BYTES_MAX, Key};
pub use options::Options;
pub use payload::Payload;
