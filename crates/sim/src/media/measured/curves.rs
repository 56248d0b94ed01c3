//! Mean latencies and their spread between the points that were measured.

use wavetank_model::{
    Error, Operation, Result, TIER_QUANTILES, TierAgain, TierLatency, TierPoint, TierProfile, TierRoom,
};

use super::super::{Before, Transfer};

/// Who else is at the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// Operations like this one that would be as many, itself included.
    pub(super) depth: f64,
    /// The share of reads among all.
    pub(super) read_share: f64,
    /// The share of those into new room among writes.
    pub(super) new_share: f64,
}

/// Everything that was measured.
pub(super) struct Curves {
    used: Mixes,
    /// Of writes into new room, and of reads beside them; of either nothing where it was not measured.
    new: Mixes,
    again: Vec<Again>,
}

/// What reads take of what was moved a moment ago, as a share of what they take otherwise; by how long ago it
/// was, which rises. Those with more repeats come later.
struct Again {
    after: Operation,
    repeats: u32,
    /// By bytes apart.
    shares: Vec<(f64, f64)>,
}

/// What was measured of reads and writes in each other's way; shares of reads rise.
#[derive(Default)]
struct Mixes {
    reads: Vec<Mix>,
    writes: Vec<Mix>,
}

/// One share of reads; they rise.
struct Mix {
    read_share: f64,
    sizes: Vec<Size>,
}

/// One size; they rise.
struct Size {
    bytes: u64,
    depths: Vec<Point>,
}

/// One depth; they rise.
struct Point {
    depth: f64,
    mean_ns: f64,
    /// How long one operation keeps who asked from anything else.
    busy_ns: f64,
    /// Latencies at [`TIER_QUANTILES`], over their mean.
    shape: [f64; TIER_QUANTILES.len()],
}

impl Curves {
    /// The curves of a sound profile; both operations must be there.
    pub(super) fn of(profile: &TierProfile) -> Result<Self> {
        let (mut used, mut new) = (Mixes::default(), Mixes::default());
        for point in &profile.points {
            let own = if point.room == TierRoom::New { &mut new } else { &mut used };
            point.read.iter().for_each(|latency| enter(&mut own.reads, point, latency));
            point.write.iter().for_each(|latency| enter(&mut own.writes, point, latency));
            // Beside nothing that is written, room is neither new nor used.
            let alone = point.read.iter().filter(|_| point.read_share == 1.0);
            alone.for_each(|latency| enter(&mut new.reads, point, latency));
        }
        for (what, mixes) in [("reads", &used.reads), ("writes", &used.writes)] {
            if mixes.is_empty() {
                return Err(Error::usage(format!("medium \"measured\": the profile has no {what}"))
                    .hint("wavetank profile tier measures both"));
            }
        }
        // Reads alone say nothing of what is beside them.
        if new.reads.iter().all(|mix| mix.read_share == 1.0) {
            new.reads.clear();
        }
        used.sort();
        new.sort();
        let mut curves = Self { used, new, again: Vec::new() };
        curves.again = profile.again.chunk_by(TierAgain::is_like).map(|seen| curves.again(seen)).collect();
        curves.again.sort_by_key(|again| again.repeats);
        Ok(curves)
    }

    /// What was seen of reads again of one kind, beside reads one at a time of anything.
    fn again(&self, seen: &[TierAgain]) -> Again {
        let alone = Beside { depth: 1.0, read_share: 1.0, new_share: 0.0 };
        let share = |seen: &TierAgain| {
            let usual_us = self.mean_ns(Operation::Read, seen.bytes, alone) / 1e3;
            (seen.apart_bytes as f64, seen.mean_us / usual_us)
        };
        Again { after: seen[0].after, repeats: seen[0].repeats, shares: seen.iter().map(share).collect() }
    }

    /// How far back it matters that something was moved.
    pub(super) fn remembers(&self) -> u64 {
        let apart = self.again.iter().flat_map(|again| &again.shares).map(|(apart, _)| *apart as u64);
        apart.max().unwrap_or(0)
    }

    /// What a read takes of what it would take if this had not been done before.
    fn share_again(&self, before: Before) -> f64 {
        let is_like = |again: &&Again| again.after == before.after && again.repeats <= before.repeats;
        let Some(Again { shares, .. }) = self.again.iter().rfind(is_like) else { return 1.0 };
        let apart = before.apart_bytes as f64;
        if apart > shares[shares.len() - 1].0 {
            return 1.0;
        }
        let (low, high, part) = between(shares, apart, |(apart, _)| *apart);
        blend(shares[low].1, shares[high].1, part)
    }

