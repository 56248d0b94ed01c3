//! Commands that read values.

use std::sync::Arc;

use wavetank_calls::{Got, Object};

use super::{Call, Outcome, Reply, conclude, error, not_a_number, number, set};
use crate::resp::mailbox::Letter;
use crate::resp::outbox::COPIED_BYTES;
use crate::resp::session::{Found, Purpose, Told, Wait};

/// `GET key`.
pub(super) fn get(call: &mut Call<'_>) -> Outcome {
    match find(call, 1)? {
        Found::Coming => {
            wait(call, vec![Found::Coming], Purpose::Whole);
        }
        found => give(call, &found),
    }
    Ok(())
}

/// `MGET key [key …]`.
pub(super) fn mget(call: &mut Call<'_>) -> Outcome {
    call.check_keys(1)?;
    let found = (1..call.args.len()).map(|index| find(call, index)).collect::<Result<Vec<_>, _>>()?;
    if found.iter().any(|found| matches!(found, Found::Coming)) {
        wait(call, found, Purpose::Each);
        return Ok(());
    }
    give_each(call, &found)
}

/// `GETRANGE key start end`.
pub(super) fn getrange(call: &mut Call<'_>) -> Outcome {
    let bound = |index| number(call.args.bytes(index)).ok_or_else(not_a_number);
    let (first, last) = (bound(2)?, bound(3)?);
    match find(call, 1)? {
        Found::Coming => {
            wait(call, vec![Found::Coming], Purpose::Range(first, last));
        }
        found => give_range(call, &found, (first, last)),
    }
    Ok(())
}

/// Where the object of a key is. One that this client saw is not kept for it any longer.
pub(super) fn find(call: &mut Call<'_>, index: usize) -> Result<Found, super::Refusal> {
    let key = call.key(index)?;
    let found = match call.desk.shared.cache.storage.get(key) {
        Got::Here(object) => Found::Here(object),
        Got::Behind => return Ok(Found::Coming),
        Got::Absent => Found::Absent,
    };
    call.desk.leases.end(call.session.id, call.args.bytes(index));
    Ok(found)
}

/// The connection waits for what is coming.
pub(super) fn wait(call: &mut Call<'_>, found: Vec<Found>, purpose: Purpose) {
    let ticket = call.desk.begin_wait(call.session.slot, call.session.id);
    let mut wait = Wait { ticket, found, coming: 0, purpose, command: call.command };
    for place in 0..wait.found.len() {
        if matches!(wait.found[place], Found::Coming) {
            bring(call, &mut wait, place);
        }
    }
    *call.wait = Some(wait);
}

fn bring(call: &mut Call<'_>, wait: &mut Wait, place: usize) {
    let (mailbox, ticket) = (Arc::clone(&call.desk.mailbox), wait.ticket);
    let then = move |object: Option<Arc<Object>>| {
        // Who is told at once was not even put in the queue.
        let otherwise = if mailbox.is_own() { Found::Refused } else { Found::Lost };
        mailbox.post(Letter::Brought(ticket, place, object.map_or(otherwise, Found::Brought)));
    };
    let name = call.args.bytes(1 + place);
    call.desk.shared.cache.storage.fetch(name, Box::new(then));
    // From here on the fetch keeps it.
    call.desk.leases.end(call.session.id, name);
    wait.coming += 1;
}

/// What a command waited for has come or will not. What was refused is asked for again in a while.
pub(crate) fn resume(call: &mut Call<'_>, wait: Wait) {
    if wait.found.iter().any(|found| matches!(found, Found::Refused)) {
        call.desk.begin_retry(wait.ticket);
        *call.wait = Some(wait);
    } else {
        finish(call, wait);
    }
}

/// Asks again for what was refused.
pub(crate) fn retry(call: &mut Call<'_>, mut wait: Wait) {
    for place in 0..wait.found.len() {
        if matches!(wait.found[place], Found::Refused) {
            // Somebody else may have brought it, or removed it.
            wait.found[place] = find(call, 1 + place).unwrap_or(Found::Absent);
            if matches!(wait.found[place], Found::Coming) {
                bring(call, &mut wait, place);
            }
        }
    }
    match wait.coming {
        0 => finish(call, wait),
        _ => *call.wait = Some(wait),
    }
}

