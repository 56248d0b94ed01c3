//! What happens in a cache server, as facts in the past tense: a session is a request of a serving engine,
//! or a connection of a client that speaks no requests (spec/storage-trace.md 3.1).

use std::sync::Arc;

use crate::{FetchPolicy, Nanos};

/// One fact of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheEvent {
    /// When, since 1970.
    pub at: Nanos,
    /// Whose: the request's id, or the connection's.
    pub session: Arc<str>,
    /// What.
    pub fact: CacheFact,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum CacheFact {
    /// A request began: it looked up a prefix, or all that is there (blend).
    RequestStarted {
        /// How it looks up.
        policy: FetchPolicy,
        /// The span of the caller that it belongs to.
        parent: Option<TraceParent>,
    },
    /// A request ended, but for transfers under way.
    RequestEnded,
    /// A lookup began.
    LookupStarted {
        /// A number of this process.
        lookup: u64,
    },
    /// It ended.
    LookupEnded {
        /// The same number.
        lookup: u64,
        /// What it found.
        outcome: Box<LookupOutcome>,
    },
    /// Objects will be moved; a request is not over before that has ended.
    TransferSubmitted {
        /// Which way.
        way: TransferWay,
        /// A number of this process.
        transfer: u64,
        /// Where the caller has them.
        device: Arc<str>,
    },
    /// They begin to move.
    TransferStarted {
        /// The same number.
        transfer: u64,
        /// The caller's engine.
        engine_id: u64,
        /// Whose objects.
        model_name: Arc<str>,
        /// Whose, among tenants.
        cache_salt: Arc<str>,
    },
    /// They have moved.
    TransferEnded {
        /// The same number.
        transfer: u64,
        /// Objects that did.
        count: u64,
        /// Their bytes.
        total_bytes: u64,
        /// Tokens they stand for.
        num_tokens: u64,
        /// Why it failed, if it did.
        failure: Option<Arc<str>>,
    },
    /// A client connected.
    ConnectionOpened {
        /// Its address.
        peer: Arc<str>,
    },
    /// A client's command was answered.
    CommandEnded {
        /// Its name, in capitals.
        command: &'static str,
        /// When it was read.
        started: Nanos,
        /// Keys it named.
        keys: u32,
        /// Those that were there.
        hits: u32,
        /// Bytes of values.
        bytes: u64,
        /// Whether the answer was an error.
        failed: bool,
    },
    /// What a client did in all; told before it goes, since only some of its commands are.
    ConnectionCounted {
        /// Commands answered.
        commands: u64,
        /// Keys they named.
        keys: u64,
        /// Those that were there.
        hits: u64,
        /// Bytes of values.
        bytes: u64,
        /// Commands whose answer was an error.
        failed: u64,
    },
    /// A client went away.
    ConnectionClosed,
}

/// Which way objects move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferWay {
    /// From the caller to the cache.
    Store,
    /// From the cache to the caller.
    Retrieve,
}

/// A span of another process, as it comes in a `traceparent` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span in it.
    pub span_id: [u8; 8],
    /// Whether it is recorded there.
    pub sampled: bool,
}

/// What a lookup found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookupOutcome {
    /// Chunks found.
    pub found_count: u64,
    /// Tokens of whole chunks that were asked for.
    pub requested_tokens: u64,
    /// Those found.
    pub hit_tokens: u64,
    /// Those that memory alone could serve.
    pub l1_hit_tokens: u64,
    /// The rest.
    pub l2_hit_tokens: u64,
    /// Objects found in memory.
    pub l1_hit_keys: u64,
    /// Objects found behind it.
    pub l2_hit_keys: u64,
    /// Why nothing was looked up; empty if something was.
    pub early_exit_reason: &'static str,
    /// Whose objects.
    pub model_name: Arc<str>,
    /// Whose, among tenants.
    pub cache_salt: Arc<str>,
    /// Of blend: tokens found at the start, in segments from there on, and elsewhere.
    pub blend: Option<BlendHits>,
}

/// Where what blend found lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlendHits {
    /// Chunks of the longest prefix.
    pub prefix_hits: u64,
    /// Its tokens.
    pub prefix_hit_tokens: u64,
    /// Tokens of later runs of chunks.
    pub segmented_prefix_hit_tokens: u64,
    /// Tokens of chunks that stand alone.
    pub non_prefix_hit_tokens: u64,
}
