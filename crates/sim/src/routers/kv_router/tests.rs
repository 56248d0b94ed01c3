//! Acceptance cases K2 and K9 of spec/replay.md 11, on the router alone.

use wavetank_model::{Priority, SessionId};

use super::*;
use crate::EngineConfig;

fn router(workers: u32, config: &KvConfig, engine: &EngineConfig) -> KvRouter {
    KvRouter::build(&Fleet { workers, engine, config, seed: 42 }).unwrap()
}

fn request(id: u64, tokens: u32) -> Request {
    Request {
        session: SessionId(0),
        turn: 0,
        prompt: Prompt::unique(id, tokens),
        output_tokens: 2,
        priority: Priority::default(),
        think: None,
        labels: None,
    }
}

#[test]
fn k2_a_busy_worker_makes_the_next_one_wait() {
    let engine = EngineConfig { max_num_batched_tokens: Some(64), ..EngineConfig::default() };
    let config = KvConfig { router_queue_threshold: Some(0.5), ..KvConfig::default() };
    let mut one = router(1, &config, &engine);
    assert_eq!(one.busy_above, None, "with one worker nothing is held back");
    one.busy_above = router(2, &config, &engine).busy_above;
    assert!(one.arrive(RequestId(0), &request(0, 64), Nanos::ZERO).is_some());
    assert!(one.arrive(RequestId(1), &request(1, 64), Nanos::ZERO).is_none());
    assert_eq!(one.release(Nanos(1)), None);
    one.prefilled(RequestId(0), Nanos(5));
    assert_eq!(one.release(Nanos(5)).map(|placement| placement.request), Some(RequestId(1)));
}

#[test]
fn nobody_overtakes_a_backlog() {
    let engine = EngineConfig { max_num_batched_tokens: Some(64), ..EngineConfig::default() };
    let config = KvConfig { router_queue_threshold: Some(0.5), ..KvConfig::default() };
    let mut two = router(2, &config, &engine);
    assert!(two.arrive(RequestId(0), &request(0, 64), Nanos::ZERO).is_some());
    assert!(two.arrive(RequestId(1), &request(1, 64), Nanos::ZERO).is_some());
    assert!(two.arrive(RequestId(2), &request(2, 64), Nanos::ZERO).is_none());
    two.prefilled(RequestId(0), Nanos(5));
    assert!(two.arrive(RequestId(3), &request(3, 64), Nanos(5)).is_none(), "request 2 is ahead of it");
    assert_eq!(two.release(Nanos(5)).map(|placement| placement.request), Some(RequestId(2)));
}

/// Broken by: a withdrawn request that is let go later, or that keeps others waiting.
#[test]
fn who_is_withdrawn_leaves_the_queue() {
    let engine = EngineConfig { max_num_batched_tokens: Some(64), ..EngineConfig::default() };
    let config = KvConfig { router_queue_threshold: Some(0.5), ..KvConfig::default() };
    let mut two = router(2, &config, &engine);
    let arrived: Vec<_> =
        (0..5).map(|id| two.arrive(RequestId(id), &request(id.into(), 64), Nanos::ZERO).is_some()).collect();
    assert_eq!(arrived, [true, true, false, false, false]);
    two.withdrawn(RequestId(3), Nanos(1));
    assert_eq!(two.release(Nanos(1)), None, "all are as busy as before");
    two.withdrawn(RequestId(0), Nanos(2));
    assert_eq!(two.release(Nanos(2)).map(|placement| placement.request), Some(RequestId(2)));
    two.ended(RequestId(1), Nanos(3));
    assert_eq!(two.release(Nanos(3)).map(|placement| placement.request), Some(RequestId(4)));
    two.withdrawn(RequestId(4), Nanos(4));
    two.withdrawn(RequestId(2), Nanos(4));
    assert_eq!(two.requests.drain().count(), 0);
    assert!(two.arrive(RequestId(5), &request(5, 64), Nanos(5)).is_some(), "nobody waits any more");
}

#[test]
fn k9_a_stored_block_counts_and_a_removed_one_does_not() {
    let mut router = router(2, &KvConfig::default(), &EngineConfig::default());
    let prompt = request(7, 128).prompt;
    let key = prompt.keys_from(0, 64).next().unwrap();
    let change = |kind| Change { group: key.group, slots: 1 << key.slot, kind };
    let overlap = |router: &mut KvRouter| {
        router.holdings.overlaps(prompt.keys_from(0, 64), &mut router.overlaps);
        router.overlaps[1].cached
    };
    assert_eq!(overlap(&mut router), 0);
    router.cache_changed(WorkerId(1), change(ChangeKind::Stored));
    assert_eq!(overlap(&mut router), 1);
    router.cache_changed(WorkerId(1), change(ChangeKind::Removed));
    assert_eq!(overlap(&mut router), 0);
}

/// Broken by: a worker that left and still counts as holding prefixes, or that keeps others waiting.
#[test]
fn who_left_holds_nothing() {
    let engine = EngineConfig { max_num_batched_tokens: Some(64), ..EngineConfig::default() };
    let config = KvConfig { router_queue_threshold: Some(0.5), ..KvConfig::default() };
    let mut router = router(2, &config, &engine);
    let prompt = request(7, 128).prompt;
    let key = prompt.keys_from(0, 64).next().unwrap();
    let stored = Change { group: key.group, slots: 1 << key.slot, kind: ChangeKind::Stored };
    router.cache_changed(WorkerId(1), stored);
    router.left(WorkerId(1));
    router.cache_changed(WorkerId(1), stored);
    router.holdings.overlaps(prompt.keys_from(0, 64), &mut router.overlaps);
    assert_eq!(router.overlaps[1].cached, 0);
    assert_eq!(router.busy_above, None, "one is left, so nothing is held back");
    assert!((0..3).all(|id| router.arrive(RequestId(id), &request(id.into(), 64), Nanos::ZERO).is_some()));
    router.joined(WorkerId(2));
    // The new one is free, then both are busy.
    let placed = router.arrive(RequestId(3), &request(3, 64), Nanos::ZERO);
    assert_eq!(placed.map(|placement| placement.worker), Some(WorkerId(2)));
    assert!(router.arrive(RequestId(4), &request(4, 64), Nanos::ZERO).is_none());
    router.joined(WorkerId(3));
    assert_eq!(router.release(Nanos(1)).map(|placement| placement.worker), Some(WorkerId(3)));
}

#[test]
fn everything_is_given_back() {
    for (tracked, shared) in [(true, true), (true, false), (false, true)] {
        let config = KvConfig {
            router_track_active_blocks: tracked,
            router_assume_kv_reuse: shared,
            ..KvConfig::default()
        };
        let mut router = router(3, &config, &EngineConfig::default());
        for id in 0..30 {
            router.arrive(RequestId(id), &request(u64::from(id % 4), 200), Nanos::ZERO);
        }
        (0..20).for_each(|id| router.ended(RequestId(id), Nanos(9)));
        (20..30).for_each(|id| router.withdrawn(RequestId(id), Nanos(9)));
        for worker in 0..3 {
            let load = &router.loads[worker as usize];
            assert_eq!((load.requests, load.unshared_blocks, load.prefills.tokens(Nanos(9))), (0, 0, 0));
            assert_eq!(router.holdings.live_blocks(WorkerId(worker)), 0);
        }
    }
}
