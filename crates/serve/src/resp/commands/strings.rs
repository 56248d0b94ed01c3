//! Commands about keys that move no values.

use std::time::{Duration, SystemTime};

use super::{Call, Outcome, Reply, error, syntax};

/// `DEL key [key …]`, and `UNLINK`.
pub(super) fn del(call: &mut Call<'_>) -> Outcome {
    call.check_keys(1)?;
    let mut removed = 0;
    for key in call.args.iter(1) {
        removed += u64::from(call.desk.shared.cache.storage.remove(key));
        call.desk.leases.end(call.session.id, key);
    }
    call.desk.tally.removals += removed;
    call.told.keys += call.args.len() as u32 - 1;
    call.told.hits += removed as u32;
    call.integer(removed)
}

/// `EXISTS key [key …]`: what is there is leased to the client.
pub(super) fn exists(call: &mut Call<'_>) -> Outcome {
    call.check_keys(1)?;
    let mut there = 0;
    for key in call.args.iter(1) {
        let Some(bytes) = call.desk.shared.cache.storage.size(key) else { continue };
        there += 1;
        let desk = &mut *call.desk;
        let means = (&desk.mailbox, &mut desk.tally);
        desk.leases.begin((call.session.id, key), bytes, desk.now, means);
    }
    call.told.keys += call.args.len() as u32 - 1;
    call.told.hits += there as u32;
    call.integer(there)
}

/// `STRLEN key`.
pub(super) fn strlen(call: &mut Call<'_>) -> Outcome {
    let bytes = call.desk.shared.cache.storage.size(call.key(1)?);
    call.told.keys += 1;
    call.told.hits += u32::from(bytes.is_some());
    call.integer(bytes.unwrap_or(0))
}

/// `TTL key`: seconds, the nearest number of them.
pub(super) fn ttl(call: &mut Call<'_>) -> Outcome {
    stays(call, |left| (left.as_millis() + 500) / 1000)
}

/// `PTTL key`: milliseconds.
pub(super) fn pttl(call: &mut Call<'_>) -> Outcome {
    stays(call, |left| left.as_millis())
}

/// How long a key stays, as `count` counts it; -1 for ever, and -2 where there is none.
fn stays(call: &mut Call<'_>, count: impl FnOnce(Duration) -> u128) -> Outcome {
    let until = call.desk.shared.cache.storage.expires(call.key(1)?);
    call.told.keys += 1;
    call.told.hits += u32::from(until.is_some());
    let told = match until {
        None => -2,
        Some(None) => -1,
        Some(Some(until)) => {
            let left = until.duration_since(SystemTime::now()).unwrap_or_default();
            i64::try_from(count(left)).unwrap_or(i64::MAX)
        }
    };
    call.reply(&Reply::Integer(told))
}

/// `DBSIZE`.
pub(super) fn dbsize(call: &mut Call<'_>) -> Outcome {
    let count = call.desk.shared.cache.storage.len();
    call.integer(count as u64)
}

/// `FLUSHALL [ASYNC | SYNC]`, and `FLUSHDB`.
pub(super) fn flush(call: &mut Call<'_>) -> Outcome {
    let is_known = call.args.len() == 1 || call.args.is(1, "ASYNC") || call.args.is(1, "SYNC");
    if call.args.len() > 2 || !is_known {
        return Err(syntax());
    }
    if !call.desk.shared.settings.is_flush_enabled {
        let name = call.command.0;
        return Err(error(format!("{name} is not enabled: clients may not remove every key of this server")));
    }
    call.desk.shared.cache.storage.clear();
    call.ok()
}
