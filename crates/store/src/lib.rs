//! The real multi-tier store: bytes between GPU memory, RAM and storage at the speed of the devices.
//!
//! [`backends`] hold bytes, each behind a [`backend::Port`] per thread; [`wrappers`] go around any of them.
#![deny(unsafe_code)]

mod arena;
pub mod backend;
pub mod backends;
mod blocks;
pub mod buffer;
pub mod checksum;
mod files;
mod folder;
mod frame;
mod key;
mod layout;
pub mod payload;
mod recover;
mod ring;
mod spares;
mod threads;

pub use key::{KEY_BYTES_MAX, Key};
pub use payload::Payload;
