//! Which of many processes this is: those of one benchmark that spans hosts, started by `mpirun`, `srun` or
//! by hand. Each is a rank with its own seed, its own place to store and its own report; `merge` makes one of
//! them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wavetank_bench::{Plan, TierPlan};
use wavetank_model::{Error, Result, TierRole};
use wavetank_store::backend::Location;
use wavetank_store::backends;

use super::args::BenchArgs;
use super::check;
use super::findings::Findings;
use super::plan::BenchPlan;

/// One of the processes of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rank {
    /// Its number, from zero.
    pub number: u32,
    /// How many there are, two or more.
    pub of: u32,
    /// Its number among those of its host, where that is known.
    pub local: Option<u32>,
    /// Who said so.
    pub told_by: Teller,
}

/// Who says which rank a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Teller {
    /// The user.
    Flags,
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `mpiexec` of MPICH and of those made from it.
    Pmi,
    /// `srun`.
    Slurm,
}

/// More ranks than this are a slip: no system starts as many.
pub(super) const MOST_RANKS: u32 = 1_000_000;

/// The environment of a process started by a launcher.
struct Launcher {
    teller: Teller,
    of: &'static str,
    number: &'static str,
    local: &'static str,
}

/// Every launcher, in the order they are asked: an `mpirun` inside a job of Slurm knows better than Slurm. A
/// process is a rank where the number of ranks is told. Slurm tells `SLURM_PROCID` to batch scripts too,
/// which are no ranks; the number of tasks of a step is told to those that `srun` started.
const LAUNCHERS: [Launcher; 3] = [
    Launcher {
        teller: Teller::OpenMpi,
        of: "OMPI_COMM_WORLD_SIZE",
        number: "OMPI_COMM_WORLD_RANK",
        local: "OMPI_COMM_WORLD_LOCAL_RANK",
    },
    Launcher { teller: Teller::Pmi, of: "PMI_SIZE", number: "PMI_RANK", local: "MPI_LOCALRANKID" },
    Launcher {
        teller: Teller::Slurm,
        of: "SLURM_STEP_NUM_TASKS",
        number: "SLURM_PROCID",
        local: "SLURM_LOCALID",
    },
];

/// The value of a variable of the environment.
pub(super) type Variable = fn(&str) -> Option<String>;

