//! `--simulate ROLE=MEDIUM`: the same benchmark with media in place of devices. The store decides what it
//! decides on a drive; nothing is made or moved, and time is what the media say.

mod device;
mod recent;
mod timeline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use wavetank_bench::{Devices, TierPlan, Time};
use wavetank_model::{Error, Result, TierRole};
use wavetank_sim::media::MediumConfig;
use wavetank_store::backend::Backend;
use wavetank_store::backends;

use self::device::{Device, Nature};
use self::timeline::Timeline;
use super::args::BenchArgs;
use super::draft::Draft;
use super::findings::Findings;
use super::plan::BenchPlan;
use crate::profile::tier;

/// The medium of each tier; none where devices are real.
pub(super) type Media = BTreeMap<TierRole, MediumConfig>;

/// The name of the flag.
const FLAG: &str = "--simulate";
/// What people call storage.
const DISK: &str = "disk";
/// A medium that a profile is of.
const MEASURED: &str = "measured";

impl Draft<'_> {
    /// Whether devices are modelled.
    pub(super) fn is_simulated(&self) -> bool {
        !self.args.simulate.is_empty()
    }

    /// What was typed about media, and what goes with no simulation.
    pub(super) fn media(&mut self) -> Media {
        let mut media = Media::new();
        for typed in &self.args.simulate {
            let read = medium(typed).map_err(|error| error.within(FLAG));
            let Some((role, config)) = self.findings.take(read) else { continue };
            if media.insert(role, config).is_some() {
                self.findings.wrong(FLAG, format!("the {} tier is given twice", role.name()));
            }
        }
        if self.is_simulated() && self.time_is_virtual() {
            let what = "media take time, which stands still with --generation-mode deterministic and \
                        --io-trace-log";
            self.findings.wrong(FLAG, what);
        }
        if self.is_simulated() && self.args.storage_capacity_gb.is_none_or(|gigabytes| gigabytes <= 0.0) {
            let what = "is needed with --simulate: nothing is known of the drive's room";
            self.findings.wrong("--storage-capacity-gb", what);
        }
        media
    }
}

/// `ROLE=FILE`, a profile of `wavetank profile tier`, or `ROLE={"name": …}`, a row of the media and its
/// parameters.
fn medium(typed: &str) -> Result<(TierRole, MediumConfig)> {
    let shape = || {
        Error::usage(format!("\"{typed}\" is not TIER=PROFILE"))
            .hint("such as disk=nvme.toml, of `wavetank profile tier`")
    };
    let (role, medium) = typed.split_once('=').ok_or_else(shape)?;
    let named = |known: &TierRole| known.name() == role || (*known == TierRole::Storage && role == DISK);
    let role = TierRole::ALL.into_iter().find(named).ok_or_else(|| {
        Error::usage(format!("unknown tier \"{role}\"")).hint("known: gpu, cpu, disk (or storage)")
    })?;
    if is_inline(medium) {
        let config = serde_json::from_str(medium);
        let wrong = |error: serde_json::Error| Error::usage(format!("{} is no medium: {error}", role.name()));
        return Ok((role, config.map_err(wrong)?));
    }
    let profile = tier::read(Path::new(medium))?;
    let Value::Object(parameters) = json!({ "profile": profile }) else {
        unreachable!("the literal is an object")
    };
    Ok((role, MediumConfig { name: MEASURED.to_owned(), parameters }))
}

/// Whether a medium is given as JSON, not in a file.
fn is_inline(medium: &str) -> bool {
    medium.trim_start().starts_with('{')
}

impl BenchArgs {
    /// The files of media that were typed.
    pub fn profiles(&self) -> Vec<PathBuf> {
        let media = self.simulate.iter().filter_map(|typed| typed.split_once('='));
        media.filter(|(_, medium)| !is_inline(medium)).map(|(_, medium)| PathBuf::from(medium)).collect()
    }
}

impl BenchPlan {
    /// Whether devices are modelled.
    pub fn is_simulated(&self) -> bool {
        self.run.time == Time::Modelled
    }

    /// What stands for the devices, if they are modelled.
    pub(super) fn devices(&self) -> Result<Option<Devices>> {
        if !self.is_simulated() {
            return Ok(None);
        }
        let clock = wavetank_store::Clock::modelled();
        let media = self.run.tiers.iter().map(|tier| self.media[&tier.role].build(self.run.seed));
        let timeline = Timeline::of(clock.clone(), media.collect::<Result<Vec<_>>>()?);
        let timeline = Arc::new(timeline);
        let device = |(number, tier): (usize, &TierPlan)| {
            let nature = self.nature(tier)?;
            Ok(Arc::new(Device::new(&timeline, number, nature)) as Arc<dyn Backend>)
        };
        let backends = self.run.tiers.iter().enumerate().map(device).collect::<Result<Vec<_>>>()?;
        Ok(Some(Devices { clock, backends }))
    }

    /// What the tier's backend is like. Some run out of room by themselves; what keeps files takes what
    /// comes, and the store keeps the tier's capacity. A thread that moves bytes itself does nothing else
    /// meanwhile, which one of several does not do to the others.
    fn nature(&self, tier: &TierPlan) -> Result<Nature> {
        let caps = backends::backend(&tier.backend)?.caps;
        Ok(Nature {
            room: tier.capacity_bytes.filter(|_| caps.keeps_bytes && !caps.survives),
            is_backed: tier.options.get(backends::BACKED).is_some_and(|told| told == "true"),
            is_inline: caps.inline && self.run.io_threads == 1,
            holds_up: self.run.io_threads == 1,
        })
    }
}

/// Notes what is wrong with the media of `plan`, and what cannot be had of a simulation.
pub(super) fn check(plan: &BenchPlan, findings: &mut Findings) {
    if plan.is_simulated() == plan.media.is_empty() {
        findings.wrong("media", "go with \"time\": \"modelled\", and only with it");
    }
    if !plan.is_simulated() {
        return;
    }
    for tier in &plan.run.tiers {
        let name = tier.role.name();
        match plan.media.get(&tier.role) {
            None => {
                let what = format!("the {name} tier has no medium — hint: add {FLAG} {name}=PROFILE");
                findings.wrong(FLAG, what);
            }
            Some(config) => {
                let built = config.build(plan.run.seed).map_err(|error| error.within(FLAG));
                findings.take(built);
            }
        }
    }
    for role in plan.media.keys().filter(|role| plan.run.tiers.iter().all(|tier| tier.role != **role)) {
        findings.wrong(FLAG, format!("there is no {} tier", role.name()));
    }
    for (is_asked, flag, why) in [
        (plan.run.verify, "--verify", "no bytes are read"),
        (plan.run.keep_cache, "--keep-cache", "nothing is stored"),
        (plan.latency_tracing, "--enable-latency-tracing", "nothing goes to a drive"),
        (plan.trials.drop_page_cache, "--drop-page-cache", "nothing goes to a drive"),
        (plan.trials.most > 1, "--trials", "every trial would be the same"),
        (plan.rank.is_some(), "--rank", "ranks share devices, and each would have its own"),
    ] {
        if is_asked {
            findings.wrong(flag, format!("is not for {FLAG}: {why}"));
        }
    }
}

#[cfg(test)]
mod tests;
