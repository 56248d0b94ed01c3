//! What was typed to measure a tier, and what of it can be done.

use std::collections::BTreeMap;

use wavetank_bench::ProbePlan;
use wavetank_model::{Error, Result, TierOrigin, TierProfile, size};
use wavetank_store::backends;

use super::target::{Target, Where};
use crate::bench::suite::Hardware;
use crate::bench::{backend_option, free_bytes, usual_io_threads};

/// What was typed to measure a tier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TierArgs {
    /// A directory, `memory`, `cuda`, `cuda:1` or an address.
    pub target: String,
    /// Another backend than is usual for a directory.
    pub backend: Option<String>,
    /// Options of the backend, `NAME=VALUE`.
    pub backend_options: Vec<String>,
    /// Bytes of an entry, with units.
    pub sizes: Option<Vec<String>>,
    /// Operations in flight.
    pub depths: Option<Vec<u32>>,
    /// Bytes in flight that no point has more of, with units.
    pub max_in_flight: Option<String>,
    /// Threads that ask.
    pub threads: Option<u32>,
    /// How often all points are gone through.
    pub passes: Option<u32>,
    /// How long a point is measured, in all passes together.
    pub seconds_per_point: Option<f64>,
    /// How long writing goes on.
    pub sustained_seconds: Option<f64>,
    /// How much of each size is written before, in GiB.
    pub size_gb: Option<f64>,
    /// What chooses entries and contents.
    pub seed: Option<u64>,
    /// What is used where nothing is given.
    pub extent: Extent,
}

/// How much is measured where nothing else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Enough to simulate with.
    #[default]
    Whole,
    /// Enough to look at.
    Quick,
}

/// A tier to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct TierProbe {
    pub(super) target: Target,
    pub(super) probe: ProbePlan,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// From a piece of a KV block to many blocks of a large model.
const SIZES: [u64; 8] = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB];
const DEPTHS: [u32; 4] = [1, 4, 16, 64];
const QUICK_SIZES: [u64; 3] = [16 * KIB, 256 * KIB, 4 * MIB];
const QUICK_DEPTHS: [u32; 2] = [1, 16];
/// Reads alone, half of each, writes alone: what they cost each other is between.
const READ_SHARES: [f64; 3] = [1.0, 0.5, 0.0];
const DEEPEST: u32 = 1024;
/// Large entries are many pieces: a few of them are as much as a device takes at a time.
const IN_FLIGHT_MAX: u64 = 128 * MIB;
const THREADS_MAX: u32 = 256;
/// Enough to see how passes differ.
const PASSES: u32 = 3;
const QUICK_PASSES: u32 = 2;
const PASSES_MAX: u32 = 100;
const SEED: u64 = 42;
/// Of each size; all together more than a drive keeps in its own memory.
const WORKING_SET: u64 = GIB / 2;
const QUICK_WORKING_SET: u64 = GIB / 8;
/// More small entries say nothing new, and take long to write.
const ENTRIES_MAX: u64 = 4096;
const QUICK_ENTRIES_MAX: u64 = 512;
/// What may be taken of what is free of a disk, as in the storage benchmark, and of all main memory.
const DISK_PERCENT: u64 = 95;
const MEMORY_PERCENT: u64 = 80;

impl TierProbe {
    /// What must be known where `profile` stands for what would be measured.
    pub fn caveats(&self, profile: &TierProfile) -> Vec<String> {
        let TierOrigin { backend, location, .. } = &profile.origin;
        let (own_backend, own_location) = (self.target.backend, self.target.shown());
        let place = |backend: &str, location: &str| format!("{backend} {location}").trim_end().to_owned();
        let is_other = (backend.as_str(), location.as_str()) != (own_backend, own_location.as_str());
        let other = is_other.then(|| {
            let (of, not_of) = (place(backend, location), place(own_backend, &own_location));
            format!("the profile is of {of}, not of {not_of}")
        });
        let partial =
            profile.partial.then(|| "the profile was ended before all points were measured".to_owned());
        other.into_iter().chain(partial).collect()
    }

    /// Checks what was typed.
    pub fn new(args: &TierArgs) -> Result<Self> {
        let target = Target::read(&args.target, args.backend.as_deref())?;
        let is_quick = args.extent == Extent::Quick;
        let usual = |whole: f64, quick: f64| if is_quick { quick } else { whole };
        let seconds = within("--seconds-per-point", args.seconds_per_point, usual(0.3, 0.1), 0.001..=3600.0)?;
        let sustained =
            within("--sustained-seconds", args.sustained_seconds, usual(10.0, 2.0), 0.0..=86_400.0)?;
        let mut probe = ProbePlan {
            backend: target.backend.to_owned(),
            location: target.shown(),
            options: options(target.backend, &args.backend_options)?,
            sizes: sizes(args)?,
            depths: depths(args)?,
            read_shares: READ_SHARES.to_vec(),
            in_flight_bytes_max: in_flight(args)?,
            threads: count("--threads", args.threads, usual_threads()?, THREADS_MAX)?,
            passes: count("--passes", args.passes, if is_quick { QUICK_PASSES } else { PASSES }, PASSES_MAX)?,
            seconds_per_point: seconds,
            sustained_seconds: sustained,
            working_set_bytes: 0,
            entries_max: if is_quick { QUICK_ENTRIES_MAX } else { ENTRIES_MAX },
            seed: seed(args.seed.unwrap_or(SEED))?,
        };
        let most = probe.in_flight_bytes_max;
        if probe.sizes.iter().any(|bytes| bytes.saturating_mul(probe.depths[0].into()) > most) {
            let what = "the largest of --sizes does not fit, even at the smallest of --depths";
            return Err(Error::usage(what).at("--max-in-flight").hint("give more, or leave out that size"));
        }
        probe.working_set_bytes = working_set(args, &probe)?;
        check_room(&target, &probe)?;
        Ok(Self { target, probe })
    }

