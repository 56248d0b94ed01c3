//! Live workers followed over ZeroMQ, as a router follows them: by a subscriber of our own, and by one with
//! the packages that vLLM's own subscribers use.
#![allow(clippy::unwrap_used)]

mod door;
mod message_pack;
mod python;
mod subscriber;
mod traffic;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use subscriber::Subscriber;
use traffic::{Mock, Setting};
use wavetank_live::kv_events::Encoding;

fn follow(setting: Setting) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mock = Mock::start(&setting);
    let blocks = runtime.block_on(async {
        let mut subscribers = Vec::new();
        for (events, replay) in mock.endpoints.events.iter().zip(&mock.endpoints.replay) {
            subscribers.push(Subscriber::connect(events, replay).await);
        }
        // One that takes nothing is nobody's business.
        let _stuck = Subscriber::connect(&mock.endpoints.events[0], &mock.endpoints.replay[0]).await;
        let heard: Arc<AtomicUsize> = Arc::default();
        let follow = |subscriber: Subscriber| tokio::spawn(subscriber.follow(Arc::clone(&heard)));
        let following: Vec<_> = subscribers.into_iter().map(follow).collect();
        let workers = following.len();
        let all_follow = move || heard.load(Ordering::Relaxed) == workers;
        let ended = tokio::task::spawn_blocking(move || mock.serve_while(all_follow));
        let view = ended.await.unwrap();
        let mut all = Vec::new();
        for (worker, task) in following.into_iter().enumerate() {
            let seen = task.await.unwrap();
            assert_eq!(seen.rank, worker as u64);
            view.check(worker as u32, &seen.held);
            assert!(seen.removed > 0, "a small cache loses blocks");
            all.push(seen);
        }
        all
    });
    let shared = blocks[0].held.keys().filter(|hash| blocks[1].held.contains_key(hash));
    assert!(shared.count() > 0, "the same tokens have the same hash everywhere");
}

/// Broken by: a change that is not told or told twice, a child told before its parent, tokens of another
/// block, a hash that depends on the worker.
#[test]
fn a_subscriber_knows_what_workers_have() {
    follow(Setting { engine: "vllm", ..Setting::default() });
}

/// Broken by: the same in a cache that is a tree, and with events as arrays.
#[test]
fn a_subscriber_knows_what_radix_trees_have() {
    follow(Setting { engine: "sglang", encoding: Encoding::Array, ..Setting::default() });
}

/// Broken by: changes told when they are not to be seen yet, or after their request is forgotten.
#[test]
fn a_subscriber_knows_what_is_scheduled_ahead() {
    follow(Setting { is_ahead: true, ..Setting::default() });
}

/// Broken by: what one of two ranks of a worker has being told as gone when the other one loses it.
#[test]
fn a_subscriber_knows_what_ranks_have_together() {
    follow(Setting { ranks: 2, is_ahead: true, ..Setting::default() });
}
