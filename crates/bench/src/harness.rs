//! What the harness itself costs: the same operations with nothing behind them.

use std::time::{Duration, Instant};

use serde::Serialize;
use wavetank_model::{Error, Result};
use wavetank_store::{Existing, Key, Lane, Payload, Put, Want};

use crate::plan::{Plan, TierPlan, Time};
use crate::stack;

/// What one I/O thread can make, sum and hand over, and take back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Harness {
    /// GiB of entries written per second.
    pub write_gbps_per_thread: f64,
    /// GiB of entries read per second.
    pub read_gbps_per_thread: f64,
    /// Microseconds of an operation besides its bytes.
    pub operation_us: f64,
}

/// How long each is measured.
const SPAN: Duration = Duration::from_millis(20);
const LARGE: u64 = 8 << 20;
const SMALL: u64 = 4096;

impl Harness {
    /// Measures it, on a `null` tier.
    pub fn measure(plan: &Plan) -> Result<Self> {
        let Some(last) = plan.tiers.last() else { return Err(Error::usage("there is no tier")) };
        let null = TierPlan {
            backend: "null".to_owned(),
            location: String::new(),
            capacity_bytes: Some(64 * LARGE),
            options: Default::default(),
            ..last.clone()
        };
        let store =
            stack::open(&Plan { tiers: vec![null], verify: false, time: Time::Wall, ..plan.clone() }, None)?;
        let told = |error| Error::usage(format!("cannot open a queue: {error}"));
        let mut lane = store.lane(plan.io_depth as usize).map_err(told)?;
        let gib = |rate: f64| rate * LARGE as f64 / (1u64 << 30) as f64;
        // The first round touches memory for the first time.
        rate(&mut lane, |lane, number| put(lane, number % 64, LARGE));
        let written = rate(&mut lane, |lane, number| put(lane, number % 64, LARGE));
        let read = rate(&mut lane, |lane, number| {
            lane.get(key(number % 32), Want::Nothing);
        });
        let small = rate(&mut lane, |lane, number| put(lane, 1000 + number % 64, SMALL));
        Ok(Self {
            write_gbps_per_thread: gib(written),
            read_gbps_per_thread: gib(read),
            operation_us: 1e6 / small,
        })
    }
}

/// Operations per second, a few at a time.
fn rate(lane: &mut Lane, ask: impl Fn(&mut Lane, u64)) -> f64 {
    let (start, mut number) = (Instant::now(), 0);
    while start.elapsed() < SPAN || number == 0 {
        for _ in 0..8 {
            ask(lane, number);
            number += 1;
        }
        while lane.wait().is_some() {}
    }
    number as f64 / start.elapsed().as_secs_f64()
}

fn key(number: u64) -> Key {
    Key::new(number.to_le_bytes().as_slice())
}

fn put(lane: &mut Lane, number: u64, bytes: u64) {
    let payload = Payload::Seeded { seed: number, bytes };
    lane.put(Put { key: key(number), payload, tenant: 0, existing: Existing::Replace });
}
