//! The storage benchmark: simulated LLM users whose KV entries are really written and read.
//!
//! Who asks for what and when depends on the seed alone, never on timing: [`User`]s with personas and service
//! classes, conversations, shared prompts and documents, or a [`Recording`]. [`run`] lets them ask: requests
//! wait in a queue, workers take them through the store of the [`Plan`], and everything that happens is a
//! [`BenchEvent`](wavetank_model::BenchEvent).
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod class;
mod clock;
mod desk;
mod document;
mod fill;
mod floor;
mod harness;
mod kernel;
mod log;
mod overheard;
mod persona;
mod plan;
mod play;
mod probe;
mod prompt;
mod queue;
mod request;
mod run;
mod scale;
mod sources;
mod stack;
#[cfg(test)]
mod testing;
mod user;
mod worker;

pub use class::{ClassShare, Target};
pub use document::{Documents, Library, Popularity};
pub use fill::{Filled, Part};
pub use harness::Harness;
pub use kernel::KernelIo;
pub use log::{Deed, LogWriter, Logged, Stage};
pub use overheard::Calls;
pub use persona::{Mix, Persona, Template};
pub use plan::{Arrivals, Feed, Load, Plan, TierPlan, Time};
pub use play::{PlayCounts, PlayPace, PlayQueue, Played, Step, play, play_tier};
pub use probe::{ProbeObserver, ProbePlan, Probed, probe};
pub use prompt::{PROMPTS, Prompt};
pub use queue::{Ageing, Queue};
pub use request::{Name, Phase, Place, Request, SharedPrompt};
pub use run::{Devices, Ended, Given, Observer, Outcome, Pulse, Unwatched, Watch, run};
pub use scale::{Action, ScaleMode, ScaleStep, Scaling};
pub use sources::Recording;
pub use stack::clean;
pub use user::{Habits, UNASKED_TOKENS, User};
pub use wavetank_store::{Call, Deed as CallDeed, Flow};
pub use worker::{Act, Pace, Reads, Role, Worker};
