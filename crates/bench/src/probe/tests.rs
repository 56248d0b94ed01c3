//! Real backends, and wrappers around them whose numbers are known.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicIsize;
use std::time::{Duration, Instant};

use wavetank_model::{Operation, TierLatency};
use wavetank_store::backend::{Completion, Held, NewEntry, Piece, Port, Seal};
use wavetank_store::buffer::{Buffer, Region};
use wavetank_store::wrappers::throttle::{Bandwidth, Limits, wrap};

use super::*;

const SMALL: u64 = 64 << 10;
/// Two pieces, the second of them short.
const LARGE: u64 = (1 << 20) + 4096;

fn plan(backend: &str, location: &Path) -> ProbePlan {
    let mut plan = ProbePlan {
        backend: backend.to_owned(),
        location: location.to_str().unwrap().to_owned(),
        options: BTreeMap::new(),
        sizes: vec![SMALL, LARGE],
        depths: vec![1, 3],
        read_shares: vec![1.0, 0.5, 0.0],
        in_flight_bytes_max: u64::MAX,
        threads: 1,
        passes: 2,
        seconds_per_point: 0.02,
        sustained_seconds: 0.1,
        working_set_bytes: 0,
        entries_max: 64,
        seed: 7,
    };
    plan.working_set_bytes = plan.least_bytes();
    plan
}

/// Broken by: a distance that is left out, a drive that is asked what a processor keeps, or memory that is
/// touched as a step of its own.
#[test]
fn memory_is_read_again() {
    // Long enough for every point on a busy machine.
    let (working_set_bytes, seconds_per_point) = (32 << 20, 0.1);
    let plan = ProbePlan { working_set_bytes, seconds_per_point, ..plan("memory", Path::new("")) };
    let stop = AtomicBool::new(false);
    let mut steps = 0;
    let observer = ProbeObserver { stop: &stop, measured: &mut || steps += 1 };
    let probed = probe(&plan, observer).unwrap();
    assert_eq!(steps, plan.steps(), "touching memory is no step");
    let apart = probed.again.chunk_by(TierAgain::is_like).map(|alike| {
        let apart = alike.iter().map(|again| again.apart_bytes / LARGE).collect::<Vec<u64>>();
        (alike[0].after, alike[0].repeats, apart)
    });
    // 2, 4, 8 and 16 MiB of entries a little over 1 MiB, of 15 that are read and as many that are written.
    let all = vec![1, 3, 7, 15];
    let kinds = [(Operation::Read, 0), (Operation::Read, 1), (Operation::Read, 2), (Operation::Write, 0)];
    assert!(apart.eq(kinds.map(|(after, repeats)| (after, repeats, all.clone()))));
    assert!(probed.again.iter().all(|again| again.bytes == LARGE && again.operations > 0));
    let folder = tempfile::tempdir().unwrap();
    assert!(
        ProbePlan { location: String::new(), ..self::plan("buffered", folder.path()) }.again().is_empty()
    );
}

/// One of many depths.
pub(super) fn deep_plan() -> ProbePlan {
    let plan = plan("memory", Path::new(""));
    ProbePlan { sizes: vec![SMALL], depths: vec![1, 4, 16, 64], entries_max: 4096, ..plan }
}

fn memory() -> Arc<dyn Backend> {
    backends::open("memory", &Site::default()).unwrap()
}

fn probed_on(backend: Arc<dyn Backend>, plan: &ProbePlan) -> Probed {
    let stop = AtomicBool::new(false);
    probe_on(backend, plan, ProbeObserver { stop: &stop, measured: &mut || {} }).unwrap()
}

fn names(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|path| !path.ends_with("LOCK") && !path.ends_with("FORMAT"));
    files
}

/// Every point is there once and agrees with itself.
fn check(plan: &ProbePlan, probed: &Probed) {
    assert!(!probed.partial);
    assert_eq!(probed.points.len(), plan.points());
    for (number, point) in probed.points.iter().enumerate() {
        assert!(probed.points[..number].iter().all(|other| !other.is_of(point)));
        let passes = if point.room == TierRoom::New { 1 } else { plan.passes as usize };
        assert_eq!(point.pass_bytes_per_second.len(), passes);
        let bytes = point.bytes_per_second * point.seconds;
        assert!((bytes / (point.operations * point.bytes) as f64 - 1.0).abs() < 1e-9);
        match point.read_share {
            1.0 => assert!(point.reads == point.operations && point.write.is_none()),
            0.0 => assert!(point.reads == 0 && point.read.is_none()),
            _ => assert!(point.reads <= point.operations),
        }
        let longest = point.read.iter().chain(&point.write).map(TierLatency::longest_us).fold(0.0, f64::max);
        assert!((0.0..=longest).contains(&point.busy_us), "{point:?}");
        assert!((0.0..=f64::from(point.depth)).contains(&point.ended_at_once), "{point:?}");
        assert!(point.busy_us > 0.0 || point.reads == 0, "reading takes a thread's time: {point:?}");
        for latency in point.read.iter().chain(&point.write) {
            assert!(latency.quantiles_us.is_sorted() && latency.quantiles_us[0] > 0.0);
            let longest = latency.quantiles_us[latency.quantiles_us.len() - 1];
            assert!(latency.device_mean_us <= latency.mean_us && latency.mean_us <= longest);
        }
    }
    let course = probed.sustained.as_ref().unwrap();
    assert_eq!((course.bytes, course.depth), (LARGE, 3), "the size nearest to a piece, the deepest queue");
    assert!(course.course_bytes_per_second.iter().sum::<f64>() > 0.0);
}

