//! Where requests come from: simulated users or a recording. What is asked depends on the seed alone; when,
//! also on answers where users wait for them.

mod crowd;
mod recording;

use wavetank_model::Nanos;

pub use recording::Recording;

use crate::document::Library;
use crate::plan::{Feed, Plan};
use crate::request::Request;
use crowd::Crowd;
use recording::Player;

/// Requests in the order of their times.
pub(crate) trait Source: Send {
    /// When the next request comes; `None` while none comes by itself.
    fn next_at(&self) -> Option<Nanos>;

    /// The next request.
    ///
    /// # Panics
    /// When none comes.
    fn take(&mut self) -> Request;

    /// A request was answered, or turned away.
    fn answered(&mut self, request: &Request, at: Nanos);

    /// There are this many users from now on.
    fn resize(&mut self, users: u32, now: Nanos);
}

/// The requests of `plan`; a recording is needed where it says so.
pub(crate) fn source(plan: &Plan, library: Library, recording: Option<&Recording>) -> Box<dyn Source> {
    match (plan.feed, recording) {
        (Feed::Users(load), _) => Box::new(Crowd::new(plan, library, load)),
        (Feed::Recording { .. }, Some(recording)) => Box::new(Player::new(plan, library, recording.clone())),
        (Feed::Recording { .. }, None) => panic!("the plan has a recording"),
    }
}
