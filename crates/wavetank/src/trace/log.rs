//! `trace info` of a log of operations: what was done in which tier.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::Value;
use wavetank_model::{Error, Result};
use wavetank_trace::Input;
use wavetank_trace::calls::{self, Call, Operation, Phase, TierCall};

use super::text::Sheet;

/// What is in a log of operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LogInfo {
    /// The file.
    pub file: String,
    /// A row of the storage-call formats.
    pub format: String,
    /// From the first operation to the last, in seconds.
    pub duration_s: f64,
    /// Operations.
    pub total_records: u64,
    /// By kind and tier.
    pub operations: Vec<TierOperations>,
    /// How many were done for what.
    pub phases: BTreeMap<&'static str, u64>,
    /// Different objects.
    pub distinct_keys: u64,
    /// The smallest object.
    pub object_bytes_min: u64,
    /// The largest object.
    pub object_bytes_max: u64,
}

/// Operations of one kind in one tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TierOperations {
    /// The tier, 0 the fastest.
    pub tier: u8,
    /// `read`, `write` or `delete`.
    pub operation: &'static str,
    /// How many.
    pub count: u64,
    /// Bytes of their objects.
    pub bytes: u64,
}

/// Looks into the log `file` of the format called `format`; `-` is standard input.
pub fn log_info(file: &str, format: &str) -> Result<LogInfo> {
    let input = Input::named(file);
    let mut info = LogInfo { file: input.name(), format: format.to_owned(), ..LogInfo::default() };
    let mut counts = BTreeMap::new();
    let mut keys = HashSet::new();
    for call in calls::read(format, &input)? {
        let Call::Tier(call) = call? else {
            return Err(Error::usage(format!("{format} is a format of storage calls"))
                .at("--format")
                .hint("name one of operations on tiers: mlperf-csv"));
        };
        info.see(&call);
        let (count, bytes): &mut (u64, u64) = counts.entry((call.tier, name_of(call.operation))).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(call.bytes);
        keys.insert(call.key);
    }
    info.distinct_keys = keys.len() as u64;
    let row = |((tier, operation), (count, bytes))| TierOperations { tier, operation, count, bytes };
    info.operations = counts.into_iter().map(row).collect();
    Ok(info)
}

impl LogInfo {
    fn see(&mut self, call: &TierCall) {
        let least = if self.total_records == 0 { call.bytes } else { self.object_bytes_min };
        self.object_bytes_min = least.min(call.bytes);
        self.object_bytes_max = self.object_bytes_max.max(call.bytes);
        self.total_records += 1;
        self.duration_s = call.at.as_seconds();
        *self.phases.entry(phase_of(call.phase)).or_default() += 1;
    }

    /// Everything as JSON.
    pub fn json(&self) -> Value {
        serde_json::to_value(self).expect("plain fields become JSON")
    }

    /// The table `trace info` prints.
    pub fn text(&self) -> String {
        let mut sheet = Sheet::default();
        sheet.line("file", &self.file);
        sheet.line("format", &self.format);
        sheet.line("duration", format_args!("{:.3} s", self.duration_s));
        sheet.line("records", self.total_records);
        for TierOperations { tier, operation, count, bytes } in &self.operations {
            sheet.more(format_args!("tier {tier:<4}{operation:<8}{count:>9}{bytes:>18} bytes"));
        }
        sheet.line("keys", format_args!("{} different ones", self.distinct_keys));
        let (least, most) = (self.object_bytes_min, self.object_bytes_max);
        sheet.line("objects", format_args!("{least} to {most} bytes"));
        let phases: Vec<String> = self.phases.iter().map(|(name, count)| format!("{name} {count}")).collect();
        sheet.line("phases", phases.join(", "));
        sheet.into_text()
    }
}

fn name_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Delete => "delete",
    }
}

fn phase_of(phase: Phase) -> &'static str {
    match phase {
        Phase::Prefill => "prefill",
        Phase::Decode => "decode",
        Phase::Evict => "evict",
        Phase::Both => "both",
    }
}
