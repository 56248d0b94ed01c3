//! Latencies by tier and operation, host and device apart, in histograms that can be added up.

use hdrhistogram::Histogram;
use wavetank_model::IoTimes;

/// What was done to an entry in a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Read for a caller.
    Read,
    /// Written for a caller.
    Write,
    /// Written because it fell from the tier above.
    Demote,
    /// Written because it rose from a tier below.
    Promote,
}

/// Every kind of work, in order.
pub(crate) const WORK: [Work; 4] = [Work::Read, Work::Write, Work::Demote, Work::Promote];

/// One kind of work in one tier.
#[derive(Clone, Debug)]
pub struct Gauge {
    /// How many operations.
    pub count: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Time in this process, in nanoseconds.
    pub host_ns: Histogram<u64>,
    /// Time at the device, in nanoseconds.
    pub device_ns: Histogram<u64>,
    /// From being asked for to the end, in nanoseconds.
    pub total_ns: Histogram<u64>,
}

/// Every kind of work in every tier.
#[derive(Clone, Debug)]
pub struct Meter {
    gauges: Vec<Gauge>,
}

/// An hour; what takes longer is recorded as that.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Three significant digits, in nanoseconds.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("sound bounds")
}

impl Meter {
    /// For `tiers` tiers.
    pub fn new(tiers: usize) -> Self {
        let gauge = || Gauge {
            count: 0,
            bytes: 0,
            host_ns: histogram(),
            device_ns: histogram(),
            total_ns: histogram(),
        };
        Self { gauges: (0..tiers * WORK.len()).map(|_| gauge()).collect() }
    }

    /// Counts one operation.
    pub fn record(&mut self, tier: u8, work: Work, bytes: u64, times: IoTimes) {
        let gauge = &mut self.gauges[usize::from(tier) * WORK.len() + work as usize];
        gauge.count += 1;
        gauge.bytes += bytes;
        gauge.host_ns.saturating_record(times.host.0);
        gauge.device_ns.saturating_record(times.device.0);
        gauge.total_ns.saturating_record(times.total.0);
    }

    /// One kind of work in one tier.
    pub fn gauge(&self, tier: u8, work: Work) -> &Gauge {
        &self.gauges[usize::from(tier) * WORK.len() + work as usize]
    }

    /// Adds what another thread counted.
    ///
    /// # Panics
    /// When it is of another number of tiers.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.gauges.len(), other.gauges.len(), "meters of one store");
        for (ours, theirs) in self.gauges.iter_mut().zip(&other.gauges) {
            ours.count += theirs.count;
            ours.bytes += theirs.bytes;
            for (ours, theirs) in [
                (&mut ours.host_ns, &theirs.host_ns),
                (&mut ours.device_ns, &theirs.device_ns),
                (&mut ours.total_ns, &theirs.total_ns),
            ] {
                ours.add(theirs).expect("histograms of the same bounds");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::Nanos;

    use super::*;

    fn times(device: u64) -> IoTimes {
        IoTimes { device: Nanos(device), total: Nanos(2 * device), ..IoTimes::default() }
    }

    #[test]
    fn two_threads_add_up_to_one() {
        let (mut whole, mut first, mut second) = (Meter::new(2), Meter::new(2), Meter::new(2));
        for value in 1..=1000u64 {
            let half = if value % 3 == 0 { &mut first } else { &mut second };
            for meter in [&mut whole, half] {
                meter.record((value % 2) as u8, Work::Read, value, times(value * 1000));
            }
        }
        first.add(&second);
        for tier in 0..2 {
            let (one, two) = (whole.gauge(tier, Work::Read), first.gauge(tier, Work::Read));
            assert_eq!((one.count, one.bytes), (two.count, two.bytes));
            assert_eq!((&one.device_ns, &one.total_ns), (&two.device_ns, &two.total_ns));
        }
        assert_eq!(first.gauge(0, Work::Write).count, 0);
        let p95 = first.gauge(0, Work::Read).device_ns.value_at_quantile(0.95);
        assert!((940_000..=960_000).contains(&p95), "values are not cut: {p95}");
    }
}
