//! Logs of a storage benchmark's operations, CSV.

use std::sync::Arc;

use wavetank_model::{KeyTable, Nanos, Result};
use wavetank_trace::calls::{self, Call};
use wavetank_trace::{Input, Output};

use super::{Entry, inputs};
use crate::said::{Met, refused};
use crate::texts;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "operations",
    about: "logs of a storage benchmark's operations",
    samples: &[],
    seeds: || {
        inputs(&[
            "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n\
             1760000000.000001,Write,65536,Tier-1,user_1,Prefill\n\
             1760000000.250000,Read,65536,Tier-1,\"user,1\",Decode\n\
             1760000001.0000088888,Delete,65536,Tier-1,\"a \"\"b\"\"\",Evict\n\
             1760000001.000000,Write,0,Tier-255,,Both\n",
            "Key,Phase,Tier,Object_Size_Bytes,Operation,Timestamp,More\r\nk,Both,Tier-0,1,Read,0.1,x\r\n",
            "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n",
        ])
    },
    changed: texts::changed,
    check,
    most_memory: 128 << 20,
};

const FORMAT: &str = "mlperf-csv";

/// What was read, written and read again is the same; times are written to the microsecond.
fn check(bytes: &[u8]) -> Met {
    let mut calls = match read(bytes) {
        Ok(calls) => calls,
        Err(error) => return refused(&error, "<memory>"),
    };
    for call in &mut calls {
        if let Call::Tier(call) = call {
            call.at = Nanos((call.at.0 + 500) / 1000 * 1000);
        }
    }
    let mut copy = Vec::new();
    let mut writer = calls::write(FORMAT, Output::to(&mut copy)).expect("memory takes every byte");
    for call in &calls {
        writer.write(call, &KeyTable::default()).expect("what was read can be written");
    }
    writer.finish().expect("memory takes every byte");
    let again = read(&copy).expect("what is written is a log");
    assert!(again == calls, "{again:?} is not {calls:?}");
    Met::Read(format!("{:?}", calls.len().checked_ilog2()))
}

fn read(bytes: &[u8]) -> Result<Vec<Call>> {
    calls::read(FORMAT, &Input::Bytes(Arc::from(bytes)))?.collect()
}
