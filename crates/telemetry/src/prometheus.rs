//! Metrics as Prometheus reads them (text format 0.0.4).

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

/// One number, or one histogram, with its labels. Rows of one name stand together in the text, wherever they
/// are in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name, without prefix, unit and `total`.
    pub name: Cow<'static, str>,
    /// What it says.
    pub help: Cow<'static, str>,
    /// What kind of number it is.
    pub kind: Kind,
    /// `bytes`, `seconds`, …; empty for plain counts.
    pub unit: &'static str,
    /// What tells it from others of its name.
    pub labels: Vec<(&'static str, String)>,
    /// The number.
    pub value: Sample,
}

/// Kinds of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How many were how large.
    Histogram,
}

/// A number, or a histogram.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// A whole number.
    Count(u64),
    /// Any number.
    Number(f64),
    /// How many were at most each bound, without what was at most a smaller one; then how many were above.
    Buckets {
        /// Bounds, growing.
        bounds: Vec<f64>,
        /// One more than bounds.
        counts: Vec<u64>,
        /// All of them added up.
        sum: f64,
    },
}

impl Row {
    /// Something that only grows.
    pub fn counter(
        name: impl Into<Cow<'static, str>>,
        help: impl Into<Cow<'static, str>>,
        count: u64,
    ) -> Self {
        Self::of(name.into(), help.into(), Kind::Counter, Sample::Count(count))
    }

    /// Something that goes up and down.
    pub fn gauge(
        name: impl Into<Cow<'static, str>>,
        help: impl Into<Cow<'static, str>>,
        number: f64,
    ) -> Self {
        Self::of(name.into(), help.into(), Kind::Gauge, Sample::Number(number))
    }

    /// How many were how large: [`Sample::Buckets`].
    pub fn histogram(
        name: impl Into<Cow<'static, str>>,
        help: impl Into<Cow<'static, str>>,
        buckets: Sample,
    ) -> Self {
        Self::of(name.into(), help.into(), Kind::Histogram, buckets)
    }

    fn of(name: Cow<'static, str>, help: Cow<'static, str>, kind: Kind, value: Sample) -> Self {
        Self { name, help, kind, unit: "", labels: Vec::new(), value }
    }

    /// In this unit.
    pub fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// With one more label.
    pub fn label(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.labels.push((name, value.into()));
        self
    }
}

/// What metrics are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// `wavetank_…`.
    #[default]
    Ours,
    /// Those, and those of the reference that have a true value here, so that its dashboards work.
    WithReference,
}

/// What the reference calls our rows, and its unit (spec/storage-trace.md 5).
pub const REFERENCE: &[(&str, &str, &str)] = &[
    ("l1_hits", "l1_read", "chunks"),
    ("stores", "l1_write", "chunks"),
    ("l1_evictions", "l1_evicted", "chunks"),
    ("refused_stores", "l1_allocation_failure", "chunks"),
    ("l2_hits", "l2_prefetch_load_completed", "chunks"),
    ("l2_failures", "l2_prefetch_failure", "chunks"),
    ("l2_evictions", "l2_evicted_objects", "chunks"),
    ("l2_stores_submitted", "l2_store_submitted_objects", "chunks"),
    ("l2_stores_completed", "l2_store_completed_objects", "chunks"),
    ("lookup_requests", "lookups", "requests"),
    ("lookup_early_exits", "lookup_early_exit", "requests"),
    ("lookup_requested_tokens", "lookup_requested", "tokens"),
    ("lookup_hit_tokens", "lookup_hit", "tokens"),
    ("lookup_l1_hit_tokens", "lookup_hit_l1", "tokens"),
    ("lookup_l2_hit_tokens", "lookup_hit_l2", "tokens"),
    ("lookup_l1_hit_keys", "lookup_hit_l1_keys", "keys"),
    ("lookup_l2_hit_keys", "lookup_hit_l2_keys", "keys"),
    ("stores_submitted", "num_submitted_stores", ""),
    ("stores_finished", "num_finished_stores", ""),
    ("retrieves_submitted", "num_submitted_retrieves", ""),
    ("retrieves_finished", "num_finished_retrieves", ""),
    ("chunks_loaded", "num_chunks_loaded", ""),
    ("eviction_looks", "l1_eviction_loop_ticks", ""),
    ("eviction_rounds", "l1_eviction_loop_triggered", ""),
    ("trace_events_lost", "event_bus_dropped_events", ""),
    ("trace_events_queued", "event_bus_queue_depth", ""),
    ("l1_used", "l1_memory_usage_bytes", ""),
    ("l1_usage_ratio", "l1_usage_ratio", ""),
    ("l1_staging", "l1_staging_bytes", ""),
    ("l2_used", "l2_usage_bytes", ""),
    ("l2_stores_in_flight", "num_inflight_l2_stores", ""),
    ("l2_loads_in_flight", "num_inflight_l2_loads", ""),
    ("l2_tiers", "l2_store_adapters", ""),
];