    /// The mean latency of an operation.
    pub(super) fn mean_ns(&self, operation: Operation, bytes: u64, beside: Beside) -> f64 {
        let at = |mixes: &Mixes| mixes.mean_ns(operation, bytes, beside);
        let used = at(&self.used);
        let new = if beside.new_share > 0.0 { at(&self.new) } else { used };
        let [used, new] = [used.or(new), new.or(used)].map(|ns| ns.expect("both were measured in used room"));
        blend(used, new, beside.new_share)
    }

    /// How long an operation beside others of its kind keeps who asked from anything else.
    pub(super) fn busy_ns(&self, transfer: Transfer, depth: f64) -> f64 {
        self.own(transfer).busy_ns(transfer.bytes, depth)
    }

    /// Operations like this one with nothing else beside them.
    fn own(&self, transfer: Transfer) -> &Mix {
        let reads = &self.used.reads;
        match (transfer.operation, self.new.writes.first()) {
            (Operation::Read, _) => &reads[reads.len() - 1],
            (Operation::Write, Some(new)) if transfer.room == TierRoom::New => new,
            (Operation::Write, _) => &self.used.writes[0],
        }
    }

    /// The latency of one operation over the mean, `chance` of the way through those that were seen nearest
    /// to its size and depth. Its mean over all chances is one; for what was moved a moment ago as much less
    /// as such reads took.
    pub(super) fn factor(&self, transfer: Transfer, depth: f64, chance: f64) -> f64 {
        let again = match transfer.operation {
            Operation::Read => transfer.before.map_or(1.0, |before| self.share_again(before)),
            Operation::Write => 1.0,
        };
        self.own(transfer).factor(transfer.bytes, depth, chance) * again
    }

    /// The highest bandwidth of operations of one size alone, at the depths that were measured.
    pub(super) fn peak_bytes_per_second(&self, operation: Operation, bytes: u64) -> f64 {
        let read_share = if operation == Operation::Read { 1.0 } else { 0.0 };
        let sizes =
            [&self.used, &self.new].into_iter().flat_map(|it| it.of(operation)).flat_map(|mix| &mix.sizes);
        let depths = sizes.flat_map(|size| size.depths.iter().map(|point| point.depth));
        let places =
            depths.flat_map(|depth| [0.0, 1.0].map(|new_share| Beside { depth, read_share, new_share }));
        let rate = |at: Beside| at.depth * bytes as f64 / self.mean_ns(operation, bytes, at) * 1e9;
        places.map(rate).fold(0.0, f64::max)
    }
}

impl Mixes {
    fn of(&self, operation: Operation) -> &[Mix] {
        match operation {
            Operation::Read => &self.reads,
            Operation::Write => &self.writes,
        }
    }

    fn sort(&mut self) {
        for mixes in [&mut self.reads, &mut self.writes] {
            mixes.sort_by(|a: &Mix, b| a.read_share.total_cmp(&b.read_share));
            for mix in mixes {
                mix.sizes.sort_by_key(|size| size.bytes);
                let depths = mix.sizes.iter_mut().map(|size| &mut size.depths);
                depths.for_each(|depths| depths.sort_by(|a, b| a.depth.total_cmp(&b.depth)));
            }
        }
    }

    /// The mean latency of an operation; `None` where nothing was measured.
    fn mean_ns(&self, operation: Operation, bytes: u64, beside: Beside) -> Option<f64> {
        let mixes = self.of(operation);
        if mixes.is_empty() {
            return None;
        }
        let (low, high, part) = between(mixes, beside.read_share, |mix| mix.read_share);
        let at = |mix: &Mix| mix.mean_ns(bytes, beside.depth);
        Some(blend(at(&mixes[low]), at(&mixes[high]), part))
    }
}

impl Mix {
    /// The latency of one operation over the mean.
    fn factor(&self, bytes: u64, depth: f64, chance: f64) -> f64 {
        let apart = |a: f64, b: f64| (a.max(1.0).ln() - b.max(1.0).ln()).abs();
        let size = self.sizes.iter().min_by(|a, b| {
            apart(a.bytes as f64, bytes as f64).total_cmp(&apart(b.bytes as f64, bytes as f64))
        });
        let depths = size.expect("a mix has sizes").depths.iter();
        let point = depths.min_by(|a, b| apart(a.depth, depth).total_cmp(&apart(b.depth, depth)));
        point.expect("a size has depths").quantile(chance)
    }

