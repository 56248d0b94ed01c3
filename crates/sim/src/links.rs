//! The links KV moves over. A transfer has its own bandwidth; transfers that share a link share what it can
//! carry in equal parts. Nothing is sent in no time, the first byte after the latency.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wavetank_model::{Nanos, WorkerId};

use crate::lane::{Lane, TransferId};
use crate::{Link, LinkScope};

/// What is sent, and between whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shipment {
    pub(crate) id: TransferId,
    pub(crate) bytes: u64,
    pub(crate) from: WorkerId,
    pub(crate) to: WorkerId,
}

/// Every transfer under way.
pub(crate) struct Links {
    link: Link,
    /// What one transfer can use at most; infinite where nothing is said.
    own_bytes_per_ms: f64,
    /// By lane: the transfers that share it.
    lanes: Vec<Lane>,
    /// Transfers that wait for their first byte.
    starting: BinaryHeap<Reverse<(Nanos, TransferId)>>,
    /// What they are.
    shipments: Vec<Shipment>,
    /// Transfers that share nothing, by their end.
    alone: BinaryHeap<Reverse<(Nanos, TransferId)>>,
}

impl Links {
    /// Links between `workers` workers.
    pub(crate) fn of(link: Link, own_gigabytes_per_second: f64, workers: u32) -> Self {
        let own = own_gigabytes_per_second * 1e6;
        let rate = link.shared.map_or(f64::INFINITY, |shared| shared.gigabytes_per_second * 1e6);
        let lanes = match link.shared.map(|shared| shared.scope) {
            None => 0,
            Some(LinkScope::Pool) => 1,
            Some(LinkScope::PrefillWorker | LinkScope::DecodeWorker) => workers,
        };
        let own_bytes_per_ms = if own > 0.0 { own } else { f64::INFINITY };
        Self {
            link,
            own_bytes_per_ms,
            lanes: (0..lanes).map(|_| Lane::of(rate, own_bytes_per_ms)).collect(),
            starting: BinaryHeap::new(),
            shipments: Vec::new(),
            alone: BinaryHeap::new(),
        }
    }

    /// There is one worker more.
    pub(crate) fn grow(&mut self) {
        let Some(shared) = self.link.shared.filter(|shared| shared.scope != LinkScope::Pool) else { return };
        self.lanes.push(Lane::of(shared.gigabytes_per_second * 1e6, self.own_bytes_per_ms));
    }

    /// Begins a transfer.
    pub(crate) fn send(&mut self, shipment: Shipment, now: Nanos) {
        let first_byte = now + self.link.latency;
        match self.link.shared {
            _ if shipment.bytes == 0 => self.alone.push(Reverse((now, shipment.id))),
            None => {
                let took = Nanos::from_ms(shipment.bytes as f64 / self.own_bytes_per_ms);
                self.alone.push(Reverse((first_byte + took, shipment.id)));
            }
            Some(_) => {
                self.starting.push(Reverse((first_byte, shipment.id)));
                self.shipments.push(shipment);
            }
        }
    }

