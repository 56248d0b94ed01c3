//! A tier behind memory as one word: `BACKEND:LOCATION[:CAPACITY]`.

use std::collections::BTreeMap;

use wavetank_calls::{AdapterPlan, EvictionPlan, Medium, QuotaPlan};
use wavetank_model::{Error, Result, size, without_login};
use wavetank_store::backend::Location;
use wavetank_store::backends;

const PLACE: &str = "--l2";
const HINT: &str = "as direct:/mnt/nvme:500GiB, buffered:/var/cache/kv or redis:redis://host:6379:10GiB";

/// Reads the word. What is full makes room as `eviction` says; without a capacity nobody leaves.
pub(crate) fn parse(word: &str, eviction: &EvictionPlan) -> Result<AdapterPlan> {
    let (name, rest) = word.split_once(':').unwrap_or((word, ""));
    let shown = without_login(word);
    let row = backends::backend(name).map_err(|error| error.at(format!("{PLACE} {shown}")))?;
    let (location, capacity) = split(rest);
    let wrong = |what: &str| Err(Error::usage(what).at(format!("{PLACE} {shown}")).hint(HINT));
    match (row.caps.location, location.is_empty()) {
        (Location::Directory, true) => return wrong("its directory is missing"),
        (Location::Url, true) => return wrong("its address is missing"),
        (Location::None, false) => return wrong("it has no location"),
        _ => {}
    }
    let tier = AdapterPlan {
        medium: Medium::Backend {
            name: name.to_owned(),
            location: location.to_owned(),
            options: BTreeMap::new(),
            wrappers: Vec::new(),
        },
        capacity_bytes: capacity,
        bytes_per_second: None,
        eviction: capacity.map(|_| eviction.clone()),
        quotas: QuotaPlan::default(),
    };
    check_login(&tier)?;
    Ok(tier)
}

/// A password in a location would be in recordings and lists of processes.
pub(crate) fn check_login(tier: &AdapterPlan) -> Result<()> {
    let Medium::Backend { name, location, .. } = &tier.medium else { return Ok(()) };
    let host = location.split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
    if host.rsplit_once('@').is_none_or(|(login, _)| !login.contains(':')) {
        return Ok(());
    }
    let place = format!("{PLACE} {name}:{}", without_login(location));
    Err(Error::usage("a password in the location").at(place).hint(
        "give it as the environment variable or the file that the backend reads; see wavetank list backends",
    ))
}

/// A location may hold colons; what follows the last one is a capacity only if it has a unit.
fn split(rest: &str) -> (&str, Option<u64>) {
    if let Some(bytes) = size::of(rest) {
        return ("", Some(bytes));
    }
    match rest.rsplit_once(':') {
        Some((location, last)) if size::of(last).is_some() => (location, size::of(last)),
        _ => (rest, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eviction() -> EvictionPlan {
        EvictionPlan { policy: "lru".to_owned(), trigger_watermark: 0.8, eviction_ratio: 0.2 }
    }

    /// Broken by: a port taken for a capacity, or a capacity left in the location.
    #[test]
    fn places_may_hold_colons() {
        let parts = |word: &str| {
            let tier = parse(word, &eviction()).unwrap();
            let Medium::Backend { name, location, .. } = tier.medium else { panic!("a backend") };
            (name + " " + &location, tier.capacity_bytes, tier.eviction.is_some())
        };
        assert_eq!(parts("direct:/a:b:2G"), ("direct /a:b".to_owned(), Some(2 << 30), true));
        assert_eq!(parts("buffered:/a"), ("buffered /a".to_owned(), None, false));
        let redis = ("redis redis://h:6379".to_owned(), None, false);
        assert_eq!(parts("redis:redis://h:6379"), redis);
        assert_eq!(parts("redis:redis://h:6379:1MiB"), (redis.0, Some(1 << 20), true));
        assert_eq!(parts("memory:1GiB"), ("memory ".to_owned(), Some(1 << 30), true));
    }

    /// Broken by: a password that is taken, to be written to recordings, or repeated.
    #[test]
    fn passwords_in_locations_are_refused_and_not_repeated() {
        for word in
            ["redis:redis://u:hunter2@h:1", "redis:redis://:hunter2@h:1:1GiB", "object:s3://k:hunter2@b/a"]
        {
            let told = parse(word, &eviction()).unwrap_err().to_string();
            assert!(told.contains(": a password in the location\nhint: "), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
        let told = parse("reddis:redis://u:hunter2@h:1", &eviction()).unwrap_err().to_string();
        assert!(told.starts_with("--l2 reddis:redis://…@h:1: unknown backend"), "{told}");
    }

    #[test]
    fn what_a_backend_needs_is_asked_for() {
        let told = |word: &str| parse(word, &eviction()).unwrap_err().to_string();
        assert!(told("direct").starts_with("--l2 direct: its directory is missing\nhint: as direct:"));
        assert!(told("direct:1GiB").contains("its directory is missing"));
        assert!(told("memory:/a").contains("it has no location"));
        assert!(parse("redis:redis://user@h:6379", &eviction()).is_ok(), "a name is no secret");
        assert!(told("disk:/a").starts_with("--l2 disk:/a: unknown backend \"disk\"\nhint: known: buffered"));
    }
}
