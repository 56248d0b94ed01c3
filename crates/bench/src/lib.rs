//! The storage benchmark: simulated LLM users whose KV entries are really written and read.
//!
//! Here is who asks for what and when: [`User`]s with personas and service classes, conversations, shared
//! prompts and documents, and the [`Queue`] they wait in. All of it depends on the seed alone, never on
//! timing.
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod class;
mod document;
mod persona;
mod prompt;
mod queue;
mod request;
mod user;
mod worker;

pub use class::{ClassShare, Target};
pub use document::{Documents, Library};
pub use persona::{Mix, Persona, Template};
pub use prompt::{PROMPTS, Prompt};
pub use queue::{Ageing, Queue};
pub use request::{Name, Phase, Request};
pub use user::{Habits, User};
pub use worker::{Act, Pace, Reads, Role, Worker};
