//! Laws that hold for every plan with tiers.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::json;
use wavetank_sim::{EngineConfig, Load, Plan, TierConfig, TierLoad, TierWrite, engines};

use crate::case::{ONE_AT_A_TIME, Row, Rows, medium, plan, plan_of, private, rows, tier};
use crate::watch::run;

fn without_tiers(plan: &Plan) -> Plan {
    Plan { engine: EngineConfig { tiers: Vec::new(), ..plan.engine.clone() }, ..plan.clone() }
}

/// Prompt tokens that a cache without end would find, one request after the other.
fn bound(rows: &[Row], block_size: u32) -> u64 {
    let (mut seen, mut reusable) = (HashSet::new(), 0);
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.start_ms);
    for prompt in rows.iter().map(Row::prompt) {
        let keys: Vec<_> = prompt.keys_from(0, block_size).collect();
        let most = ((prompt.tokens() - 1) / block_size) as usize;
        let found = keys.iter().take(most).take_while(|key| seen.contains(*key)).count();
        reusable += found as u64 * u64::from(block_size);
        seen.extend(keys);
    }
    reusable
}

/// Enough to meet every rule many times over; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(500), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    /// Broken by: a request that is parked and forgotten, blocks that stay with who gave a load back, a load
    /// that is counted and computed.
    #[test]
    fn every_request_ends_and_every_token_is_reused_or_computed(plan in plan(), rows in rows()) {
        let (watched, outcome) = run(&plan, &mut Rows::of(&rows));
        if plan.max_sim_time.is_none() {
            prop_assert_eq!(watched.arrived, rows.len() as u64);
            prop_assert_eq!(watched.completed + watched.rejected, watched.arrived);
            prop_assert_eq!(outcome.total().blocks_in_use, 0);
            let computed = outcome.total().prompt_tokens;
            if watched.rejected == 0 {
                prop_assert!(watched.reused_tokens() + computed >= watched.input_tokens);
                if watched.preempted == 0 {
                    prop_assert_eq!(watched.reused_tokens() + computed, watched.input_tokens);
                }
            }
        }
    }

    /// Broken by: anything that depends on the order of a hash table, or on an address.
    #[test]
    fn the_same_plan_gives_the_same_events(plan in plan(), rows in rows()) {
        let ((one, first), (other, second)) =
            (run(&plan, &mut Rows::of(&rows)), run(&plan, &mut Rows::of(&rows)));
        prop_assert_eq!(one.lines, other.lines);
        prop_assert_eq!(first, second);
    }

    /// Broken by: writes stamped with the end of a stretch, a load that is seen later because a stretch goes
    /// on, an idle worker that sleeps over its load.
    #[test]
    fn workers_that_share_nothing_need_not_be_stepped_together(plan in plan(), rows in rows()) {
        let plan = private(Plan { load: Load::Schedule, router_mode: "round_robin".to_owned(), ..plan });
        let (alone, first) = run(&plan, &mut Rows::of(&rows));
        let (together, second) = run(&plan, &mut Rows::coupled(&rows));
        prop_assert_eq!(alone.requests, together.requests);
        if plan.max_sim_time.is_none() {
            prop_assert_eq!(first.tiers, second.tiers);
        }
    }

    /// Broken by: a tier without room that is read, written or waited for.
    #[test]
    fn a_tier_of_no_capacity_changes_nothing(plan in plan(), rows in rows()) {
        let empty = |tier: TierConfig| TierConfig { capacity_bytes: 0, ..tier };
        let tiers = plan.engine.tiers.iter().cloned().map(empty).collect();
        let with = Plan { engine: EngineConfig { tiers, ..plan.engine.clone() }, ..plan.clone() };
        let (without, _) = run(&without_tiers(&plan), &mut Rows::of(&rows));
        let (with, _) = run(&with, &mut Rows::of(&rows));
        prop_assert_eq!(with.requests, without.requests);
        prop_assert_eq!(with.loads.len(), 0);
    }

    /// Broken by: a lookup that stops at what the GPU has, or blocks that are lost on their way.
    #[test]
    fn one_at_a_time_tiers_never_lower_reuse(plan in plan(), rows in rows()) {
        let plan = Plan { load: ONE_AT_A_TIME, num_workers: 1, max_sim_time: None, ..plan };
        let (without, _) = run(&without_tiers(&plan), &mut Rows::of(&rows));
        let (with, _) = run(&plan, &mut Rows::of(&rows));
        // A prompt that is given up without a tier may start with one, and take the place of something else.
        if with.rejected + without.rejected == 0 {
            prop_assert!(with.reused_tokens() >= without.reused_tokens());
        }
    }

    /// Broken by: a block that is not written, or not found although it is there.
    #[test]
    fn a_tier_without_end_is_an_endless_cache(
        rows in rows(),
        engine in 0..engines::ALL.len(),
        [overlap, evict] in any::<[bool; 2]>(),
    ) {
        let at_once = medium("constant", json!({"latency_us": 0.0, "gbps": 1e12}));
        let cpu = TierConfig {
            load: if overlap { TierLoad::Overlap } else { TierLoad::Delay },
            write: if evict { TierWrite::Evict } else { TierWrite::Through },
            ..tier(100_000, 8, at_once)
        };
        let engine = EngineConfig {
            engine_type: engines::ALL[engine].name.to_owned(),
            block_size: 8,
            num_gpu_blocks: 40,
            transfer: crate::case::transfer(),
            tiers: vec![cpu],
            ..EngineConfig::default()
        };
        let plan = plan_of(engine, 1, ONE_AT_A_TIME);
        let (watched, outcome) = run(&plan, &mut Rows::of(&rows));
        prop_assert_eq!(watched.rejected + watched.preempted, 0);
        prop_assert_eq!(watched.reused_tokens(), bound(&rows, 8));
        prop_assert!(outcome.tiers[0].utilisation() <= 1.0);
    }
}
