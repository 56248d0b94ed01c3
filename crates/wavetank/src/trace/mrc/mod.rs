//! `trace mrc`: what share of a trace's blocks caches of different capacities and policies serve.

mod accesses;
mod text;

use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;
use wavetank_cache::eviction::{self, Entry, LRU};
use wavetank_cache::mrc::{Curves, Plan, Report, Rule, Study};
use wavetank_model::{Error, Result};

use super::source::TraceArgs;
use accesses::{Accesses, Met};

/// Points of LRU's line in a picture.
const LINE_POINTS: usize = 100;
/// Every policy there is.
const ALL: &str = "all";

/// What to find out about which trace.
#[derive(Clone, Debug, Default)]
pub struct CurveArgs {
    /// The trace: of requests, or one file of storage calls.
    pub trace: TraceArgs,
    /// Eviction policies by name, or `all`; LRU is always there.
    pub policies: Vec<String>,
    /// Capacities in blocks, or in bytes for storage calls; without any they are chosen.
    pub capacities: Vec<u64>,
    /// How many are chosen.
    pub points: usize,
    /// How much of the trace is looked at.
    pub sample: Sample,
    /// When a block that is there is served.
    pub rule: Rule,
}

/// How much of a trace is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sample {
    /// For LRU all as long as memory allows, for other policies one block in eight.
    #[default]
    Usual,
    /// One block in so many, a power of two; with one, all of it, whatever memory it takes.
    OneIn(u32),
}

impl FromStr for Sample {
    type Err = Error;

    /// `1/8`, `0.125`, or 1 for all.
    fn from_str(text: &str) -> Result<Self> {
        let one_in = match text.split_once('/') {
            Some(("1", number)) => number.parse().ok(),
            Some(_) => None,
            None => text.parse::<f64>().ok().map(|rate| 1.0 / rate),
        };
        let fits = |number: &f64| number.fract() == 0.0 && (1.0..=65_536.0).contains(number);
        let one_in =
            one_in.filter(fits).map(|number| number as u32).filter(|number| number.is_power_of_two());
        one_in.map(Self::OneIn).ok_or_else(|| {
            Error::usage(format!("\"{text}\" is no part of a trace"))
                .hint("1 is all of it; 1/2, 1/4, 1/8 … 1/65536 are samples")
        })
    }
}

/// What capacities count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CurveUnit {
    /// Blocks of prompts.
    Blocks {
        /// Tokens of each.
        tokens_per_block: u32,
    },
    /// Bytes of objects.
    #[default]
    Bytes,
}

/// Hit ratio against capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheCurves {
    /// What kind of report it is: `trace_mrc`.
    pub kind: &'static str,
    /// The version that wrote it.
    pub version: &'static str,
    /// The trace's files.
    pub files: Vec<String>,
    /// Its format.
    pub format: &'static str,
    /// What capacities count.
    pub unit: CurveUnit,
    /// What whoever reads this should know.
    pub warnings: Vec<String>,
    /// What was found.
    #[serde(flatten)]
    pub report: Report,
    /// More of LRU's curve: capacities and shares of blocks served.
    pub lru_line: Vec<(u64, f64)>,
}

/// Reads a trace; twice where capacities are chosen for a policy that is simulated.
pub fn cache_curves(args: &CurveArgs) -> Result<CacheCurves> {
    let policies = policies(&args.policies)?;
    let accesses = Accesses::of(&args.trace)?;
    let mut capacities = capacities(&args.capacities)?;
    let needs_two = !policies.is_empty() && capacities.is_empty();
    if needs_two && accesses.is_once() {
        return Err(Error::usage("is read twice to choose capacities, and can be read once only")
            .at(accesses.files().join(", "))
            .hint("give --capacity, name a file, or ask for lru alone"));
    }
    if needs_two {
        capacities = pass(&accesses, plan(args, &accesses))?.0.lru.spread(args.points);
    }
    let plan = Plan { policies, capacities: capacities.clone(), ..plan(args, &accesses) };
    let (curves, met) = pass(&accesses, plan)?;
    if capacities.is_empty() {
        capacities = curves.lru.spread(args.points);
    }
    let line = curves.lru.spread(LINE_POINTS).into_iter();
    Ok(CacheCurves {
        kind: "trace_mrc",
        version: env!("CARGO_PKG_VERSION"),
        files: accesses.files(),
        format: accesses.format(),
        unit: met.unit,
        warnings: met.warnings,
        report: curves.report(&capacities),
        lru_line: line.map(|capacity| (capacity, curves.lru.at(capacity).block_hit_ratio)).collect(),
    })
}