    /// How often something is measured.
    pub fn steps(&self) -> usize {
        self.probe.steps()
    }

    /// Where something may be left if the process is killed.
    pub fn leaves(&self) -> String {
        match &self.target.site {
            Where::Here | Where::Device(_) => "nothing was written".to_owned(),
            Where::Directory(_) | Where::Address(_) => {
                format!("wavetank-profile-* may be left in {}: delete it", self.target.shown())
            }
        }
    }
}

fn sizes(args: &TierArgs) -> Result<Vec<u64>> {
    let Some(typed) = &args.sizes else {
        return Ok(if args.extent == Extent::Quick { QUICK_SIZES.to_vec() } else { SIZES.to_vec() });
    };
    let sizes = typed.iter().map(|text| size::parse(text, "--sizes")).collect::<Result<Vec<_>>>()?;
    rising("--sizes", sizes)
}

fn depths(args: &TierArgs) -> Result<Vec<u32>> {
    let Some(typed) = args.depths.clone() else {
        return Ok(if args.extent == Extent::Quick { QUICK_DEPTHS.to_vec() } else { DEPTHS.to_vec() });
    };
    if typed.iter().any(|depth| !(1..=DEEPEST).contains(depth)) {
        return Err(Error::usage(format!("must be between 1 and {DEEPEST}")).at("--depths"));
    }
    rising("--depths", typed)
}

fn in_flight(args: &TierArgs) -> Result<u64> {
    let most = match &args.max_in_flight {
        Some(text) => size::parse(text, "--max-in-flight")?,
        None => IN_FLIGHT_MAX.max(largest_alone(args)?),
    };
    // TOML has no larger numbers.
    Ok(most.min(i64::MAX as u64))
}

/// What is in flight at least of the sizes and depths that were typed.
fn largest_alone(args: &TierArgs) -> Result<u64> {
    let (sizes, depths) = (sizes(args)?, depths(args)?);
    Ok(sizes[sizes.len() - 1].saturating_mul(depths[0].into()))
}

/// As many as the benchmark has.
fn usual_threads() -> Result<u32> {
    Ok(usual_io_threads(Hardware::without_place()?.cores))
}

fn count(flag: &str, typed: Option<u32>, usual: u32, most: u32) -> Result<u32> {
    let value = typed.unwrap_or(usual);
    let is_sound = (1..=most).contains(&value);
    is_sound.then_some(value).ok_or_else(|| Error::usage(format!("must be between 1 and {most}")).at(flag))
}

/// Sorted, each once.
fn rising<T: Ord>(flag: &str, mut typed: Vec<T>) -> Result<Vec<T>> {
    typed.sort_unstable();
    typed.dedup();
    if typed.is_empty() { Err(Error::usage("names none").at(flag)) } else { Ok(typed) }
}

fn within(flag: &str, typed: Option<f64>, usual: f64, range: std::ops::RangeInclusive<f64>) -> Result<f64> {
    let value = typed.unwrap_or(usual);
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Error::usage(format!("must be between {} and {}", range.start(), range.end())).at(flag))
}

/// TOML has no larger numbers.
fn seed(typed: u64) -> Result<u64> {
    let fits = i64::try_from(typed).is_ok();
    fits.then_some(typed).ok_or_else(|| Error::usage(format!("must be at most {}", i64::MAX)).at("--seed"))
}

fn options(backend: &str, typed: &[String]) -> Result<BTreeMap<String, String>> {
    let entry = backends::backend(backend)?;
    let read = |typed: &String| backend_option(entry, typed).map_err(|error| error.at("--backend-option"));
    typed.iter().map(read).collect()
}

fn working_set(args: &TierArgs, probe: &ProbePlan) -> Result<u64> {
    let least = probe.least_bytes();
    let usual = if args.extent == Extent::Quick { QUICK_WORKING_SET } else { WORKING_SET };
    let Some(typed) = args.size_gb else { return Ok(usual.max(least)) };
    let typed = within("--size-gb", Some(typed), 0.0, 0.001..=1e6)?;
    let bytes = (typed * GIB as f64) as u64;
    if bytes < least {
        let what = format!("must be at least {:.3} for these sizes and depths", least as f64 / GIB as f64);
        return Err(Error::usage(what).at("--size-gb").hint("or leave out the largest size or depth"));
    }
    Ok(bytes)
}

