//! Which tiers there are, what holds their bytes, and how many.

use std::collections::BTreeMap;

use wavetank_bench::TierPlan;
use wavetank_cache::eviction;
use wavetank_model::{Error, Result, TierRole};
use wavetank_store::backend::Location;
use wavetank_store::backends::{self, DeviceMemory, Entry};

use super::args::GpuTier;
use super::draft::{Draft, Memory, gib};
use super::place;

/// What of a real GPU holds KV unless the configuration says otherwise (`gpu_backend`, spec/kv-bench.md 3).
const MEMORY_FRACTION: f64 = 0.8;
const FREE_MEMORY_THRESHOLD: f64 = 0.1;
/// Without a capacity, this share of what is free is used.
const STORAGE_PERCENT: u64 = 95;
/// What the backend of a log of operations is.
const NULL: &str = "null";

/// A tier whose entries are booked, and their bytes not made.
fn booked() -> BTreeMap<String, String> {
    [("moves".to_owned(), "no".to_owned())].into()
}

impl Draft<'_> {
    /// The tiers, fastest first, and whether the last one's directory is made for the run.
    pub(super) fn tiers(&mut self, memory: Memory) -> (Vec<TierPlan>, bool) {
        if let Some(name) = &self.args.eviction {
            self.findings.take(eviction::policy(name).map_err(|error| error.at("--eviction")));
        }
        self.check_memory(memory.cpu_gb);
        let gpu = self.gpu(memory.gpu_gb);
        let cpu = (memory.cpu_gb > 0.0).then(|| self.cpu(gib(memory.cpu_gb)));
        let (storage, is_temporary) = self.storage(memory.storage_gb);
        (gpu.into_iter().chain(cpu).chain([storage]).collect(), is_temporary)
    }

    fn cpu(&self, bytes: u64) -> TierPlan {
        if self.is_logged() {
            return self.tier(TierRole::Cpu, NULL, Some(bytes));
        }
        let mut tier = self.tier(TierRole::Cpu, "memory", Some(bytes));
        if self.args.cpu_mem_backed {
            tier.options.insert(backends::BACKED.to_owned(), true.to_string());
        }
        tier
    }

    /// Main memory that is not there is an error if all of it is to be taken, and none if it is taken as
    /// entries come: few may come.
    fn check_memory(&mut self, gigabytes: f64) {
        let bytes = gib(gigabytes);
        let taken = backends::backed_bytes(bytes);
        let available = self.machine.available_bytes.filter(|available| *available < taken);
        if let Some(available) = available.filter(|_| self.args.cpu_mem_backed && self.takes_memory()) {
            let [taken, available] = [taken, available].map(|bytes| bytes as f64 / gib(1.0) as f64);
            let what = format!(
                "takes {taken:.1} GiB for --cpu-mem-gb {gigabytes}, and {available:.1} are to be had"
            );
            self.findings.wrong("--cpu-mem-backed", format!("{what} — hint: give less --cpu-mem-gb"));
            return;
        }
        if let Some(there) = self.machine.memory_bytes.filter(|there| *there < bytes && self.takes_memory()) {
            let there = there as f64 / gib(1.0) as f64;
            self.warn(format!(
                "--cpu-mem-gb {gigabytes} is more than this machine's {there:.1} GiB of memory"
            ));
        }
    }

    fn takes_memory(&self) -> bool {
        !self.is_logged() && !self.is_simulated()
    }

    /// Whether operations are only logged: no tier holds bytes.
    pub(super) fn is_logged(&self) -> bool {
        self.args.io_trace_log.is_some()
    }

    fn tier(&self, role: TierRole, backend: &str, capacity_bytes: Option<u64>) -> TierPlan {
        TierPlan {
            role,
            backend: backend.to_owned(),
            location: String::new(),
            capacity_bytes,
            eviction: self.args.eviction.clone().unwrap_or_else(|| "lru".to_owned()),
            options: if self.is_logged() { booked() } else { BTreeMap::new() },
        }
    }

    fn gpu(&mut self, gigabytes: f64) -> Option<TierPlan> {
        let kind = self.args.gpu_tier.unwrap_or_default();
        let bytes = gib(gigabytes * f64::from(self.args.num_gpus.unwrap_or(1)));
        if bytes == 0 || kind == GpuTier::Off {
            return None;
        }
        if self.is_logged() {
            return Some(self.tier(TierRole::Gpu, NULL, Some(bytes)));
        }
        match kind {
            GpuTier::Auto if self.is_simulated() && self.args.gpu_mem_gb.is_none() => None,
            // Where there is a device the plan is that of the run it is to be held against.
            GpuTier::Auto if self.is_simulated() && (self.machine.gpu)(self.device_number()).is_err() => {
                Some(self.modelled(bytes))
            }
            GpuTier::Sim => Some(self.modelled(bytes)),
            _ => self.device(kind, bytes),
        }
    }

    /// A modelled GPU: all of its memory holds KV unless the configuration says otherwise.
    fn modelled(&mut self, bytes: u64) -> TierPlan {
        let keys = self.config.gpu;
        let kept_free = keys.free_memory_threshold.unwrap_or(0.0);
        let share = keys.memory_fraction.unwrap_or(1.0).min(1.0 - kept_free);
        let usable = (bytes as f64 * share) as u64;
        self.warn_if_less(usable, bytes);
        self.tier(TierRole::Gpu, "gpu_sim", Some(usable))
    }

    /// A real one, if there is any.
    fn device(&mut self, kind: GpuTier, bytes: u64) -> Option<TierPlan> {
        let number = self.device_number();
        let memory = match (self.machine.gpu)(number) {
            Ok(memory) => memory,
            Err(error) if kind == GpuTier::Auto && self.args.gpu_mem_gb.is_none() => {
                let why = error.to_string();
                let why = why.lines().next().unwrap_or_default();
                self.warn(format!("there is no GPU tier: {why}; --gpu-tier sim models one"));
                return None;
            }
            Err(error) => {
                let why = error.to_string();
                let why = why.lines().next().unwrap_or_default();
                let flag = if kind == GpuTier::Cuda { "--gpu-tier" } else { "--gpu-mem-gb" };
                let hint = "--gpu-tier sim models a GPU, --gpu-mem-gb 0 is none";
                self.findings.wrong(flag, format!("{why} — hint: {hint}"));
                return None;
            }
        };
        let usable = self.usable(memory);
        if usable == 0 {
            let what =
                format!("device {number} has no memory to spare: {} bytes are free", memory.free_bytes);
            self.findings.wrong("--gpu-mem-gb", what);
            return None;
        }
        self.warn_if_less(usable, bytes);
        let tier = self.tier(TierRole::Gpu, "cuda", Some(bytes.min(usable)));
        Some(TierPlan { location: number.to_string(), ..tier })
    }

    fn device_number(&self) -> u32 {
        self.args.gpu_device.or_else(|| self.own_device()).unwrap_or(0)
    }

    /// The ranks of a host take one device each, where there are so many.
    fn own_device(&self) -> Option<u32> {
        self.rank?.local.filter(|local| (self.machine.gpu)(*local).is_ok())
    }

    /// What of a device holds KV: a share of it, as far as enough stays free.
    fn usable(&self, memory: DeviceMemory) -> u64 {
        let keys = self.config.gpu;
        let total = memory.total_bytes as f64;
        let most = total * keys.memory_fraction.unwrap_or(MEMORY_FRACTION);
        let free = total * keys.free_memory_threshold.unwrap_or(FREE_MEMORY_THRESHOLD);
        most.min(memory.free_bytes as f64 - free).max(0.0) as u64
    }

    fn warn_if_less(&mut self, usable: u64, bytes: u64) {
        if usable < bytes {
            let gb = |bytes: u64| bytes as f64 / gib(1.0) as f64;
            self.warn(format!(
                "the GPU tier holds {:.2} GiB instead of {:.2}: gpu_backend.memory_fraction and \
                 .free_memory_threshold keep the rest",
                gb(usable),
                gb(bytes)
            ));
        }
    }

    /// The last tier, and whether its directory is made for the run.
    fn storage(&mut self, gigabytes: f64) -> (TierPlan, bool) {
        let asked = (gigabytes > 0.0).then(|| gib(gigabytes));
        let name = self.args.backend.as_deref().unwrap_or("direct");
        if self.is_logged() {
            return (self.tier(TierRole::Storage, NULL, asked), false);
        }
        let tier = self.tier(TierRole::Storage, name, asked);
        let found = backends::backend(name).map_err(|error| error.at("--backend"));
        let Some(entry) = self.findings.take(found) else { return (tier, false) };
        let options = self.backend_options(entry);
        let (location, is_temporary) = self.location(entry);
        let mut tier = TierPlan { location, options, ..tier };
        let is_placed = is_temporary || !tier.location.is_empty();
        if asked.is_none() && is_placed && entry.caps.location == Location::Directory {
            let folder = if is_temporary { std::env::temp_dir() } else { tier.location.clone().into() };
            let free = place::free_bytes(&folder).map_err(|error| error.at("--cache-dir"));
            let of = self.rank.map_or(1, |rank| u64::from(rank.of));
            tier.capacity_bytes = self.findings.take(free).map(|free| free / 100 * STORAGE_PERCENT / of);
            if of > 1 {
                self.warn(format!(
                    "storage holds 1/{of} of what could be used: ranks may share it; --storage-capacity-gb \
                     says how much each may use"
                ));
            }
        }
        if tier.capacity_bytes.is_none() && entry.caps.location == Location::Device {
            let what = format!("is needed with --backend {name}");
            self.findings.wrong("--storage-capacity-gb", what);
        }
        (tier, is_temporary)
    }

    fn location(&mut self, entry: &Entry) -> (String, bool) {
        let (args, name) = (self.args, entry.name);
        let typed = args.storage_location.clone();
        match entry.caps.location {
            Location::Directory => {
                let Some(directory) = &args.cache_dir else { return (String::new(), true) };
                let path = self.findings.take(place::check(directory)).unwrap_or_default();
                (path.to_string_lossy().into_owned(), false)
            }
            Location::Url => {
                if typed.is_none() {
                    let what = format!("is needed with --backend {name}: the address to store at");
                    self.findings.wrong("--storage-location", what);
                }
                (typed.unwrap_or_default(), false)
            }
            Location::Device => (typed.unwrap_or_default(), false),
            Location::None => (String::new(), false),
        }
    }

    fn backend_options(&mut self, entry: &Entry) -> BTreeMap<String, String> {
        let mut options = BTreeMap::new();
        for typed in &self.args.backend_options {
            match option(entry, typed) {
                Ok((name, value)) if options.contains_key(&name) => {
                    self.findings.wrong("--backend-option", format!("\"{name}\" is given twice ({value})"));
                }
                Ok((name, value)) => drop(options.insert(name, value)),
                Err(error) => self.findings.note(&error.at("--backend-option")),
            }
        }
        if self.args.durable {
            if entry.options.iter().any(|(name, _)| *name == "durable") {
                options.insert("durable".to_owned(), "true".to_owned());
            } else {
                let what = format!("{} does not say when an entry survives a power cut", entry.name);
                self.findings.wrong("--durable", format!("{what} — hint: use direct or buffered"));
            }
        }
        options
    }

    /// What is written before the run, if anything.
    pub(super) fn precondition_bytes(&mut self, storage: Option<&TierPlan>) -> Option<u64> {
        let asked = self.args.precondition_size_gb.unwrap_or(0.0);
        let asked = self.findings.within("--precondition-size-gb", asked, 0.0, f64::from(1 << 30));
        if !self.args.precondition {
            return None;
        }
        let capacity = storage.and_then(|tier| tier.capacity_bytes);
        let bytes =
            if asked > 0.0 { Some(gib(asked)) } else { capacity.map(|bytes| bytes.saturating_mul(2)) };
        if bytes.is_none() {
            let what = "is needed with --precondition where storage has no limit";
            self.findings.wrong("--precondition-size-gb", what);
        }
        bytes
    }
}

/// An option of a backend, `NAME=VALUE`.
pub(crate) fn option(entry: &Entry, typed: &str) -> Result<(String, String)> {
    let (name, value) =
        typed.split_once('=').ok_or_else(|| Error::usage(format!("\"{typed}\" is not NAME=VALUE")))?;
    if entry.options.iter().any(|(known, _)| *known == name) {
        return Ok((name.to_owned(), value.to_owned()));
    }
    let known: Vec<&str> = entry.options.iter().map(|(known, _)| *known).collect();
    let hint =
        if known.is_empty() { "it has none".to_owned() } else { format!("known: {}", known.join(", ")) };
    Err(Error::usage(format!("{} has no option \"{name}\"", entry.name)).hint(hint))
}
