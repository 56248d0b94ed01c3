//! Reports of ranks, and whether they belong together.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wavetank_model::{Error, Result};
use wavetank_report::storage::difference;

use super::Missing;
use crate::bench::plan::BenchPlan;
use crate::bench::rank::{MOST_RANKS, Rank};
use crate::bench::share::Share;

/// Capacities that are less apart than this, as a part of the larger, are the same: what is free changes.
const ALIKE: f64 = 0.1;

/// So many ranks that are missing are named.
const NAMED: usize = 8;

/// The report of one rank.
pub(super) struct RankReport {
    pub(super) path: PathBuf,
    pub(super) share: Share,
    pub(super) plan: BenchPlan,
    /// What was written before its first request.
    pub(super) filled: Value,
    /// What its host could drive.
    pub(super) harness: Value,
}

impl RankReport {
    /// Its file.
    pub(super) fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// What it is called where people read it.
    pub(super) fn name(&self) -> String {
        format!("rank {} ({})", self.share.rank.number, self.share.host)
    }
}

/// Reads the report of a rank.
pub(super) fn report(path: &Path) -> Result<RankReport> {
    let place = path.display().to_string();
    let file = File::open(path).map_err(|error| Error::io(path, error).hint("name the reports of ranks"))?;
    let mut json: Value = serde_json::from_reader(BufReader::new(file)).map_err(|error| {
        Error::input(format!("not a report: {error}")).at(format!("{place}:{}", error.line()))
    })?;
    if json.get("rank").is_none() {
        let what = if json.get("merged").is_some() { "was merged already" } else { "is not that of a rank" };
        return Err(Error::input(format!("this report {what}")).at(place).hint(
            "ranks write theirs under mpirun or srun, or with --rank 0 --ranks 2, --rank 1 --ranks 2",
        ));
    }
    let version = env!("CARGO_PKG_VERSION");
    let theirs = json.pointer("/plan/wavetank_version").and_then(Value::as_str).unwrap_or("unknown");
    if theirs != version {
        let what = format!("made by wavetank {theirs}, and this is {version}");
        return Err(Error::input(what).at(place).hint("run every rank and merge with the same version"));
    }
    let wrong = |key: &str, error: serde_json::Error| {
        Error::input(format!("`{key}` is not as a rank writes it: {error}")).at(place.clone())
    };
    let mut take = |key: &str| json.get_mut(key).map(Value::take).unwrap_or_default();
    let share: Share = serde_json::from_value(take("rank")).map_err(|error| wrong("rank", error))?;
    let plan: BenchPlan = serde_json::from_value(take("plan")).map_err(|error| wrong("plan", error))?;
    check_rank(&share, &plan).map_err(|error| error.at(place))?;
    Ok(RankReport { path: path.to_owned(), share, plan, filled: take("filled"), harness: take("harness") })
}

/// Whether what a rank says of itself can be: two reports of one process under two numbers would be counted
/// twice.
fn check_rank(share: &Share, plan: &BenchPlan) -> Result<()> {
    let Rank { number, of, .. } = share.rank;
    if !(2..=MOST_RANKS).contains(&of) {
        return Err(Error::input(format!("`rank.of` is {of}, and must be from 2 to {MOST_RANKS}")));
    }
    if number >= of {
        return Err(Error::input(format!("`rank.number` is {number}, and there were {of} ranks")));
    }
    let seed = plan.run.seed.wrapping_add(number.into());
    if share.seed != seed {
        let what = format!("`rank.seed` is {}, and that of rank {number} is {seed}", share.seed);
        return Err(Error::input(what).hint("every rank adds its number to the plan's seed"));
    }
    if share.trials.is_empty() {
        return Err(Error::input("`rank.trials` is empty"));
    }
    Ok(())
}

/// Ranks whose reports are missing.
pub(super) struct Absent {
    /// How many.
    pub(super) count: u32,
    /// The first of them: there may be as many as anyone writes into a report.
    pub(super) first: Vec<u32>,
}

impl Absent {
    /// Those of `of` that are not among `there`, which ascend.
    fn of(of: u32, there: &[u32]) -> Self {
        let absent = (0..of).filter(|number| there.binary_search(number).is_err());
        let first = absent.take(NAMED).collect();
        Self { count: of.saturating_sub(there.len() as u32), first }
    }

    /// Their numbers, in words.
    fn numbers(&self) -> String {
        let numbers = self.first.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match self.count as usize - self.first.len() {
            0 => numbers,
            more => format!("{numbers} and {more} more"),
        }
    }