/// Replies with what has come.
pub(crate) fn finish(call: &mut Call<'_>, wait: Wait) {
    call.command = wait.command;
    let found = wait.found;
    let one = found.first().unwrap_or(&Found::Absent);
    let outcome = match wait.purpose {
        Purpose::Whole => {
            give(call, one);
            Ok(())
        }
        Purpose::Each => give_each(call, &found),
        Purpose::Range(first, last) => {
            give_range(call, one, (first, last));
            Ok(())
        }
        Purpose::Replace(blank, manner) => set::replace(call, one.object().cloned(), (blank, manner)),
    };
    conclude(call, outcome);
}

fn give(call: &mut Call<'_>, found: &Found) {
    let bytes = count(call, found);
    match found.object() {
        Some(object) => {
            call.desk.tally.bytes_out += bytes;
            call.told.bytes += bytes;
            call.out.value(object, 0..object.len());
        }
        None => call.out.reply(&Reply::Nil),
    }
}

/// What a value takes in an outbox besides its bytes, about.
const AROUND_BYTES: u64 = 64;

/// A reply of many values, unless it takes more memory than a client may: small ones are copied.
fn give_each(call: &mut Call<'_>, found: &[Found]) -> Outcome {
    let copied = |found: &Found| found.object().map_or(0, |object| object.len()).min(COPIED_BYTES) as u64;
    let own: u64 = found.iter().map(|found| AROUND_BYTES + copied(found)).sum();
    if own > call.desk.shared.settings.connection_bytes {
        return Err(error("the reply is too large: ask for fewer keys at a time"));
    }
    call.out.reply(&Reply::Array(found.len()));
    found.iter().for_each(|found| give(call, found));
    Ok(())
}

fn give_range(call: &mut Call<'_>, found: &Found, (first, last): (i64, i64)) {
    count(call, found);
    let object: Option<&Arc<Object>> = found.object();
    let Some((object, range)) = object.and_then(|object| Some((object, range(object.len(), first, last)?)))
    else {
        return call.out.reply(&Reply::Bulk(b""));
    };
    call.desk.tally.bytes_out += range.len() as u64;
    call.told.bytes += range.len() as u64;
    call.out.value(object, range);
}

/// The part from `first` to `last`, both counted from the end if negative.
fn range(len: usize, first: i64, last: i64) -> Option<std::ops::Range<usize>> {
    let len = len as i64;
    if first < 0 && last < 0 && first > last {
        return None;
    }
    let place = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
    let (first, last) = (place(first), place(last).min(len - 1));
    (len > 0 && first <= last).then(|| first as usize..last as usize + 1)
}

/// Counts an answer; how many bytes the object has.
fn count(call: &mut Call<'_>, found: &Found) -> u64 {
    let tally = &mut call.desk.tally;
    tally.lookups += 1;
    match found {
        Found::Here(_) => tally.l1_hits += 1,
        Found::Brought(_) => tally.l2_hits += 1,
        Found::Coming | Found::Refused | Found::Lost => {
            tally.l2_failures += 1;
            tally.misses += 1;
        }
        Found::Absent => tally.misses += 1,
    }
    let hits = u32::from(found.object().is_some());
    call.told = Told { keys: call.told.keys + 1, hits: call.told.hits + hits, ..call.told };
    found.object().map_or(0, |object| object.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_redis() {
        for (first, last, expected) in [
            (0, 3, Some(0..4)),
            (-3, -1, Some(7..10)),
            (0, -1, Some(0..10)),
            (8, 100, Some(8..10)),
            (-100, 1, Some(0..2)),
            (-100, -100, Some(0..1)),
            (5, 3, None),
            (-1, -3, None),
            (10, 12, None),
            (i64::MIN, i64::MAX, Some(0..10)),
        ] {
            assert_eq!(range(10, first, last), expected, "{first} {last}");
        }
        assert_eq!(range(0, 0, -1), None);
    }
}
