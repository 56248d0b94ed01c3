//! The simulator against an independent oracle: the scheduler and the event loop of the specification,
//! written as plainly as possible. Both must agree about every request to the nanosecond.
//!
//! Nothing here shares code with the engine: prompts are spelled out token by token, blocks are searched one
//! by one, every pass is run. Set `PROPTEST_CASES` to run more cases than the test does by itself.

mod case;
mod corners;
mod driver;
mod engine;
mod history;
mod pool;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use case::Case;

/// Enough to meet every rule many times over.
const CASES: u32 = 4_000;

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(CASES), failure_persistence: None, ..default }
}

/// Whether simulator and oracle agree.
fn compare(case: &Case) -> TestCaseResult {
    let (found, expected) = (history::simulated(case), driver::run(case));
    prop_assert_eq!(found.len(), expected.len(), "requests");
    for ((turn, found), (_, expected)) in found.iter().zip(&expected) {
        prop_assert_eq!(found, expected, "session and turn {:?}: simulator and oracle", turn);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_simulator_agrees_with_the_oracle(case in case::case()) {
        compare(&case)?;
    }
}