    /// What a reader should know of it.
    pub(super) fn warning(&self) -> Option<String> {
        let numbers = self.numbers();
        match self.count {
            0 => None,
            1 => Some(format!("rank {numbers} is missing: what it moved is not in these numbers")),
            _ => Some(format!("ranks {numbers} are missing: what they moved is not in these numbers")),
        }
    }
}

/// Sorts the reports by rank and says which are missing; what does not belong together is an error.
pub(super) fn check(ranks: &mut [RankReport], missing: Missing) -> Result<Absent> {
    ranks.sort_by_key(|rank| rank.share.rank.number);
    let Some((first, others)) = ranks.split_first() else {
        return Err(Error::usage("there is nothing to merge").hint("name the reports of all ranks"));
    };
    for pair in ranks.windows(2) {
        if let [one, same] = pair
            && one.share.rank.number == same.share.rank.number
        {
            let what = format!("is rank {}, as is {}", same.share.rank.number, one.place());
            return Err(Error::input(what).at(same.place()).hint("name the report of each rank once"));
        }
    }
    for other in others {
        same_benchmark(first, other)?;
    }
    let of = first.share.rank.of;
    let there: Vec<u32> = ranks.iter().map(|rank| rank.share.rank.number).collect();
    let absent = Absent::of(of, &there);
    if absent.count > 0 && missing == Missing::Refused {
        let numbers = absent.numbers();
        return Err(Error::input(format!("there were {of} ranks, and these are missing: {numbers}"))
            .hint("name their reports too, or merge what there is with --partial"));
    }
    Ok(absent)
}

fn same_benchmark(first: &RankReport, other: &RankReport) -> Result<()> {
    let differ = |field: &str, mine: &dyn std::fmt::Display, theirs: &dyn std::fmt::Display| {
        Err(Error::input(format!("`{field}` is {theirs}, and {mine} in {}", first.place()))
            .at(other.place())
            .hint("only ranks of the same benchmark can be merged"))
    };
    let (mine, theirs) = (first.share.rank.of, other.share.rank.of);
    if mine != theirs {
        return differ("rank.of", &mine, &theirs);
    }
    match difference(&shared(&first.plan), &shared(&other.plan)) {
        Some((field, mine, theirs)) => differ(&format!("plan.{field}"), &mine, &theirs),
        None => Ok(()),
    }
}

/// What of a plan every rank has to have. Where entries are and what follows from the machine is its own.
fn shared(plan: &BenchPlan) -> Value {
    let mut plan = plan.clone();
    plan.rank = None;
    plan.warnings.clear();
    let run = &mut plan.run;
    (run.io_threads, run.precondition_depth, run.precondition_bytes) = (0, 0, None);
    for tier in &mut run.tiers {
        tier.location.clear();
        tier.capacity_bytes = None;
    }
    serde_json::to_value(plan).expect("plain data")
}

/// What follows from the machines and is not alike.
pub(super) fn unlike_machines(ranks: &[RankReport]) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, of: &dyn Fn(&BenchPlan) -> u64| {
        let values = || ranks.iter().map(|rank| of(&rank.plan));
        let (least, most) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
        if (most - least) as f64 > most as f64 * ALIKE {
            found.push(format!("ranks are not alike: {what} from {least} to {most}"));
        }
    };
    compare("--io-threads is", &|plan| plan.run.io_threads.into());
    let tiers = ranks.first().map(|rank| rank.plan.run.tiers.as_slice()).unwrap_or_default();
    for (number, tier) in tiers.iter().enumerate() {
        let capacity = |plan: &BenchPlan| plan.run.tiers[number].capacity_bytes.unwrap_or(0);
        compare(&format!("bytes that {} may hold are", tier.role.name()), &capacity);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a list as long as the number of ranks that a report claims.
    #[test]
    fn a_few_of_those_that_are_missing_are_named() {
        let some = Absent::of(4, &[1, 3]);
        assert_eq!((some.count, some.first.as_slice(), some.numbers()), (2, &[0, 2][..], "0, 2".to_owned()));
        assert_eq!(Absent::of(2, &[0, 1]).warning(), None);
        let most = Absent::of(MOST_RANKS, &[0, 5]);
        assert_eq!((most.count, most.first.len()), (999_998, 8));
        assert_eq!(most.numbers(), "1, 2, 3, 4, 6, 7, 8, 9 and 999990 more");
        assert!(Absent::of(2, &[1]).warning().unwrap().starts_with("rank 0 is missing: "));
        assert!(most.warning().unwrap().starts_with("ranks 1, 2, "));
    }
}