/// A disk that fills up is slower, and memory that is not there ends the process.
fn check_room(target: &Target, probe: &ProbePlan) -> Result<()> {
    let there = match &target.site {
        Where::Directory(path) => Some(free_bytes(path)? / 100 * DISK_PERCENT),
        Where::Here => Hardware::without_place()?.memory_bytes.map(|bytes| bytes / 100 * MEMORY_PERCENT),
        // These say themselves what they have no room for.
        Where::Device(_) | Where::Address(_) => None,
    };
    let needed = probe.room_bytes();
    let Some(there) = there.filter(|there| *there < needed) else { return Ok(()) };
    let gib = |bytes: u64| bytes as f64 / GIB as f64;
    Err(Error::usage(format!("{:.1} GiB are needed, {:.1} GiB may be used", gib(needed), gib(there)))
        .at(format!("{} {}", target.backend, target.shown()).trim_end())
        .hint("give less with --size-gb, --sizes and --depths"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(target: &str) -> TierArgs {
        TierArgs { target: target.to_owned(), ..TierArgs::default() }
    }

    /// Broken by: a working set all of whose entries are in flight, or one that is made smaller silently.
    #[test]
    fn the_working_set_is_more_than_what_is_in_flight() {
        for extent in [Extent::Whole, Extent::Quick] {
            let probe = TierProbe::new(&TierArgs { extent, ..args("memory") }).unwrap().probe;
            assert!(probe.working_set_bytes >= probe.least_bytes(), "{extent:?}");
        }
        let small = TierArgs { size_gb: Some(0.1), threads: Some(1), ..args("memory") };
        let told = TierProbe::new(&small).unwrap_err().to_string();
        assert!(told.starts_with("--size-gb: must be at least 0.250 for"), "{told}");
    }

    /// Broken by: mixes, sizes or depths without which a medium cannot be modelled.
    #[test]
    fn enough_is_measured_to_simulate_with() {
        let probe = TierProbe::new(&args("memory")).unwrap().probe;
        assert_eq!((probe.sizes[0], probe.sizes[7]), (4 * KIB, 64 * MIB));
        assert_eq!(probe.depths, [1, 4, 16, 64]);
        assert!([1.0, 0.5, 0.0].iter().all(|share| probe.read_shares.contains(share)));
        assert_eq!(
            (probe.points(), probe.left_out()),
            (130, 30),
            "64 MiB deeper than 1, 16 MiB than 4, 4 MiB than 16"
        );
    }

    /// Broken by: a size that is asked for and then left out.
    #[test]
    fn a_size_that_is_asked_for_is_measured() {
        let typed = |most: Option<&str>| TierArgs {
            sizes: Some(vec!["64MiB".into()]),
            depths: Some(vec![8, 16]),
            max_in_flight: most.map(str::to_owned),
            ..args("memory")
        };
        let probe = TierProbe::new(&typed(None)).unwrap().probe;
        assert_eq!((probe.points(), probe.left_out()), (5, 5));
        assert_eq!(TierProbe::new(&typed(Some("1GiB"))).unwrap().probe.left_out(), 0);
        let told = TierProbe::new(&typed(Some("256MiB"))).unwrap_err().to_string();
        assert!(told.starts_with("--max-in-flight: the largest of --sizes does not fit"), "{told}");
    }

    /// Broken by: a flag that is read and not checked.
    #[test]
    fn what_cannot_be_measured_is_refused_by_its_flag() {
        let cases = [
            (TierArgs { sizes: Some(vec!["64".into()]), ..args("memory") }, "--sizes: \"64\" is no size"),
            (TierArgs { depths: Some(vec![0]), ..args("memory") }, "--depths: must be between 1 and 1024"),
            (
                TierArgs { seconds_per_point: Some(f64::NAN), ..args("memory") },
                "--seconds-per-point: must be",
            ),
            (TierArgs { sustained_seconds: Some(-1.0), ..args("memory") }, "--sustained-seconds: must be"),
            (TierArgs { threads: Some(0), ..args("memory") }, "--threads: must be between 1 and 256"),
            (TierArgs { passes: Some(101), ..args("memory") }, "--passes: must be between 1 and 100"),
            (TierArgs { max_in_flight: Some("1".into()), ..args("memory") }, "--max-in-flight: \"1\" is no"),
            (
                TierArgs { size_gb: Some(9e5), sizes: Some(vec!["64GiB".into()]), ..args("memory") },
                "memory: ",
            ),
            (TierArgs { seed: Some(u64::MAX), ..args("memory") }, "--seed: must be at most"),
            (
                TierArgs { backend_options: vec!["x=1".into()], ..args("memory") },
                "--backend-option: memory has",
            ),
        ];
        for (args, told) in cases {
            let error = TierProbe::new(&args).unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
        let typed = TierArgs { sizes: Some(vec!["1MiB".into(), "64KiB".into()]), ..args("memory") };
        assert_eq!(TierProbe::new(&typed).unwrap().probe.sizes, [64 * KIB, 1024 * KIB]);
    }
}
