//! Which worker a request goes to: one file per router, one row each in [`ALL`].

mod round_robin;

use wavetank_model::{Described, Request, Result, WorkerId, find};

/// Chooses workers.
pub trait Router {
    /// The worker for a request that arrives now.
    fn place(&mut self, request: &Request) -> WorkerId;
}

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// Builds the router for this many workers.
    pub build: fn(u32) -> Box<dyn Router>,
}

impl Described for Entry {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
}

/// Every router, alphabetical. `wavetank list routers` prints this table.
pub const ALL: &[Entry] = &[round_robin::ENTRY];

/// Builds the router called `name`.
pub fn build(name: &str, workers: u32) -> Result<Box<dyn Router>> {
    Ok((find("router", ALL, name)?.build)(workers))
}

#[cfg(test)]
mod tests {
    use wavetank_model::{Priority, Prompt, SessionId};

    use super::*;

    #[test]
    fn every_router_stays_inside_the_fleet() {
        let prompt = Prompt::unique(1, 10);
        let (session, priority) = (SessionId(0), Priority::default());
        let request =
            Request { session, turn: 0, prompt, output_tokens: 1, priority, think: None, labels: None };
        for entry in ALL {
            for workers in [1, 2, 7] {
                let mut router = (entry.build)(workers);
                assert!((0..50).all(|_| router.place(&request).0 < workers), "{}", entry.name);
            }
        }
    }
}
