//! Commands that write values.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use wavetank_calls::{Blank, Object, Only, SetManner};
use wavetank_model::Fate;

use super::lookup::{find, wait};
use super::{Args, Call, Outcome, Refusal, Reply, error, not_a_number, number, syntax, wrong_count};
use crate::resp::session::{Found, Purpose};

/// What `SET` was told besides key and value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Options {
    manner: SetManner,
    /// Whether the client wants what was there before.
    wants_before: bool,
}

/// What a client is told whose value has no place.
pub(in crate::resp) fn no_room() -> Refusal {
    ("OOM", "command not allowed when used memory > 'maxmemory'.".into())
}

/// `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds]`.
pub(super) fn set(call: &mut Call<'_>) -> Outcome {
    let options = options(&call.args)?;
    call.key(1)?;
    let blank = value(call, 2)?;
    if !options.wants_before {
        return match write(call, call.args.bytes(1), blank, options.manner)?.fate {
            Fate::Done => call.ok(),
            _ => call.reply(&Reply::Nil),
        };
    }
    match find(call, 1)? {
        Found::Coming => {
            wait(call, vec![Found::Coming], Purpose::Replace(blank, options.manner));
            Ok(())
        }
        found => replace(call, found.object().cloned(), (blank, options.manner)),
    }
}

/// Writes, and replies with what was there before.
pub(super) fn replace(
    call: &mut Call<'_>,
    seen: Option<Arc<Object>>,
    (blank, manner): (Blank, SetManner),
) -> Outcome {
    let set = write(call, call.args.bytes(1), blank, manner)?;
    // Memory may have let it go in between.
    match set.before.or(seen) {
        Some(before) => call.out.value(&before, 0..before.len()),
        None => call.out.reply(&Reply::Nil),
    }
    Ok(())
}

/// `MSET key value [key value …]`.
pub(super) fn mset(call: &mut Call<'_>) -> Outcome {
    if call.args.len().is_multiple_of(2) {
        return Err(wrong_count("mset"));
    }
    call.check_keys(2)?;
    // All or nothing: every value has room before the first is written.
    let blanks = (2..call.args.len()).step_by(2).map(|index| value(call, index));
    let blanks = blanks.collect::<Result<Vec<Blank>, _>>()?;
    for (blank, index) in blanks.into_iter().zip((1..).step_by(2)) {
        write(call, call.args.bytes(index), blank, SetManner::default())?;
    }
    call.ok()
}

/// A value in room of its own: it is there already, or copied from the inbox.
fn value(call: &mut Call<'_>, index: usize) -> Result<Blank, Refusal> {
    if call.args.is_elsewhere(index) {
        // Those that were announced come in the order of the arguments.
        return Ok(call.values.pop_front().expect("what was announced has come"));
    }
    let bytes = call.args.bytes(index);
    let Some(mut blank) = call.desk.shared.cache.storage.room(bytes.len() as u64) else {
        call.desk.tally.refused_stores += 1;
        return Err(no_room());
    };
    blank.bytes_mut().copy_from_slice(bytes);
    Ok(blank)
}

fn write(
    call: &mut Call<'_>,
    name: &[u8],
    mut blank: Blank,
    manner: SetManner,
) -> Result<wavetank_calls::Set, Refusal> {
    let bytes = blank.bytes_mut().len() as u64;
    let set = call.desk.shared.cache.storage.set(name, blank, manner);
    let is_done = set.fate == Fate::Done;
    call.told.keys += 1;
    call.told.hits += u32::from(is_done);
    match set.fate {
        Fate::Done => {
            call.desk.tally.stores += 1;
            call.desk.tally.bytes_in += bytes;
            call.told.bytes += bytes;
        }
        Fate::Resident | Fate::Absent => {}
        _ => {
            call.desk.tally.refused_stores += 1;
            return Err(no_room());
        }
    }
    Ok(set)
}

fn options(args: &Args<'_>) -> Result<Options, Refusal> {
    let mut options = Options::default();
    let (mut at, mut time) = (3, None);
    while at < args.len() {
        if args.is(at, "NX") && options.manner.only != Only::Present {
            options.manner.only = Only::Absent;
        } else if args.is(at, "XX") && options.manner.only != Only::Absent {
            options.manner.only = Only::Present;
        } else if args.is(at, "GET") {
            options.wants_before = true;
        } else if let Some(unit) = unit(args, at)
            && time.is_none()
            && at + 1 < args.len()
        {
            time = Some((args.bytes(at + 1), unit));
            at += 1;
        } else {
            return Err(syntax());
        }
        at += 1;
    }
    // Only when all words are understood: an unknown one is the worse mistake.
    options.manner.expires = time.map(|(text, unit)| deadline(text, unit)).transpose()?;
    Ok(options)
}

/// Milliseconds of what a time is given in.
fn unit(args: &Args<'_>, index: usize) -> Option<i64> {
    [("EX", 1000), ("PX", 1)].into_iter().find_map(|(word, unit)| args.is(index, word).then_some(unit))
}

fn deadline(text: &[u8], unit: i64) -> Result<SystemTime, Refusal> {
    let count = number(text).ok_or_else(not_a_number)?;
    let millis = count.checked_mul(unit).filter(|millis| *millis > 0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Other servers count milliseconds since 1970 in 63 bits.
    let end = millis.and_then(|millis| millis.checked_add(since.as_millis() as i64));
    let end = end.map(|end| SystemTime::UNIX_EPOCH + Duration::from_millis(end.unsigned_abs()));
    end.ok_or_else(|| error("invalid expire time in 'set' command"))
}
