//! Many independent pieces of work on some threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// As many threads as there are processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `work` with every number below `count`, on at most `threads` threads; `deliver` gets each result on
/// the calling thread, in the order they are done. Once `stop` is raised no further one is begun. Where no
/// more threads are to be had, fewer do it.
pub fn in_parallel<T: Send>(
    count: usize,
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(usize) -> T + Sync,
    mut deliver: impl FnMut(usize, T),
) {
    let next = AtomicUsize::new(0);
    let take = || {
        let position = next.fetch_add(1, Ordering::Relaxed);
        (position < count && !stop.load(Ordering::Relaxed)).then_some(position)
    };
    let threads = threads.clamp(1, count.max(1));
    // A few results may wait, so that no thread does while one of them is looked at.
    let (sender, results) = mpsc::sync_channel(threads * 4);
    std::thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads {
            let sender = sender.clone();
            let (take, work) = (&take, &work);
            let begun = std::thread::Builder::new().spawn_scoped(scope, move || {
                while let Some(position) = take() {
                    // Whoever does not listen any more wants no further result either.
                    if sender.send((position, work(position))).is_err() {
                        break;
                    }
                }
            });
            if begun.is_err() {
                break;
            }
            started += 1;
        }
        drop(sender);
        results.iter().for_each(|(position, result)| deliver(position, result));
        while started == 0
            && let Some(position) = take()
        {
            deliver(position, work(position));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a number that is taken twice or not at all.
    #[test]
    fn everything_is_done_once() {
        for threads in [1, 3, 200] {
            let mut seen = vec![0; 100];
            in_parallel(
                100,
                threads,
                &AtomicBool::new(false),
                |n| n * n,
                |n, square| {
                    assert_eq!(square, n * n);
                    seen[n] += 1;
                },
            );
            assert!(seen.iter().all(|&times| times == 1), "{threads}");
        }
        in_parallel(0, 2, &AtomicBool::new(false), |_| (), |_, ()| panic!("there is nothing to do"));
    }

    #[test]
    fn nothing_begins_after_the_stop() {
        let stop = AtomicBool::new(false);
        let mut seen = 0;
        in_parallel(100, 1, &stop, |n| stop.store(n >= 4, Ordering::Relaxed), |_, ()| seen += 1);
        assert_eq!(seen, 5);
    }
}
