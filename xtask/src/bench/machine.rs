//! What a record says about where its numbers come from: machine, revision, compiler, date. Linux only.

#[path = "../../../crates/cli/revision.rs"]
mod commit;

use std::fs;
use std::path::Path;

use crate::process::text_of;

/// Facts about this machine, one per line.
pub(super) fn describe() -> Result<String, String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|e| format!("{path}: {e}"));
    let (cpu, memory) = (read("/proc/cpuinfo")?, read("/proc/meminfo")?);
    let cores = std::thread::available_parallelism().map_err(|e| format!("number of cores: {e}"))?;
    let kernel = read("/proc/sys/kernel/osrelease")?;
    Ok(format!(
        "- CPU: {}, {cores} cores\n- memory: {}\n- kernel: Linux {}\n- compiler: {}\n",
        field(&cpu, "model name").unwrap_or("unknown"),
        field(&memory, "MemTotal").map_or_else(|| "unknown".to_owned(), gibibytes),
        kernel.split(['-', '\n']).next().unwrap_or_default(),
        text_of("rustc", &["--version"])?,
    ))
}

/// The commit, with `-dirty` when tracked files differ from it.
pub(super) fn revision() -> String {
    commit::revision(Path::new("."), &["."]).unwrap_or_else(|| "no-commit".to_owned())
}

/// Today, as `YYYY-MM-DD`.
pub(super) fn today() -> Result<String, String> {
    text_of("date", &["+%F"])
}

/// The value of the first `name : value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// `12345 kB`, as the kernel writes it, in GiB.
fn gibibytes(kilobytes: &str) -> String {
    let number: Option<f64> = kilobytes.split_whitespace().next().and_then(|word| word.parse().ok());
    number.map_or_else(|| kilobytes.to_owned(), |kib| format!("{:.1} GiB", kib / (1 << 20) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t: 1\nmodel name\t: A CPU @ 2 GHz: fast\nmodel name\t: B\n";
        assert_eq!(field(text, "model name"), Some("A CPU @ 2 GHz: fast"));
        assert_eq!(field(text, "name"), None);
    }

    #[test]
    fn memory_is_shown_in_gib() {
        assert_eq!(gibibytes("16777216 kB"), "16.0 GiB");
        assert_eq!(gibibytes("much"), "much");
    }
}
