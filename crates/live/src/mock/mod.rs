//! Live workers that answer whoever asks: `control` is the thread between those who ask and the fleet,
//! `answer` what one request has got so far.
//!
//! Before them is a server that OpenAI's clients know: `front` answers HTTP, by what `route` finds. `fields`,
//! `wanted` and `prompt` read a request, `tokens` and `words` are its language, `script` is what is answered,
//! `job` all of that together; `stream`, `reply` and `body` tell it, `fault` says why not. [`run()`] is its
//! life.

mod answer;
mod body;
mod control;
mod counts;
mod fault;
mod fields;
mod front;
mod job;
mod plan;
mod prompt;
mod reply;
mod route;
mod run;
mod script;
mod stream;
mod tokens;
mod wanted;
mod words;

pub use answer::{Answer, End, More};
pub use control::{Ask, Control, Desk, Finish, Follow};
pub use plan::{MockLimits, MockPlan};
pub use run::{Addresses, Company, KvEventsReport, MockReport, Ready, run};
pub use script::OutputLengths;
pub use tokens::Tokenizer;
pub use wavetank_http::{Login, Secret};