/// Broken by: a point that is left out, counts what it did not do, or leaves its files.
#[test]
fn points_add_up_in_memory_and_on_a_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let on_files = plan("buffered", folder.path());
    let in_memory = plan("memory", Path::new(""));
    for plan in [&on_files, &in_memory] {
        let stop = AtomicBool::new(false);
        let mut seen = 0;
        let probed = probe(plan, ProbeObserver { stop: &stop, measured: &mut || seen += 1 }).unwrap();
        assert_eq!(seen, plan.steps(), "{}", plan.backend);
        check(plan, &probed);
    }
    assert_eq!(names(folder.path()).len(), 0);
}

/// Broken by: a deeper queue than asked for, or one that is never filled.
#[test]
fn as_much_is_in_flight_as_asked_for_and_no_more() {
    for (depth, threads) in [(1, 1), (4, 1), (5, 2), (1, 2)] {
        let count = Arc::new(Count::default());
        let limits = Limits { latency: Duration::from_micros(200), ..Limits::default() };
        let counted: Arc<dyn Backend> = Arc::new(Counted {
            inner: wrap(memory(), limits),
            count: Arc::clone(&count),
            nap: Duration::ZERO,
        });
        let whole = plan("memory", Path::new(""));
        let plan = ProbePlan { sizes: vec![SMALL], depths: vec![depth], threads, ..whole };
        probed_on(counted, &plan);
        assert_eq!(count.most.load(Ordering::Relaxed), depth as isize, "{threads} threads");
    }
}

/// Broken by: a latency that leaves out the device, or a bandwidth that counts what had not ended.
#[test]
fn what_a_device_takes_is_in_the_numbers() {
    let latency = Duration::from_millis(2);
    let limits = Limits { latency, ..Limits::default() };
    let whole = plan("memory", Path::new(""));
    let plan = ProbePlan { sizes: vec![SMALL], sustained_seconds: 0.0, ..whole };
    let probed = probed_on(wrap(memory(), limits), &plan);
    assert_eq!(probed.sustained, None);
    let least_us = latency.as_secs_f64() * 1e6;
    for point in &probed.points {
        for seen in point.read.iter().chain(&point.write) {
            assert!(seen.quantiles_us[0] >= least_us && seen.device_mean_us >= least_us, "{seen:?}");
        }
        let most = f64::from(point.depth) * (point.seconds / latency.as_secs_f64() + 1.0);
        assert!(point.operations as f64 <= most, "{point:?}");
    }
}

/// Broken by: ends that are counted by pieces or rounds of the queue, and sleep that is not seen.
#[test]
fn ends_that_come_at_once_are_told_from_those_that_come_one_by_one() {
    let whole = plan("memory", Path::new(""));
    let plan = ProbePlan {
        sizes: vec![LARGE],
        depths: vec![3],
        read_shares: vec![1.0],
        working_set_bytes: 64 << 20,
        sustained_seconds: 0.0,
        seconds_per_point: 0.2,
        ..whole
    };
    let nap = Duration::from_millis(5);
    let together = Counted { inner: memory(), count: Arc::default(), nap };
    let bandwidth = Bandwidth::Shared(Some(LARGE as f64 / nap.as_nanos() as f64));
    let apart = wrap(memory(), Limits { bandwidth, ..Limits::default() });
    let point = |backend| probed_on(backend, &plan).points.remove(0);
    let (together, apart) = (point(Arc::new(together)), point(apart));
    assert!(together.ended_at_once > 2.5, "{together:?}");
    assert!((1.0..2.0).contains(&apart.ended_at_once), "{apart:?}");
}

/// Broken by: a latency without the wait for a place at the device. What is in flight for a while is that
/// many times as long as it takes, by Little's law; operations that began before the window count whole, so
/// it is met but for a round.
#[test]
fn waiting_is_in_the_numbers() {
    let latency = Duration::from_millis(1);
    let whole = plan("memory", Path::new(""));
    // Forty operations of two pieces each, and forty pieces at the device.
    let plan = ProbePlan { sizes: vec![LARGE], depths: vec![40], read_shares: vec![1.0], ..whole };
    let plan = ProbePlan {
        working_set_bytes: plan.least_bytes(),
        sustained_seconds: 0.0,
        seconds_per_point: 0.2,
        ..plan
    };
    let probed = probed_on(wrap(memory(), Limits { latency, ..Limits::default() }), &plan);
    let point = &probed.points[0];
    let waited = point.read.as_ref().unwrap().mean_us * point.operations as f64 / 1e6;
    let in_flight = f64::from(point.depth) * point.seconds;
    assert!(waited > 0.6 * in_flight && waited < 1.8 * in_flight, "{waited} of {in_flight}: {point:?}");
}