fn pass(accesses: &Accesses, plan: Plan) -> Result<(Curves, Met)> {
    let mut study = Study::new(plan)?;
    let met = accesses.show(&mut study)?;
    Ok((study.finish()?, met))
}

/// Without policies and capacities.
fn plan(args: &CurveArgs, accesses: &Accesses) -> Plan {
    let plan = match args.sample {
        Sample::Usual => Plan::default(),
        Sample::OneIn(1) => Plan::exact(),
        Sample::OneIn(one_in) => Plan { one_in, lru_one_in: one_in, ..Plan::default() },
    };
    Plan { rule: args.rule, sizes: accesses.sizes(), ..plan }
}

/// Those beside LRU, each once, in the order they were named.
fn policies(names: &[String]) -> Result<Vec<&'static Entry>> {
    let mut policies: Vec<&'static Entry> = Vec::new();
    for name in names {
        let named: Vec<&'static Entry> = match name.as_str() {
            ALL => eviction::ALL.iter().collect(),
            name => vec![eviction::policy(name).map_err(|error| error.at("--policy"))?],
        };
        for policy in named.into_iter().filter(|policy| policy.name != LRU.name) {
            if !policies.iter().any(|known| known.name == policy.name) {
                policies.push(policy);
            }
        }
    }
    Ok(policies)
}

fn capacities(given: &[u64]) -> Result<Vec<u64>> {
    if given.contains(&0) {
        return Err(Error::usage("a cache has room for something").at("--capacity").hint("leave the 0 out"));
    }
    let mut capacities = given.to_vec();
    capacities.sort_unstable();
    capacities.dedup();
    Ok(capacities)
}

impl CacheCurves {
    /// Everything as JSON.
    pub fn json(&self) -> Value {
        serde_json::to_value(self).expect("plain fields become JSON")
    }

    /// What a capacity is in tokens or bytes.
    fn weight_of(&self, capacity: u64) -> u64 {
        match self.unit {
            CurveUnit::Blocks { tokens_per_block } => capacity.saturating_mul(tokens_per_block.into()),
            CurveUnit::Bytes => capacity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a rate that is taken for another one.
    #[test]
    fn samples_are_parts() {
        for (text, one_in) in [("1", 1), ("1/1", 1), ("1/8", 8), ("0.125", 8), ("0.5", 2)] {
            assert_eq!(text.parse::<Sample>().unwrap(), Sample::OneIn(one_in), "{text}");
        }
        for text in ["0", "-1", "2", "1/3", "0.3", "1/0", "3/8", "x", "", "1/131072", "nan"] {
            assert!(text.parse::<Sample>().is_err(), "{text}");
        }
    }

    /// Broken by: a policy that is left out or twice.
    #[test]
    fn all_policies_are_all() {
        let names = |words: &[&str]| -> Vec<&str> {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            policies(&words).unwrap().iter().map(|policy| policy.name).collect()
        };
        assert_eq!(names(&["all", "fifo"]).len(), eviction::ALL.len() - 1);
        assert_eq!(names(&["sieve", "LRU", "fifo", "sieve"]), ["sieve", "fifo"]);
        assert!(policies(&["no".to_owned()]).err().unwrap().to_string().contains("--policy"));
    }
}