    fn mean_ns(&self, bytes: u64, depth: f64) -> f64 {
        self.of_size(bytes, |size| size.mean_ns(depth))
    }

    fn busy_ns(&self, bytes: u64, depth: f64) -> f64 {
        self.of_size(bytes, |size| size.busy_ns(depth))
    }

    /// Between sizes on a logarithmic scale; what is longer than all takes longer by as much, what is shorter
    /// as long as the shortest.
    fn of_size(&self, bytes: u64, time_ns: impl Fn(&Size) -> f64) -> f64 {
        let wanted = (bytes as f64).max(1.0).ln();
        let (low, high, part) = between(&self.sizes, wanted, |size| (size.bytes as f64).ln());
        let last = &self.sizes[self.sizes.len() - 1];
        if bytes > last.bytes {
            return time_ns(last) * bytes as f64 / last.bytes as f64;
        }
        let [low, high] = [low, high].map(|at| time_ns(&self.sizes[at]).max(f64::MIN_POSITIVE).ln());
        blend(low, high, part).exp()
    }
}

impl Size {
    /// Between depths in proportion; with more than were measured the bandwidth stays.
    fn mean_ns(&self, depth: f64) -> f64 {
        let last = &self.depths[self.depths.len() - 1];
        if depth > last.depth {
            return last.mean_ns * depth / last.depth;
        }
        self.of_depth(depth, |point| point.mean_ns)
    }

    /// The same with more than were measured.
    fn busy_ns(&self, depth: f64) -> f64 {
        self.of_depth(depth, |point| point.busy_ns)
    }

    fn of_depth(&self, depth: f64, time_ns: impl Fn(&Point) -> f64) -> f64 {
        let (low, high, part) = between(&self.depths, depth, |point| point.depth);
        blend(time_ns(&self.depths[low]), time_ns(&self.depths[high]), part)
    }
}

impl Point {
    fn of(point: &TierPoint, latency: &TierLatency) -> Self {
        let seen = &latency.quantiles_us;
        let steps = TIER_QUANTILES.windows(2).zip(seen.windows(2));
        let area: f64 = steps.map(|(u, q)| (u[1] - u[0]) * (q[0] + q[1]) / 2.0).sum();
        // The draws are piecewise linear between quantiles: over their own mean, whose mean is one.
        let own_mean = area + TIER_QUANTILES[0] * seen[0];
        let shape = match own_mean > 0.0 {
            true => seen.map(|quantile| quantile / own_mean),
            false => [1.0; TIER_QUANTILES.len()],
        };
        Self {
            depth: f64::from(point.depth),
            mean_ns: (latency.mean_us * 1000.0).max(1.0),
            busy_ns: point.busy_us * 1000.0,
            shape,
        }
    }

    fn quantile(&self, chance: f64) -> f64 {
        let (low, high, part) = between(&TIER_QUANTILES, chance, |quantile| *quantile);
        blend(self.shape[low], self.shape[high], part)
    }
}

/// Puts what was measured at a point where it belongs.
fn enter(mixes: &mut Vec<Mix>, point: &TierPoint, latency: &TierLatency) {
    let &TierPoint { read_share, bytes, .. } = point;
    let index = mixes.iter().position(|mix| mix.read_share == read_share).unwrap_or_else(|| {
        mixes.push(Mix { read_share, sizes: Vec::new() });
        mixes.len() - 1
    });
    let sizes = &mut mixes[index].sizes;
    let index = sizes.iter().position(|size| size.bytes == bytes).unwrap_or_else(|| {
        sizes.push(Size { bytes, depths: Vec::new() });
        sizes.len() - 1
    });
    sizes[index].depths.push(Point::of(point, latency));
}

/// The neighbours of `wanted` in a rising list, and how far it is from the first to the second; at the ends
/// both are the last one there.
fn between<T>(list: &[T], wanted: f64, place: impl Fn(&T) -> f64) -> (usize, usize, f64) {
    let above = list.partition_point(|item| place(item) <= wanted);
    if above == 0 || above == list.len() {
        let end = above.min(list.len() - 1);
        return (end, end, 0.0);
    }
    let (low, high) = (place(&list[above - 1]), place(&list[above]));
    (above - 1, above, (wanted - low) / (high - low))
}

fn blend(low: f64, high: f64, part: f64) -> f64 {
    low + (high - low) * part
}
