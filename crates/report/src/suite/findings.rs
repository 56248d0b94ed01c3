//! What the scenarios say together, in sentences that carry the numbers they come from.

use super::{Figures, SuiteSummary};
use crate::render::suite::short;
use crate::statistics::ratio;
use crate::storage::GIB;

/// Pairs for the same users, of which the first has more memory before the drive.
const PAIRS: [Pair; 5] = [
    ("cpu-only", "storage-only"),
    ("gpu-only", "storage-only"),
    ("gpu-cpu", "cpu-only"),
    ("cpu-storage", "storage-saturation"),
    ("gpu-cpu-storage", "cpu-storage"),
];

/// Scenarios that are about the drive.
const DRIVEN: [&str; 4] = ["storage-only", "cpu-storage", "gpu-cpu-storage", "storage-saturation"];
/// With a smaller part of the bytes read from it, latencies are those of memory.
const DRIVEN_SHARE: f64 = 0.1;

/// Durations that differ by a smaller part are the same.
const SAME_SPAN: f64 = 0.1;

/// Names of two scenarios.
type Pair = (&'static str, &'static str);

/// Two scenarios side by side, if both served anyone.
fn compared((faster, slower): &Pair, [a, b]: &[&Figures; 2]) -> Option<String> {
    let (ours, theirs) = (a.end_to_end_ms?, b.end_to_end_ms?);
    let modelled = if a.modelled_gpu { "; its GPU is modelled" } else { "" };
    let gib = |figures: &Figures| short(figures.memory_bytes as f64 / GIB);
    Some(format!(
        "{faster} ({} GiB of memory) against {slower} ({} GiB), {} users{}: end-to-end P95 {} against {} s, \
         {} against {} tok/s{modelled}",
        gib(a),
        gib(b),
        a.users,
        spans(a.seconds, b.seconds),
        short(ours.p95 / 1000.0),
        short(theirs.p95 / 1000.0),
        short(a.tokens_per_second),
        short(b.tokens_per_second),
    ))
}

/// How long both were measured, where that is not the same.
fn spans(ours: f64, theirs: f64) -> String {
    if (ours - theirs).abs() <= SAME_SPAN * ours.max(theirs) {
        return String::new();
    }
    format!(", measured for {} and {} s", short(ours), short(theirs))
}

impl SuiteSummary {
    /// Everything that follows from the numbers; nothing where scenarios are missing.
    pub fn findings(&self) -> Vec<String> {
        let pairs = PAIRS.iter().filter_map(|pair| Some((pair, self.pair(pair)?)));
        let pairs: Vec<(&Pair, [&Figures; 2])> = pairs.collect();
        let compared: Vec<String> = pairs.iter().filter_map(|(names, both)| compared(names, both)).collect();
        let ran_once = pairs.iter().flat_map(|(_, both)| both).any(|row| row.trials.run == 1);
        let caution =
            "they ran once: how far two runs of one scenario lie apart is not known, --trials 3 says it";
        let caution = (!compared.is_empty() && ran_once).then(|| caution.to_owned());
        let drive = DRIVEN.iter().filter_map(|name| self.not_driven(name)).chain(self.drive());
        let scaled = [self.within_target(), self.peak()].into_iter().flatten();
        compared.into_iter().chain(caution).chain(drive).chain(scaled).collect()
    }

    /// Two scenarios, if they had the same users and the first more memory.
    fn pair(&self, (faster, slower): &Pair) -> Option<[&Figures; 2]> {
        let (a, b) = (self.figures(faster)?, self.figures(slower)?);
        let is_fair = a.users == b.users && a.model == b.model;
        (is_fair && a.memory_bytes > b.memory_bytes).then_some([a, b])
    }

    /// Says so where a scenario is about the drive and hardly read from it.
    fn not_driven(&self, name: &str) -> Option<String> {
        let tiers = &self.figures(name)?.tiers;
        let all: u64 = tiers.iter().map(|tier| tier.read_bytes).sum();
        let storage = tiers.iter().find(|tier| tier.role == "storage")?.read_bytes;
        let gib = |bytes: u64| short(bytes as f64 / GIB);
        (all > 0 && ratio(storage as f64, all as f64) < DRIVEN_SHARE).then(|| {
            let (storage, all) = (gib(storage), gib(all));
            format!("{name} read {storage} of {all} GiB from storage: its latencies are those of memory")
        })
    }

    /// The most that was moved to and from storage.
    fn drive(&self) -> Option<String> {
        let most = |rate: fn(&Figures) -> f64| {
            let rows = self.rows.iter().filter_map(|row| Some((&row.name, rate(row.figures()?))));
            rows.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, rate)| *rate > 0.0)
        };
        let (reader, read) = most(|row| row.storage_read_gbps)?;
        let (writer, written) = most(|row| row.storage_write_gbps)?;
        let (read, written) = (short(read), short(written));
        Some(format!("storage read {read} GiB/s at most ({reader}) and wrote {written} ({writer})"))
    }

    fn within_target(&self) -> Option<String> {
        let row = self.figures("autoscale")?;
        let scaling = row.scaling.as_ref()?;
        Some(match scaling.users_within_target {
            Some(users) => format!(
                "autoscale: {users} users kept within the target, {} were there in the end",
                scaling.final_users
            ),
            None => format!(
                "autoscale: no number of users kept within the target, from {} at first to {} in the end",
                row.users, scaling.final_users
            ),
        })
    }

    fn peak(&self) -> Option<String> {
        let scaling = self.figures("capacity-autoscale")?.scaling.as_ref()?;
        let (users, tokens) = (scaling.peak_users?, scaling.peak_tokens_per_second?);
        Some(format!("capacity-autoscale: {} tok/s at most, with {users} users", short(tokens)))
    }
}
