//! Live workers that answer whoever asks: `control` is the thread between those who ask and the fleet,
//! `answer` what one request has got so far.

mod answer;
mod control;

pub use answer::{Answer, End, More};
pub use control::{Ask, Control, Desk, Finish, Follow};