/// That of this process: the only place where a benchmark's plan looks at the environment.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Which rank this process is: as typed, or as its launcher told it; none where it is alone.
pub(super) fn find(args: &BenchArgs, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Rank>> {
    let told_by = Teller::Flags;
    if let Some(of) = args.ranks.filter(|of| *of > MOST_RANKS) {
        return Err(Error::usage(format!("must be {MOST_RANKS} at most, not {of}")).at("--ranks"));
    }
    match (args.rank, args.ranks) {
        (None, None) => told(variable),
        (Some(0) | None, Some(1)) => Ok(None),
        (Some(number), Some(of)) if number < of => Ok(Some(Rank { number, of, local: None, told_by })),
        (Some(number), Some(of)) => {
            Err(Error::usage(format!("must be below --ranks, which is {of}, not {number}")).at("--rank"))
        }
        (Some(_), None) => Err(Error::usage("needs --ranks, how many there are").at("--rank")),
        (None, Some(_)) => Err(Error::usage("needs --rank, from 0 on").at("--ranks")),
    }
}

fn told(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Rank>> {
    let launcher = LAUNCHERS.iter().find_map(|launcher| Some((launcher, variable(launcher.of)?)));
    let Some((launcher, of)) = launcher else { return Ok(None) };
    let read = |name: &str, text: &str| -> Result<u32> {
        text.trim().parse().map_err(|_| {
            Error::usage(format!("the environment variable is \"{text}\", which is no number"))
                .at(name)
                .hint("type --rank and --ranks, or --ranks 1 to run alone")
        })
    };
    let of = read(launcher.of, &of)?;
    if of <= 1 {
        return Ok(None);
    }
    let number = read(launcher.number, &variable(launcher.number).unwrap_or_default())?;
    if number >= of {
        return Err(Error::usage(format!("the environment variable is {number}, and there are {of} ranks"))
            .at(launcher.number)
            .hint("type --rank and --ranks, or --ranks 1 to run alone"));
    }
    let local = variable(launcher.local).map(|text| read(launcher.local, &text)).transpose()?;
    Ok(Some(Rank { number, of, local, told_by: launcher.teller }))
}

impl Rank {
    /// A file of its own beside those of the other ranks: `x.json` is `x_rank3.json`, `x.csv.zst` is
    /// `x_rank3.csv.zst`.
    pub fn file(&self, path: &Path) -> PathBuf {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let packed = [".zst", ".gz"].into_iter().find(|end| name.ends_with(end)).unwrap_or("");
        let bare = &name[..name.len() - packed.len()];
        let at = bare.rfind('.').filter(|at| *at > 0).unwrap_or(bare.len());
        path.with_file_name(format!("{}_rank{}{}{packed}", &bare[..at], self.number, &bare[at..]))
    }

    /// The name of its report where none was given.
    pub fn report_name(&self) -> String {
        format!("rank{}.json", self.number)
    }

    /// What it is called where people read it.
    pub fn title(&self) -> String {
        format!("rank {} of {}", self.number, self.of)
    }

    fn folder(&self) -> String {
        format!("rank_{}", self.number)
    }

    /// A storage tier of its own: another directory, another prefix or another path of the same server.
    fn tier(&self, tier: &mut TierPlan) {
        let Ok(entry) = backends::backend(&tier.backend) else { return };
        let folder = self.folder();
        let has_prefix = entry.options.iter().any(|(name, _)| *name == "prefix");
        match entry.caps.location {
            Location::Directory if !tier.location.is_empty() => {
                tier.location = Path::new(&tier.location).join(folder).to_string_lossy().into_owned();
            }
            Location::Url if has_prefix => {
                let prefix = tier.options.entry("prefix".to_owned()).or_insert_with(|| "wavetank".to_owned());
                *prefix = format!("{prefix}.{folder}");
            }
            Location::Url => tier.location = format!("{}/{folder}", tier.location.trim_end_matches('/')),
            _ => {}
        }
    }
}

impl BenchPlan {
    /// What this process does of the plan: with several ranks, each has its own seed and its own place.
    pub(super) fn own_run(&self) -> Plan {
        let mut run = self.run.clone();
        if let Some(rank) = self.rank {
            run.seed = self.seed();
            let storage = run.tiers.iter_mut().filter(|tier| tier.role == TierRole::Storage);
            storage.for_each(|tier| rank.tier(tier));
        }
        run
    }

    /// The seed of this process.
    pub(super) fn seed(&self) -> u64 {
        self.run.seed.wrapping_add(self.rank.map_or(0, |rank| rank.number.into()))
    }

    /// A plan that was read, as the rank that was typed or that a launcher made of this process.
    pub fn joined(mut self, args: &BenchArgs) -> Result<Self> {
        let rank = find(args, variable)?;
        if rank.is_none() && args.ranks.is_none() {
            return Ok(self);
        }
        if let (None, Some(rank)) = (self.rank, rank)
            && self.storage_capacity_gb == 0.0
        {
            let storage = self.run.tiers.iter_mut().filter(|tier| tier.role == TierRole::Storage);
            storage.for_each(|tier| {
                tier.capacity_bytes = tier.capacity_bytes.map(|bytes| bytes / u64::from(rank.of));
            });
        }
        self.rank = rank;
        let mut findings = Findings::default();
        check::rank(&self, &mut findings);
        findings.into_result("the plan cannot be run")?;
        Ok(self)
    }
}

/// The directory of a rank's entries, removed with the run where it was made for it.
pub(super) struct OwnFolder(Option<PathBuf>);

impl OwnFolder {
    /// Notes what there is before the run.
    pub(super) fn before(plan: &BenchPlan, run: &Plan) -> Self {
        let storage = run.storage().filter(|_| plan.rank.is_some() && !run.keep_cache);
        let path = storage.map(|tier| PathBuf::from(&tier.location));
        let is_made = |path: &PathBuf| path.is_absolute() && !path.exists();
        Self(path.filter(is_made))
    }

    /// Removes it once it is empty; what is not ours stays.
    pub(super) fn remove(self) {
        if let Some(path) = self.0 {
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// What this host is called.
pub(super) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(args: &BenchArgs, environment: &[(&str, &str)]) -> Result<Option<Rank>> {
        let value = |wanted: &str| environment.iter().find(|(name, _)| *name == wanted);
        find(args, |name| value(name).map(|(_, value)| (*value).to_owned()))
    }

    fn told(environment: &[(&str, &str)]) -> Option<(u32, u32, Option<u32>, Teller)> {
        let rank = found(&BenchArgs::default(), environment).unwrap()?;
        Some((rank.number, rank.of, rank.local, rank.told_by))
    }

    fn typed(rank: Option<u32>, ranks: Option<u32>) -> BenchArgs {
        BenchArgs { rank, ranks, ..BenchArgs::default() }
    }

    const OPEN_MPI: [(&str, &str); 3] =
        [("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_LOCAL_RANK", "1")];
    const SLURM: [(&str, &str); 3] =
        [("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "5"), ("SLURM_LOCALID", "2")];

    /// Broken by: another order of the launchers, or another variable.
    #[test]
    fn launchers_tell_the_rank() {
        assert_eq!(told(&[]), None);
        assert_eq!(told(&OPEN_MPI), Some((3, 4, Some(1), Teller::OpenMpi)));
        assert_eq!(told(&SLURM), Some((5, 8, Some(2), Teller::Slurm)));
        assert_eq!(told(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]), Some((0, 2, None, Teller::Pmi)));
        let nested = [OPEN_MPI, SLURM].concat();
        assert_eq!(told(&nested), Some((3, 4, Some(1), Teller::OpenMpi)), "mpirun inside a job of Slurm");
    }

    /// Broken by: taking every process of a Slurm job for a rank.
    #[test]
    fn a_batch_script_and_a_launch_of_one_are_no_ranks() {
        let batch =
            [("SLURM_PROCID", "0"), ("SLURM_LOCALID", "0"), ("SLURM_NTASKS", "8"), ("SLURM_JOB_ID", "7")];
        assert_eq!(told(&batch), None);
        assert_eq!(told(&[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")]), None);
    }

    #[test]
    fn what_is_typed_wins() {
        let rank = found(&typed(Some(1), Some(3)), &OPEN_MPI).unwrap().unwrap();
        assert_eq!((rank.number, rank.of, rank.told_by), (1, 3, Teller::Flags));
        assert_eq!(found(&typed(None, Some(1)), &OPEN_MPI).unwrap(), None);
        assert_eq!(found(&typed(Some(0), Some(1)), &OPEN_MPI).unwrap(), None);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let error = |args: &BenchArgs, environment: &[(&str, &str)]| {
            found(args, environment).unwrap_err().to_string().lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(
            error(&typed(Some(1), Some(2_000_000)), &[]),
            "--ranks: must be 1000000 at most, not 2000000"
        );
        assert_eq!(error(&typed(Some(1), None), &[]), "--rank: needs --ranks, how many there are");
        assert_eq!(error(&typed(None, Some(2)), &[]), "--ranks: needs --rank, from 0 on");
        assert_eq!(error(&typed(Some(2), Some(2)), &[]), "--rank: must be below --ranks, which is 2, not 2");
        let none = BenchArgs::default();
        assert_eq!(
            error(&none, &[("PMI_SIZE", "two")]),
            "PMI_SIZE: the environment variable is \"two\", which is no number"
        );
        assert_eq!(
            error(&none, &[("PMI_SIZE", "2"), ("PMI_RANK", "2")]),
            "PMI_RANK: the environment variable is 2, and there are 2 ranks"
        );
        assert!(error(&none, &[("PMI_SIZE", "2")]).starts_with("PMI_RANK: "));
    }

    #[test]
    fn every_rank_has_its_own_files() {
        let rank = Rank { number: 3, of: 4, local: None, told_by: Teller::Flags };
        for (given, own) in [
            ("x.json", "x_rank3.json"),
            ("a.b/x", "a.b/x_rank3"),
            ("/d/run.v1.json", "/d/run.v1_rank3.json"),
            ("log.csv.zst", "log_rank3.csv.zst"),
            (".hidden", ".hidden_rank3"),
        ] {
            assert_eq!(rank.file(Path::new(given)), Path::new(own));
        }
    }

    /// Broken by: two ranks that use one directory, one prefix of a server, or one path of a bucket.
    #[test]
    fn every_rank_has_its_own_place() {
        let rank = Rank { number: 3, of: 4, local: None, told_by: Teller::Flags };
        let place = |backend: &str, location: &str, options: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let mut tier = TierPlan {
                role: TierRole::Storage,
                backend: backend.to_owned(),
                location: location.to_owned(),
                capacity_bytes: None,
                eviction: "lru".to_owned(),
                options: options.iter().map(owned).collect(),
            };
            rank.tier(&mut tier);
            (tier.location, tier.options.remove("prefix"))
        };
        assert_eq!(place("direct", "/kv", &[]), ("/kv/rank_3".to_owned(), None));
        assert_eq!(place("direct", "", &[]), (String::new(), None), "a temporary directory is its own");
        assert_eq!(place("object", "s3://kv/a/", &[]), ("s3://kv/a/rank_3".to_owned(), None));
        let (url, prefix) = place("redis", "redis://h", &[]);
        assert_eq!((url.as_str(), prefix.as_deref()), ("redis://h", Some("wavetank.rank_3")));
        let (_, prefix) = place("redis", "redis://h", &[("prefix", "mine")]);
        assert_eq!(prefix.as_deref(), Some("mine.rank_3"));
    }
}