    /// When the next thing happens to a transfer.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let ends = self.lanes.iter().filter_map(Lane::next_end);
        let start = self.starting.peek().map(|&Reverse((at, _))| at);
        let alone = self.alone.peek().map(|&Reverse((at, _))| at);
        ends.chain(start).chain(alone).min()
    }

    /// The next transfer that has ended by `now`, with its end.
    pub(crate) fn receive(&mut self, now: Nanos) -> Option<TransferId> {
        loop {
            let at = self.next().filter(|&at| at <= now)?;
            if let Some(&Reverse((end, id))) = self.alone.peek()
                && end == at
            {
                self.alone.pop();
                return Some(id);
            }
            if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.next_end() == Some(at)) {
                return lane.end_next(at);
            }
            let Reverse((_, id)) = self.starting.pop().expect("nothing else happens to a transfer");
            self.join(id, at);
        }
    }

    /// The first byte of a transfer enters its lane.
    fn join(&mut self, id: TransferId, now: Nanos) {
        let position =
            self.shipments.iter().position(|shipment| shipment.id == id).expect("it was being sent");
        let Shipment { bytes, from, to, .. } = self.shipments.swap_remove(position);
        let lane = match self.link.shared.map(|shared| shared.scope) {
            Some(LinkScope::PrefillWorker) => from.index(),
            Some(LinkScope::DecodeWorker) => to.index(),
            Some(LinkScope::Pool) | None => 0,
        };
        self.lanes[lane].join(id, 1, bytes, now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SharedLink;

    fn shared(gigabytes_per_second: f64, scope: LinkScope) -> Link {
        Link { shared: Some(SharedLink { gigabytes_per_second, scope }), latency: Nanos::ZERO }
    }

    fn shipment(id: TransferId, bytes: u64, from: u32, to: u32) -> Shipment {
        Shipment { id, bytes, from: WorkerId(from), to: WorkerId(to) }
    }

    /// Runs to the end; the ends in order.
    fn drain(links: &mut Links) -> Vec<(TransferId, Nanos)> {
        let mut ends = Vec::new();
        while let Some(at) = links.next() {
            while let Some(id) = links.receive(at) {
                ends.push((id, at));
            }
        }
        ends
    }

    #[test]
    fn two_on_one_link_take_as_long_as_their_bytes_together() {
        // 1 GB/s: a byte takes a nanosecond.
        let mut links = Links::of(shared(1.0, LinkScope::Pool), 0.0, 4);
        links.send(shipment(0, 1000, 0, 2), Nanos::ZERO);
        links.send(shipment(1, 3000, 1, 3), Nanos::ZERO);
        assert_eq!(drain(&mut links), [(0, Nanos(2000)), (1, Nanos(4000))]);
        // Apart, they do not meet.
        let mut links = Links::of(shared(1.0, LinkScope::DecodeWorker), 0.0, 4);
        links.send(shipment(0, 1000, 0, 2), Nanos::ZERO);
        links.send(shipment(1, 3000, 0, 3), Nanos::ZERO);
        assert_eq!(drain(&mut links), [(0, Nanos(1000)), (1, Nanos(3000))]);
    }

    #[test]
    fn one_that_comes_later_slows_the_other_from_then_on() {
        let mut links = Links::of(shared(1.0, LinkScope::PrefillWorker), 0.0, 4);
        links.send(shipment(0, 1000, 0, 2), Nanos::ZERO);
        assert_eq!(links.receive(Nanos(600)), None);
        links.send(shipment(1, 5000, 0, 3), Nanos(600));
        // 400 bytes left at half speed, then 4600 alone.
        assert_eq!(drain(&mut links), [(0, Nanos(1400)), (1, Nanos(6000))]);
    }

    #[test]
    fn the_first_byte_takes_the_latency_and_nothing_takes_nothing() {
        for link in [shared(1.0, LinkScope::Pool), Link::default()] {
            let mut links = Links::of(Link { latency: Nanos(50), ..link }, 1.0, 2);
            links.send(shipment(0, 100, 0, 1), Nanos::ZERO);
            links.send(shipment(1, 0, 0, 1), Nanos::ZERO);
            assert_eq!(drain(&mut links), [(1, Nanos::ZERO), (0, Nanos(150))]);
        }
    }

    #[test]
    fn a_transfer_is_no_faster_than_its_own_bandwidth() {
        let mut links = Links::of(shared(10.0, LinkScope::Pool), 1.0, 2);
        for id in 0..2 {
            links.send(shipment(id, 1000, 0, 1), Nanos::ZERO);
        }
        assert_eq!(drain(&mut links), [(0, Nanos(1000)), (1, Nanos(1000))]);
    }

    proptest! {
        /// A link that is never idle carries its bytes in exactly their time, whoever shares it. Serving one
        /// transfer twice, or forgetting to divide by the number of transfers, breaks it.
        #[test]
        fn a_busy_link_wastes_nothing(sends in proptest::collection::vec((1u64..100_000, 0u64..500), 1..40)) {
            let mut links = Links::of(shared(1.0, LinkScope::Pool), 0.0, 2);
            let (mut now, mut busy_until, mut received) = (Nanos::ZERO, 0u64, 0);
            for (id, &(bytes, gap)) in (0..).zip(&sends) {
                now += Nanos(gap.min(busy_until.saturating_sub(now.0)));
                while links.receive(now).is_some() {
                    received += 1;
                }
                links.send(shipment(id, bytes, 0, 1), now);
                busy_until += bytes;
            }
            let ends = drain(&mut links);
            prop_assert_eq!(received + ends.len(), sends.len());
            let last = ends.last().expect("the last one sent ends last or later").1.0;
            prop_assert!(last.abs_diff(busy_until) <= 2, "{last} {busy_until}");
        }
    }
}
