//! The vocabulary of wavetank: units, ids, requests, events, errors, tables of choices, seeded draws.
//!
//! Every other crate speaks in these types. Nothing here does I/O, reads a clock or starts a thread.
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod accelerator;
mod address;
mod architecture;
mod bench_event;
mod block_key;
mod cache_event;
mod call;
mod dependencies;
mod error;
mod event;
mod fate;
mod id;
mod in_flight;
mod key_table;
mod layout;
mod prefetch;
mod prompt;
mod registry;
mod reject_reason;
mod request;
mod rng;
pub mod size;
mod store_event;
mod tier_event;
mod tier_profile;
mod tier_role;
mod units;
mod worker;

pub use accelerator::{Accelerator, accelerator, accelerators};
pub use address::without_login;
pub use architecture::{Architecture, Experts, Latent, model, models};
pub use bench_event::{Answer, BenchEvent, BenchFact, Class, Operation, Served, Touch, Why};
pub use block_key::{BlockKey, mix};
pub use cache_event::{BlendHits, CacheEvent, CacheFact, LookupOutcome, TraceParent, TransferWay};
pub use call::{Clock, Keys, Recorded, StorageCall, WriteMode};
pub use dependencies::{Cycle, Dependencies, Wait};
pub use error::{Error, ErrorKind, Result};
pub use event::{HandoffTimes, ServeEvent, ServeSink, Sink};
pub use fate::Fate;
pub use id::{RequestId, SessionId, WorkerId};
pub use in_flight::InFlight;
pub use key_table::{FamilyId, KeyFamily, KeyId, KeyTable, LayoutId, ObjectKey};
pub use layout::Layout;
pub use prefetch::{FetchPolicy, LockMode, Prefetch, Row};
pub use prompt::{BlockKeys, Prompt};
pub use registry::{Described, find, nearest};
pub use reject_reason::RejectReason;
pub use request::{Labels, Opening, Priority, Request, Workload};
pub use rng::{Draw, seeded};
pub use store_event::{IoTimes, StoreEvent, StoreFact};
pub use tier_event::{TierEvent, TierObject};
pub use tier_profile::{
    Sustained, TIER_LAYOUT, TIER_QUANTILES, TierAgain, TierFlaw, TierLatency, TierOrigin, TierPoint,
    TierProfile, TierRoom, TierSettings,
};
pub use tier_role::TierRole;
pub use units::Nanos;
pub use worker::{WorkerRole, WorkerStage};
