//! The storage benchmark: simulated LLM users whose KV entries are really written and read.
//!
//! Here is who asks for what and when: [`User`]s with personas and service classes, conversations, shared
//! prompts and documents, and the [`Queue`] they wait in. All of it depends on the seed alone, never on
//! timing.
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod class;
mod clock;
mod document;
mod persona;
mod plan;
mod prompt;
mod queue;
mod request;
mod scale;
mod sources;
mod stack;
#[cfg(test)]
mod testing;
mod user;
mod worker;

pub use class::{ClassShare, Target};
pub use document::{Documents, Library, Popularity};
pub use persona::{Mix, Persona, Template};
pub use plan::{Arrivals, Feed, Load, Plan, TierPlan, TierRole, Time};
pub use prompt::{PROMPTS, Prompt};
pub use queue::{Ageing, Queue};
pub use request::{Name, Phase, Place, Request, SharedPrompt};
pub use scale::{Action, ScaleMode, ScaleStep, Scaling};
pub use sources::Recording;
pub use user::{Habits, User};
pub use worker::{Act, Pace, Reads, Role, Worker};