/// The type of the text, for HTTP.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The rows as text.
pub fn render(rows: &[Row], names: Names) -> String {
    let mut text = String::with_capacity(rows.len() * 128);
    write_all(&mut text, rows, |row| Some(full_name("wavetank_", &row.name, row.unit, row.kind)));
    if names == Names::WithReference {
        write_all(&mut text, rows, |row| {
            let (_, theirs, unit) = REFERENCE.iter().find(|(ours, ..)| *ours == row.name)?;
            Some(full_name("lmcache_mp_", theirs, unit, row.kind))
        });
    }
    text
}

/// The rows as text, with names that begin with `prefix`.
pub fn render_under(prefix: &str, rows: &[Row]) -> String {
    let mut text = String::with_capacity(rows.len() * 128);
    write_all(&mut text, rows, |row| Some(full_name(prefix, &row.name, row.unit, row.kind)));
    text
}

/// Rows of one name follow each other, after one line of help and one of type.
fn write_all(text: &mut String, rows: &[Row], name_of: impl Fn(&Row) -> Option<String>) {
    let mut families: Vec<(String, Vec<&Row>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for row in rows {
        let Some(name) = name_of(row) else { continue };
        let place = *places.entry(name).or_insert_with_key(|name| {
            families.push((name.clone(), Vec::new()));
            families.len() - 1
        });
        families[place].1.push(row);
    }
    for (name, rows) in families {
        let kind = match rows[0].kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = rows[0].help.trim().replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        rows.into_iter().for_each(|row| write_row(text, &name, row));
    }
}

fn full_name(prefix: &str, name: &str, unit: &str, kind: Kind) -> String {
    let mut full = format!("{prefix}{name}");
    let mut suffix = |suffix: &str| {
        if !suffix.is_empty() && !full.ends_with(&format!("_{suffix}")) {
            full.push('_');
            full.push_str(suffix);
        }
    };
    suffix(unit);
    if kind == Kind::Counter {
        suffix("total");
    }
    full
}

fn write_row(text: &mut String, name: &str, row: &Row) {
    let labels = labels(&row.labels);
    match &row.value {
        Sample::Count(count) => {
            let _ = writeln!(text, "{name}{} {count}", braced(&labels));
        }
        Sample::Number(number) => {
            let _ = writeln!(text, "{name}{} {}", braced(&labels), shown(*number));
        }
        Sample::Buckets { bounds, counts, sum } => {
            let mut so_far = 0;
            let more = if labels.is_empty() { String::new() } else { format!("{labels},") };
            let bounds = bounds.iter().copied().chain([f64::INFINITY]);
            for (bound, count) in bounds.zip(counts) {
                so_far += count;
                let _ = writeln!(text, "{name}_bucket{{{more}le=\"{}\"}} {so_far}", bound_text(bound));
            }
            let (braced, sum) = (braced(&labels), shown(*sum));
            let _ = writeln!(text, "{name}_sum{braced} {sum}\n{name}_count{braced} {so_far}");
        }
    }
}

fn labels(labels: &[(&'static str, String)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    pairs.join(",")
}

fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}

/// A bound is text to who compares buckets, so it is written as the official clients do: `1.0`, `1e+06`.
fn bound_text(bound: f64) -> String {
    if bound.is_infinite() {
        return shown(bound);
    }
    match format!("{bound:e}").split_once('e') {
        Some((digits, exponent)) if bound >= 1e6 => format!("{digits}e+{exponent:0>2}"),
        _ => format!("{bound:?}"),
    }
}

fn shown(number: f64) -> String {
    match number {
        _ if number == f64::INFINITY => "+Inf".to_owned(),
        _ if number == f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_text() {
        let buckets = Sample::Buckets { bounds: vec![0.1, 1.0], counts: vec![2, 0, 1], sum: 7.5 };
        let rows = [
            Row::counter("l2_hits", "Objects\nfound.", 3).label("l2", "a \"b\" \\ c\nd"),
            Row::gauge("l1_used", "Bytes in memory.", 0.5).unit("bytes"),
            Row::counter("l2_hits", "Objects found.", 4).label("l2", "e"),
            Row::histogram("wait", "Waiting.", buckets).unit("seconds").label("q", "1"),
            Row::counter("sent_bytes", "Bytes sent.", 1).unit("bytes"),
        ];
        let ours = "# HELP wavetank_l2_hits_total Objects\\nfound.\n\
            # TYPE wavetank_l2_hits_total counter\n\
            wavetank_l2_hits_total{l2=\"a \\\"b\\\" \\\\ c\\nd\"} 3\n\
            wavetank_l2_hits_total{l2=\"e\"} 4\n\
            # HELP wavetank_l1_used_bytes Bytes in memory.\n\
            # TYPE wavetank_l1_used_bytes gauge\n\
            wavetank_l1_used_bytes 0.5\n\
            # HELP wavetank_wait_seconds Waiting.\n\
            # TYPE wavetank_wait_seconds histogram\n\
            wavetank_wait_seconds_bucket{q=\"1\",le=\"0.1\"} 2\n\
            wavetank_wait_seconds_bucket{q=\"1\",le=\"1.0\"} 2\n\
            wavetank_wait_seconds_bucket{q=\"1\",le=\"+Inf\"} 3\n\
            wavetank_wait_seconds_sum{q=\"1\"} 7.5\n\
            wavetank_wait_seconds_count{q=\"1\"} 3\n\
            # HELP wavetank_sent_bytes_total Bytes sent.\n\
            # TYPE wavetank_sent_bytes_total counter\n\
            wavetank_sent_bytes_total 1\n";
        assert_eq!(render(&rows, Names::Ours), ours);
        let both = render(&rows, Names::WithReference);
        let theirs = both.strip_prefix(ours).expect("ours come first");
        assert!(theirs.contains("\nlmcache_mp_l2_prefetch_load_completed_chunks_total{l2=\"e\"} 4\n"));
        assert!(theirs.contains("\nlmcache_mp_l1_memory_usage_bytes 0.5\n"), "{theirs}");
        assert!(!theirs.contains("wait"), "the reference has no such thing");
    }

    /// Broken by: bounds that other clients would write otherwise.
    #[test]
    fn bounds_are_written_as_others_write_them() {
        let bounds = [0.001, 0.25, 1.0, 2560.0, 500_000.0, 1e6, 2e7, f64::INFINITY];
        let texts = ["0.001", "0.25", "1.0", "2560.0", "500000.0", "1e+06", "2e+07", "+Inf"];
        assert_eq!(bounds.map(bound_text), texts);
    }

    /// Broken by: two of ours with one name of theirs, which a reader would refuse.
    #[test]
    fn names_of_the_reference_are_used_once() {
        for (place, (ours, theirs, _)) in REFERENCE.iter().enumerate() {
            assert!(REFERENCE[..place].iter().all(|(o, t, _)| o != ours && t != theirs), "{ours} {theirs}");
        }
    }
}
