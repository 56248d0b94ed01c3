//! Bodies that are read as a whole.

use tokio::sync::OwnedSemaphorePermit;
use wavetank_http::{Inflow, Room, give_back};

use super::answer::Refusal;
use super::desk::{Desk, shares};

/// The longest of them.
pub(super) const MOST_JSON: usize = 16 << 20;

/// All of a body, if it is short, with its part of what may be under way.
pub(super) async fn whole(
    inflow: &mut Inflow,
    desk: &Desk,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Refusal> {
    let mut share = Share { desk, held: None };
    let most = match inflow.length() {
        Some(_) => MOST_JSON,
        None => MOST_JSON.min(usize::try_from(desk.plan.limits.memory_bytes).unwrap_or(MOST_JSON)),
    };
    let whole = inflow.whole_in(most, &mut share).await?;
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
        self.held = Some(self.desk.share(bytes).await?);
        Ok(())
    }

    fn keep(&mut self, bytes: u64) {
        self.held.iter_mut().for_each(|held| give_back(held, shares(bytes) as usize));
    }
}
