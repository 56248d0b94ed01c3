//! Objects on their way to or from a client, as spans see them.

use std::sync::Arc;

use wavetank_model::{CacheFact, TransferWay};

use super::super::desk::Desk;
use super::super::session::Busy;

/// One transfer; dropped before it is finished, it has failed.
pub(super) struct Transfer {
    desk: Arc<Desk>,
    busy: Busy,
    way: TransferWay,
    number: u64,
    done: Done,
    is_over: bool,
}

/// What has moved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) objects: u64,
    pub(super) bytes: u64,
    pub(super) tokens: u64,
}

/// Who moves objects, as the client says.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) device: Arc<str>,
    pub(super) engine_id: u64,
}

impl Caller {
    pub(super) fn of(device: Option<&str>, engine_id: Option<u64>) -> Self {
        let shown: String = device.unwrap_or("cpu").chars().take(100).collect();
        Self { device: shown.into(), engine_id: engine_id.unwrap_or(0) }
    }
}

impl Transfer {
    /// It was asked for.
    pub(super) fn submit(desk: &Arc<Desk>, busy: Busy, way: TransferWay, caller: &Caller) -> Self {
        let number = desk.transfer_number();
        let device = || Arc::clone(&caller.device);
        let fact = || CacheFact::TransferSubmitted { way, transfer: number, device: device() };
        desk.sessions.publish(&busy.0.id, fact);
        match way {
            TransferWay::Store => desk.counts.stores_submitted.add(1),
            TransferWay::Retrieve => desk.counts.retrieves_submitted.add(1),
        }
        Self { desk: Arc::clone(desk), busy, way, number, done: Done::default(), is_over: false }
    }

    /// It begins.
    pub(super) fn start(&self, caller: &Caller, model: &Arc<str>, salt: &Arc<str>) {
        self.desk.sessions.publish(&self.busy.0.id, || CacheFact::TransferStarted {
            transfer: self.number,
            engine_id: caller.engine_id,
            model_name: Arc::clone(model),
            cache_salt: Arc::clone(salt),
        });
    }

    /// So much has moved.
    pub(super) fn moved(&mut self, done: Done) {
        self.done = done;
    }

    /// It ends, well or for a reason.
    pub(super) fn end(mut self, failure: Option<&str>) {
        self.tell(failure);
    }

    fn tell(&mut self, failure: Option<&str>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let Done { objects, bytes, tokens } = self.done;
        let counts = &self.desk.counts;
        match self.way {
            TransferWay::Store => counts.stores_finished.add(1),
            TransferWay::Retrieve => {
                counts.retrieves_finished.add(1);
                counts.chunks_loaded.add(objects);
            }
        }
        self.desk.sessions.publish(&self.busy.0.id, || CacheFact::TransferEnded {
            transfer: self.number,
            count: objects,
            total_bytes: bytes,
            num_tokens: tokens,
            failure: failure.map(Into::into),
        });
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.tell(Some("the client went away"));
    }
}
