//! Questions that need not try every point: the smallest fleet that is good enough, and the best of many.

mod answer;
mod fleet;
mod halving;
mod staircase;

use std::sync::Arc;

use serde_json::Value;
use wavetank_model::Result;

use crate::sweep::Setting;
use crate::sweep::bank::Bank;
use crate::sweep::bound::Bound;
use crate::sweep::document::Section;
use crate::sweep::finished::Finished;
use crate::sweep::metric;
use crate::sweep::point::Point;
use crate::sweep::spec::{Mode, Spec};

pub(crate) use answer::words;

/// `[search]` of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SearchSpec {
    /// The fewest GPUs that meet the bounds; of equal fleets the one with the least of `prefer`.
    SmallestFleet { prefer: usize },
    /// The point that has the least of a metric and meets the bounds.
    Best(Contest),
}

/// How the best of many is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Contest {
    pub(crate) metric: usize,
    pub(crate) wish: Wish,
    /// The last one runs all of the trace, each before it half of the next.
    pub(crate) rungs: u32,
    /// How many seeds the last one runs.
    pub(crate) seeds: u64,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Less,
    More,
}

/// What a search gave.
pub(crate) struct Found<'a> {
    /// Points that were run whole, in their order.
    pub(crate) points: Vec<(&'a Point, Arc<Finished>)>,
    pub(crate) json: Value,
    pub(crate) warnings: Vec<String>,
}

const MOST_RUNGS: u64 = 20;
const MOST_SEEDS: u64 = 10_000;

impl SearchSpec {
    /// The metric it goes by.
    pub(crate) fn metric(&self) -> usize {
        match self {
            Self::SmallestFleet { prefer } => *prefer,
            Self::Best(contest) => contest.metric,
        }
    }

    pub(crate) fn read(section: Option<&Section<'_>>, spec: &Spec) -> Result<Option<Self>> {
        let Some(section) = section else { return Ok(None) };
        let wrong = |key: &str, message: &str| {
            let line = section.node(key).map_or(section.line(), |node| node.line);
            section.document.wrong(line, message)
        };
        match section.word("goal", &["best", "smallest_fleet"])? {
            None => Err(wrong("goal", "[search] needs a \"goal\": smallest_fleet or best")),
            Some("best") => best(section).map(Some),
            Some(_) => {
                section.only(&["goal", "prefer"])?;
                if spec.bounds.is_empty() {
                    let error = wrong("goal", "the smallest fleet that meets what? there is no [sla]");
                    return Err(error.hint("[sla] p99_ttft_ms = 2000"));
                }
                if spec.mode != Mode::Grid {
                    return Err(wrong("goal", "a search for a fleet goes over [axes], mode = \"grid\""));
                }
                if spec.base.autoscale.is_some() {
                    return Err(wrong("goal", fleet::AUTOSCALED));
                }
                fleet::check_axes(&spec.axes).map_err(|message| wrong("goal", &message))?;
                let prefer = match section.text("prefer")? {
                    Some(name) => metric::find(&name).map_err(|error| {
                        error.at(section.document.place(section.node("prefer").map_or(0, |node| node.line)))
                    })?,
                    None => preferred(&spec.bounds),
                };
                Ok(Some(Self::SmallestFleet { prefer }))
            }
        }
    }
}

fn best(section: &Section<'_>) -> Result<SearchSpec> {
    section.only(&["goal", "maximize", "minimize", "rungs", "seeds"])?;
    let wrong = |message: &str| section.document.wrong(section.line(), message);
    let (less, more) = (section.text("minimize")?, section.text("maximize")?);
    let (name, wish) = match (less, more) {
        (Some(name), None) => (name, Wish::Less),
        (None, Some(name)) => (name, Wish::More),
        _ => return Err(wrong("the best by what? give \"minimize\" or \"maximize\", a metric")),
    };
    let metric = metric::find(&name).map_err(|error| error.at(section.document.place(section.line())))?;
    let within = |key: &str, default: u64, most: u64| {
        let what = format!("a whole number from 1 to {most}");
        let read = |value: &Value| value.as_u64().filter(|number| (1..=most).contains(number));
        section.value(key, &what, read).map(|number| number.unwrap_or(default))
    };
    let (rungs, seeds) = (within("rungs", 4, MOST_RUNGS)? as u32, within("seeds", 1, MOST_SEEDS)?);
    Ok(SearchSpec::Best(Contest { metric, wish, rungs, seeds }))
}

/// The first metric that has an upper bound.
fn preferred(bounds: &[Bound]) -> usize {
    let bounded = bounds.iter().find(|bound| bound.most.is_some());
    bounded.map_or_else(|| metric::number("p99_ttft_ms"), |bound| bound.metric)
}

/// Searches among `points`.
pub(crate) fn run<'a>(
    search: &SearchSpec,
    bank: &Bank<'_>,
    points: &'a [Point],
    setting: &Setting<'_>,
) -> Result<Found<'a>> {
    match search {
        SearchSpec::SmallestFleet { prefer } => fleet::run(*prefer, bank, points, setting),
        SearchSpec::Best(contest) => halving::run(*contest, bank, points, setting),
    }
}