/// Broken by: points with too much in flight, or sizes that only they would need room for.
#[test]
fn what_is_too_much_in_flight_is_left_out() {
    let whole = plan("memory", Path::new(""));
    let plan = ProbePlan { in_flight_bytes_max: 2 * LARGE, ..whole.clone() };
    assert_eq!((plan.points(), plan.left_out()), (15, 5));
    assert!(plan.least_bytes() < whole.least_bytes() && plan.room_bytes() < whole.room_bytes());
    let depths = plan.loads().into_iter().map(|load| (load.bytes, load.depth));
    assert!(depths.filter(|(bytes, _)| *bytes == LARGE).all(|(_, depth)| depth == 1));
}

/// Broken by: threads that write the same entry, whose writes are then none.
#[test]
fn threads_do_not_meet_at_an_entry() {
    let whole = plan("memory", Path::new(""));
    let plan = ProbePlan { threads: 3, depths: vec![3, 7], ..whole };
    let plan = ProbePlan { working_set_bytes: plan.least_bytes(), ..plan };
    let probed = probed_on(memory(), &plan);
    assert_eq!(probed.points.len(), plan.points());
    for bytes in plan.sizes.iter().copied() {
        let half = plan.half(bytes);
        assert!(
            half >= 9,
            "three threads, with one entry more than the three or less that each has in flight"
        );
    }
}

/// Broken by: a stop that loses what was measured, calls the rest whole, or leaves its files.
#[test]
fn what_was_measured_before_a_stop_stays() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("buffered", folder.path());
    let stop = AtomicBool::new(false);
    let mut seen = 0;
    let mut measured = || {
        seen += 1;
        stop.store(seen == 2, Ordering::Relaxed);
    };
    let probed = probe(&plan, ProbeObserver { stop: &stop, measured: &mut measured }).unwrap();
    assert!(probed.partial);
    assert_eq!(probed.points.len(), 2);
    assert_eq!(names(folder.path()).len(), 0);
}

/// Broken by: measuring in, and then clearing, a store of somebody else.
#[test]
fn a_store_with_entries_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("buffered", folder.path());
    let site = Site { location: plan.location.clone(), ..Site::default() };
    let eviction = (eviction::policy("lru").unwrap().build)(&Settings::default()).unwrap();
    let backend = backends::open("buffered", &site).unwrap();
    let store =
        Store::open(vec![Tier { backend, capacity_bytes: None, eviction }], Rules::default()).unwrap();
    let mut lane = store.lane(4).unwrap();
    let set = WorkingSet::of(SMALL, &plan);
    let mut part = set.part(0.0, (0, 1), 0);
    for _ in 0..4 {
        part.fill(&mut lane, &(0..4));
        lane.wait().unwrap();
    }
    let before = store.len();
    drop((lane, store));
    let files = names(folder.path()).len();
    let stop = AtomicBool::new(false);
    let refused = probe(&plan, ProbeObserver { stop: &stop, measured: &mut || {} }).unwrap_err();
    assert!(refused.to_string().contains(&format!("{before} entries are there already")), "{refused}");
    assert_eq!(names(folder.path()).len(), files);
}

/// What is in flight at a backend, by all ports together.
#[derive(Default)]
struct Count {
    now: AtomicIsize,
    most: AtomicIsize,
}

struct Counted {
    inner: Arc<dyn Backend>,
    count: Arc<Count>,
    /// How long whoever waits sleeps before anything is told.
    nap: Duration,
}

struct CountedPort {
    inner: Box<dyn Port>,
    count: Arc<Count>,
    /// How many of them are of this port.
    own: usize,
    nap: Duration,
}

impl Backend for Counted {
    fn port(self: Arc<Self>, region: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>> {
        let inner = Arc::clone(&self.inner).port(region, depth)?;
        Ok(Box::new(CountedPort { inner, count: Arc::clone(&self.count), own: 0, nap: self.nap }))
    }
}

impl CountedPort {
    fn look(&mut self) {
        let own = self.inner.in_flight();
        // At once: another port must not see this one's twice.
        let more = own as isize - self.own as isize;
        let now = self.count.now.fetch_add(more, Ordering::Relaxed) + more;
        self.count.most.fetch_max(now, Ordering::Relaxed);
        self.own = own;
    }
}

impl Port for CountedPort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        self.inner.create(entry)
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, seal: Option<Seal>) {
        self.inner.write(held, piece, buffer, seal);
        self.look();
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        self.inner.commit(held)
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer) {
        self.inner.read(held, piece, buffer);
        self.look();
    }

    fn remove(&mut self, held: Arc<dyn Held>) -> io::Result<()> {
        self.inner.remove(held)
    }

    fn submit(&mut self) -> io::Result<()> {
        self.inner.submit()
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        if deadline.is_some() {
            std::thread::sleep(self.nap);
        }
        let reaped = self.inner.reap(deadline, done);
        self.look();
        reaped
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }
}
