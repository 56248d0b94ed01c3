//! Bodies that are read as a whole.

use tokio::sync::OwnedSemaphorePermit;
use wavetank_http::{Inflow, Room};

use super::answer::Refusal;
use super::desk::Desk;

/// The longest of them.
pub(super) const MOST_JSON: usize = 16 << 20;

/// All of a body, if it is short, with its part of what may be under way.
pub(super) async fn whole(
    inflow: &mut Inflow,
    desk: &Desk,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Refusal> {
    let mut share = Share { desk, held: None };
    let whole = inflow.whole_in(MOST_JSON, &mut share).await?;
    Ok((whole, share.held))
}

/// A body's part of what may be under way.
struct Share<'a> {
    desk: &'a Desk,
    held: Option<OwnedSemaphorePermit>,
}

impl Room for Share<'_> {
    type Refusal = Refusal;

    async fn take(&mut self, bytes: u64) -> Result<(), Refusal> {
        let more = self.desk.share(bytes).await?;
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
        Ok(())
    }
}
