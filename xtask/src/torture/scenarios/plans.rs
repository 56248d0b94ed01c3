//! `plans`: drawn plans through `replay`, each in several ways that must agree: again, from its own report,
//! in a sweep with one thread and several; and things that must not matter. What is counted adds up.

mod flags;
mod identity;

use serde_json::{Map, Value};

use super::Entry;
use crate::torture::round::{Round, ensure, words};
use flags::{Flags, Wanted};

pub(super) const ENTRY: Entry =
    Entry { name: "plans", about: "drawn plans replayed in several ways that must agree", run };

/// Plans of a round.
const PLANS: u64 = 12;
/// Of each identity.
const IDENTITIES: u64 = 3;
/// Seeds of a sweep.
const SEEDS: u64 = 3;

fn run(round: &mut Round) -> Result<(), String> {
    for _ in 0..PLANS {
        plan(round)?;
    }
    for _ in 0..IDENTITIES {
        identity::routers(round)?;
        identity::tier(round)?;
        identity::scaler(round)?;
        identity::live(round)?;
    }
    Ok(())
}

/// One plan in every way.
fn plan(round: &mut Round) -> Result<(), String> {
    let flags = flags::drawn(round, Wanted::Any)?;
    let report = replay(round, &flags, "a")?;
    adds_up(round, &report, flags.requests(round)?).map_err(|problem| format!("{problem}\n  {flags:?}"))?;
    round.cases += 1;
    let again = replay(round, &flags, "b")?;
    is_same(&report, &again, || format!("the same plan again: {flags:?}"))?;
    ensure(round.read("a.jsonl")? == round.read("b.jsonl")?, || format!("requests differ: {flags:?}"))?;
    round.done(&words("replay --plan a.json --report-json c.json"))?;
    is_same(&report, &round.json("c.json")?, || format!("the plan of the report: {flags:?}"))?;
    if round.draw.chance(1, 3) {
        sweep(round, &flags, &report)?;
    }
    Ok(())
}

/// Replays into `NAME.json` and `NAME.jsonl`, and gives the report.
fn replay(round: &mut Round, flags: &Flags, name: &str) -> Result<Value, String> {
    let files = [("--report-json", "json"), ("--per-request-jsonl", "jsonl")];
    let files = files.iter().flat_map(|(flag, ending)| [(*flag).to_owned(), format!("{name}.{ending}")]);
    round.done(&flags.words().into_iter().chain(files).collect::<Vec<_>>())?;
    round.json(&format!("{name}.json"))
}

/// The lines of `NAME.jsonl`, without these keys.
fn requests(round: &Round, name: &str, without: &[&str]) -> Result<Vec<Value>, String> {
    let text = round.read(&format!("{name}.jsonl"))?;
    let rows = text.lines().map(serde_json::from_str).collect::<Result<Vec<Map<String, Value>>, _>>();
    let mut rows = rows.map_err(|e| format!("{name}.jsonl: {e}"))?;
    rows.iter_mut().for_each(|row| row.retain(|key, _| !without.contains(&key.as_str())));
    Ok(rows.into_iter().map(Value::Object).collect())
}

/// Two reports that differ in nothing but how long they took.
fn is_same(one: &Value, other: &Value, what: impl FnOnce() -> String) -> Result<(), String> {
    let plain = |report: &Value| {
        let mut report = report.as_object().cloned().unwrap_or_default();
        report.remove("wall");
        report
    };
    let (one, other) = (plain(one), plain(other));
    let keys: Vec<&String> =
        one.keys().chain(other.keys()).filter(|key| one.get(*key) != other.get(*key)).collect();
    ensure(keys.is_empty(), || format!("{keys:?} differ: {}", what()))
}

/// Every one of so many requests is in one place, and every token was asked for by somebody.
fn adds_up(round: &Round, report: &Value, asked: u64) -> Result<(), String> {
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let rejected = report.pointer("/counts/rejected").and_then(Value::as_object);
    let rejected: u64 = rejected.into_iter().flat_map(Map::values).filter_map(Value::as_u64).sum();
    let (arrived, completed) = (number("/counts/arrived"), number("/counts/completed"));
    ensure(arrived == completed + rejected + number("/counts/in_flight"), || {
        format!("arrived is not completed, rejected and in flight: {}", report["counts"])
    })?;
    ensure(asked == arrived + number("/counts/never_arrived") && arrived == number("/num_requests"), || {
        format!("of {asked} requests not all arrived or did not: {}", report["counts"])
    })?;
    let rows = requests(round, "a", &[])?;
    let ended = |status: &str| rows.iter().filter(|row| row["terminal_status"] == status).count() as u64;
    ensure(ended("completed") == completed && ended("rejected") == rejected, || {
        format!("{} lines of ended requests, counts {}", rows.len(), report["counts"])
    })?;
    let done: Vec<&Value> = rows.iter().filter(|row| row["terminal_status"] == "completed").collect();
    let sum = |key: &str| done.iter().filter_map(|row| row[key].as_u64()).sum::<u64>();
    for (total, key) in [("/total_input_tokens", "input_length"), ("/total_output_tokens", "output_length")] {
        ensure(number(total) == sum(key), || {
            format!("{total} is {}, of requests {}", number(total), sum(key))
        })?;
    }
    let late = done.iter().find(|row| {
        let of = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let is_right = of("arrival_time_ms") <= of("first_token_ms")
            && of("first_token_ms") <= of("last_token_ms")
            && of("reused_input_tokens") <= of("input_length");
        !is_right
    });
    ensure(late.is_none(), || format!("a request whose times or tokens cannot be: {late:?}"))
}

/// Rows of a sweep: the same bytes whoever ran them, and the numbers of the report.
fn sweep(round: &mut Round, flags: &Flags, report: &Value) -> Result<(), String> {
    round.write("spec.toml", flags.sweep(SEEDS))?;
    for (threads, rows) in [(1, "one"), (3, "many")] {
        round.remove(&[&format!("{rows}.points.jsonl")]);
        let line = format!("sweep spec.toml --fresh --threads {threads} -o {rows}.csv -o {rows}.json");
        round.done(&words(&line))?;
        round.cases += 1;
    }
    ensure(round.read("one.csv")? == round.read("many.csv")?, || format!("threads change rows: {flags:?}"))?;
    let sweep = round.json("one.json")?;
    let metrics = sweep.pointer("/rows/0/metrics").and_then(Value::as_object);
    let metrics = metrics.ok_or_else(|| format!("a sweep without rows: {flags:?}"))?;
    let differs = metrics.iter().find(|(name, value)| report.get(*name).is_some_and(|there| there != *value));
    ensure(differs.is_none() && metrics.contains_key("mean_ttft_ms"), || {
        format!("{differs:?} is not what the replay reports: {flags:?}")
    })
}
