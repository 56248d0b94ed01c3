//! What is in a recording, to be read by people.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use super::implied::Implied;
use super::info::{LeftOut, Reason, TraceInfo};
use super::keys::LayoutInfo;

/// What names of the reference begin with.
const STORAGE: &str = "lmcache.v1.distributed.storage_manager.StorageManager.";

/// Lines of a name and what is said of it.
#[derive(Default)]
pub(super) struct Sheet {
    text: String,
}

impl Sheet {
    pub(super) fn line(&mut self, name: &str, said: impl Display) {
        let _ = writeln!(self.text, "{name:<13}{said}");
    }

    pub(super) fn more(&mut self, said: impl Display) {
        let _ = writeln!(self.text, "  {said}");
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl TraceInfo {
    /// The table `trace info` prints; `began` is [`TraceInfo::wall_start_s`] as a date.
    pub fn text(&self, began: &str) -> String {
        let mut sheet = Sheet::default();
        sheet.line("file", &self.file);
        sheet.line(
            "format",
            format_args!(
                "{} {}, schema {}, level {}{}",
                self.format,
                self.format_version,
                self.trace_schema_version,
                self.level,
                if self.part > 1 { format!(", part {}", self.part) } else { String::new() },
            ),
        );
        self.operations(began, &mut sheet);
        if self.keys.cells > 0 {
            self.contents(&mut sheet);
            self.outcomes(&mut sheet);
        }
        self.config(&mut sheet);
        for (name, value) in &self.level_meta {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            sheet.line("recorder", format_args!("{name} {value}"));
        }
        self.left_out.say(&mut sheet);
        self.notes.iter().for_each(|note| sheet.line("note", note));
        sheet.text
    }

    fn operations(&self, began: &str, sheet: &mut Sheet) {
        sheet.line("generation", &self.generation);
        sheet.line("began", began);
        sheet.line("duration", format_args!("{:.3} s", self.duration_s));
        sheet.line("records", self.total_records);
        for (name, count) in &self.operations {
            sheet.more(format_args!("{:<34}{count:>9}", name.strip_prefix(STORAGE).unwrap_or(name)));
        }
    }

    fn contents(&self, sheet: &mut Sheet) {
        let keys = &self.keys;
        sheet.line(
            "keys",
            format_args!(
                "{} in calls, {} different ones, {} bytes",
                keys.cells, keys.distinct, keys.distinct_bytes
            ),
        );
        sheet.line("models", keys.models.join(", "));
        let groups: Vec<String> = keys.groups.iter().map(u32::to_string).collect();
        sheet.line("ranks", format_args!("{}; object groups {}", keys.ranks.join(", "), groups.join(", ")));
        match keys.tenants.iter().next() {
            Some((salt, _)) if keys.tenants.len() > 1 || !salt.is_empty() => {
                sheet.line("tenants", listed(&keys.tenants, |salt, keys| format!("{salt:?} {keys} keys")));
            }
            _ => sheet.line("tenants", "none in it: the reference does not record them in schema 1"),
        }
        for layout in self.layouts.iter().take(LAYOUTS) {
            sheet.line("layout", described(layout));
        }
        if self.layouts.len() > LAYOUTS {
            sheet.more(format_args!("and {} more, which --json lists", self.layouts.len() - LAYOUTS));
        }
        let prefetches = &self.prefetches;
        if prefetches.calls > 0 {
            let mean = prefetches.columns as f64 / prefetches.calls as f64;
            sheet.line("prefetches", prefetches.calls);
            sheet.more(format_args!(
                "rows {}; chunks {mean:.1} on average, {} at most; readers {}",
                listed(&prefetches.rows, |rows, calls| format!("{rows} ({calls})")),
                prefetches.columns_max,
                listed(&prefetches.readers, |readers, calls| format!("{readers} ({calls})")),
            ));
            let (full, no_lock, skip_l2) = (prefetches.full, prefetches.no_lock, prefetches.skip_l2);
            sheet.more(format_args!("full {full}, without locks {no_lock}, first tier only {skip_l2}"));
            if !prefetches.windows.is_empty() {
                let windows = listed(&prefetches.windows, |group, windows| {
                    let windows: Vec<String> = windows.iter().map(i32::to_string).collect();
                    format!("group {group}: {} chunks", windows.join(" or "))
                });
                sheet.more(format_args!("sliding windows {windows}"));
            }
        }
    }

    fn outcomes(&self, sheet: &mut Sheet) {
        if let Some(implied) = &self.implied {
            implied_lines(implied, sheet);
        }
        if !self.recorded.is_empty() {
            sheet.line("recorded", listed(&self.recorded, |fate, keys| format!("{fate} {keys}")));
        }
    }
    fn config(&self, sheet: &mut Sheet) {
        let config = &self.config;
        match config.digest_is_right {
            None => sheet.line("config", "none in it"),
            Some(is_right) => {
                let verdict = if is_right { "is that of" } else { "is NOT that of" };
                sheet.line("config", format_args!("digest {} {verdict} its text", config.digest));
            }
        }
        if let Some(digest) = &config.canonical_digest {
            sheet.more(format_args!("{digest} without process numbers and addresses"));
        }
    }
}

impl LeftOut {
    fn say(&self, sheet: &mut Sheet) {
        let mut reasons = |name: &str, reasons: &[Reason]| {
            for Reason { reason, count, first_offset } in reasons {
                sheet.line(name, format_args!("{count}: {reason}, first at byte {first_offset}"));
            }
        };
        reasons("skipped", &self.unknown);
        reasons("damaged", &self.damaged);
        if let Some(offset) = self.cut_at {
            let bytes = self.cut_bytes;
            sheet.line(
                "cut",
                format_args!("it ends within the frame at byte {offset}: {bytes} bytes are lost"),
            );
        }
        if let (Some(offset), Some(reason)) = (self.stopped_at, &self.stopped_because) {
            sheet.line("stopped", format_args!("at byte {offset}: {reason}; what follows is not counted"));
        }
        if self.lost_calls > 0 {
            sheet.line("lost", format_args!("{} calls, which the recorder left out", self.lost_calls));
        }
    }
}

/// Layouts that are listed: objects of a benchmark have a size each.
const LAYOUTS: usize = 8;

fn described(layout: &LayoutInfo) -> String {
    let tensors: Vec<String> = layout
        .shapes
        .iter()
        .zip(&layout.dtypes)
        .map(|(shape, dtype)| format!("{shape:?} {}", dtype.strip_prefix("torch.").unwrap_or(dtype)))
        .collect();
    let size = match (&layout.bytes, &layout.problem) {
        (Some(bytes), _) => format!("{bytes} bytes"),
        (None, problem) => problem.clone().unwrap_or_default(),
    };
    format!("{}: {size}, {} keys", tensors.join(" + "), layout.keys)
}

fn listed<K, V>(counts: &BTreeMap<K, V>, said: impl Fn(&K, &V) -> String) -> String {
    counts.iter().map(|(name, value)| said(name, value)).collect::<Vec<_>>().join(", ")
}

fn implied_lines(implied: &Implied, sheet: &mut Sheet) {
    sheet.line("implied", "what callers did afterwards says what became of keys");
    sheet.more(format_args!(
        "asked {}: found {}, missed {}; {} more without locks, not known",
        implied.asked,
        implied.found,
        implied.missed(),
        implied.unlocked
    ));
    sheet.more(format_args!(
        "read {}, released {}, of them {} unread in {} calls",
        implied.read, implied.released, implied.released_unread, implied.releases_unread
    ));
    sheet.more(format_args!(
        "reserved {}: stored {}, refused {}",
        implied.reserved,
        implied.stored,
        implied.refused()
    ));
    let strays = [
        (implied.released_unasked, "released without a prefetch"),
        (implied.stored_unreserved, "finished without a reservation"),
    ];
    for (keys, what) in strays.into_iter().filter(|(keys, _)| *keys > 0) {
        sheet.more(format_args!("{keys} {what}"));
    }
}
