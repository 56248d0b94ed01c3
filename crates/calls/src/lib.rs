//! The storage-call API: what callers of a KV cache ask of its storage layer (reserve, finish, prefetch,
//! read, release), with the states, locks and background work behind it (spec/storage-trace.md 2 and 10).
//!
//! [`Engine`] is the bookkeeping alone, on a clock that its caller moves: no bytes, no threads. The same
//! calls at the same times always have the same outcomes. [`Storage`] is the engine with bytes behind it, for
//! many callers at a time.
#![forbid(unsafe_code)]

mod adapter;
mod background;
mod busy;
mod bytes;
mod config;
mod copies;
mod engine;
mod fold;
mod grow;
mod l1;
mod l2;
mod label;
mod late;
mod lock;
mod note;
mod object_name;
mod plan;
mod play;
mod prefetch;
mod record;
mod replay;
mod storage;
mod tick;

pub use background::{Background, Behind, Passes};
pub use bytes::{Keeping, Object};
pub use engine::{Engine, Tempo};
pub use label::Label;
pub use late::Waiting;
pub use note::{Happened, Note};
pub use object_name::ObjectName;
pub use plan::{
    AdapterPlan, EvictionPlan, L1Plan, LoadPolicy, Medium, Plan, QuotaPlan, StorePolicy, Wrapping,
};
pub use play::{AdapterTimes, CallTimes, Contents, Keep, Moved, Pace, PlayOptions, PlayReport, Spread, play};
pub use prefetch::Fetching;
pub use replay::{
    Act, Both, Count, Divergence, End, Expect, Listener, Made, Manner, Mode, Operations, Recorder, Recording,
    Scope, Tally, replay, replay_until,
};
pub use storage::{
    Blank, Called, Got, Held, Hold, Journal, Lookup, Only, PrefetchHandle, Reading, Set, SetManner, Status,
    Storage, StorageOptions, Then, TierStatus, Writing,
};
pub use tick::Ticks;
