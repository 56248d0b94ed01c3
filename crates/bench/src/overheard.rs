//! Calls on the store of a run, told to whoever records them, at the time of the run's own clock if it has
//! one.

use std::sync::Arc;

use wavetank_model::Nanos;
use wavetank_store::{Call, Listener};

use crate::clock::Face;

/// Someone who is told of every call on the store of a run.
pub trait Calls: Send + Sync {
    /// Takes note of `call`, at once and without asking the store. `at` is its time where time is virtual.
    fn hear(&self, call: Call, at: Option<Nanos>);
}

/// Between a store and whoever records.
pub(crate) struct Overheard {
    pub(crate) calls: Arc<dyn Calls>,
    /// Of a clock that is not the wall's.
    pub(crate) face: Option<Face>,
}

impl Listener for Overheard {
    fn hear(&self, call: Call) {
        let at = self.face.as_ref().map(Face::now);
        let takes_none = matches!(self.face, Some(Face::Virtual(_)));
        let took = if takes_none { Nanos::ZERO } else { call.took };
        self.calls.hear(Call { took, ..call }, at);
    }
}
