//! Jobs from numbers.

use insta::assert_snapshot;

use super::*;

/// A flow of `reads` and `writes` (bytes, how many), and `times`: busy, idle, pieces summed over time.
fn flow(reads: &[(u64, u64)], writes: &[(u64, u64)], times: [u64; 3], starts: u64) -> Flow {
    let mut flow = Flow::default().with_requests(reads, writes);
    flow.pieces = reads.iter().chain(writes).map(|(_, count)| count).sum();
    [flow.busy, flow.idle, flow.depth_time] = times.map(Duration::from_millis);
    flow.starts = starts;
    flow
}

fn distilled(flow: Flow) -> Distilled {
    Distilled {
        version: "1.2.3".to_owned(),
        backend: "direct".to_owned(),
        directory: "/mnt/kv".to_owned(),
        jobs: 1,
        held_bytes: 4 << 30,
        section: "kv".to_owned(),
        flow,
        pages: Pages::Huge,
        free_huge_pages: 64,
        engine: Engine::Ring,
        buffers: Buffers::Registered,
        cached: Cached::No,
        synced: Synced::No,
    }
}

#[test]
fn a_saturated_run() {
    let reads = [(400 << 10, 300), (1 << 20, 9700)];
    let writes = [(4 << 10, 50), (300 << 10, 50), (1 << 20, 1400)];
    let job = distilled(flow(&reads, &writes, [10_000, 0, 311_000], 0)).job();
    assert_snapshot!(job);
}

/// Two threads, through the page cache, with pauses and entries that are synchronised.
#[test]
fn a_paced_run() {
    let mut writes = flow(&[], &[(1 << 20, 600)], [4_000, 16_000, 12_000], 60);
    writes.sealed = 30;
    let distilled = Distilled {
        backend: "buffered".to_owned(),
        directory: "/mnt/a:b".to_owned(),
        jobs: 2,
        section: "kv_rank1".to_owned(),
        pages: Pages::Small,
        engine: Engine::Threads,
        buffers: Buffers::Plain,
        cached: Cached::Yes,
        synced: Synced::Yes,
        ..distilled(writes)
    };
    assert_snapshot!(distilled.job());
}

/// Broken by: rounding requests per pause without keeping the time per request.
#[test]
fn pauses_take_the_time_they_took() {
    for (requests, starts, idle_ms) in [(1000, 700, 500), (1000, 10, 500), (7, 3, 900), (5000, 1, 4_999)] {
        let distilled = distilled(flow(&[(1 << 20, requests)], &[], [5_000, idle_ms, 5_000], starts));
        let (blocks, pause) = distilled.pauses().unwrap();
        let idle_us = requests as f64 / blocks as f64 * pause as f64;
        assert!((idle_us / (idle_ms as f64 * 1e3) - 1.0).abs() < 0.01, "{requests} {starts}: {idle_us}");
    }
    let few = distilled(flow(&[(1 << 20, 1000)], &[], [5_000, 10, 5_000], 3));
    assert_eq!(few.pauses(), None, "0.2 % of the time");
}

/// Broken by: a job that only runs where huge pages are set aside, rounding that is not told.
#[test]
fn a_job_runs_where_it_is_written() {
    let flow = flow(&[(1 << 20, 1000)], &[], [5_000, 0, 7_450], 0);
    let with = distilled(flow.clone()).job();
    assert!(with.contains("\nmem=shmhuge\n") && with.contains("1.5 became 1"), "{with}");
    let without = Distilled { free_huge_pages: 1, ..distilled(flow) }.job();
    assert!(!without.contains("\nmem=") && without.contains("; mem=shmhuge\n"), "{without}");
    assert!(without.contains("vm.nr_hugepages=2`"), "{without}");
}

#[test]
fn a_mix_keeps_both_ways() {
    let job = distilled(flow(&[(1 << 20, 100_000)], &[(4096, 1)], [1_000, 0, 1_000], 0));
    assert_eq!((job.way(), job.reads_percent()), ("randrw", 99));
    let reads = distilled(flow(&[(1 << 20, 10)], &[], [1_000, 0, 1_000], 0));
    assert_eq!((reads.way(), reads.bssplit()), ("randread", "1024k/100".to_owned()));
}
