//! `/metrics`, as Prometheus reads them.

use std::fmt::Write;

use super::desk::Desk;

pub(super) const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn metrics(desk: &Desk) -> String {
    let mut text = String::new();
    for (name, help, total) in desk.cache.counters.rows() {
        let _ = writeln!(text, "# HELP wavetank_{name}_total {}", help.trim());
        let _ = writeln!(text, "# TYPE wavetank_{name}_total counter\nwavetank_{name}_total {total}");
    }
    text
}
