//! Laws of tiers behind workers, and small cases by hand.

mod by_hand;
mod case;
mod laws;
mod watch;
