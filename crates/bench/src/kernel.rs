//! What the kernel counted of this process's storage I/O: the check on our own counting.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// Bytes that went to and came from storage devices on this process's behalf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelIo {
    /// Read.
    pub read_bytes: u64,
    /// Written.
    pub write_bytes: u64,
}

impl KernelIo {
    /// So far; `None` where the kernel does not tell.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/io").ok()?)
    }

    /// From `before` to now.
    pub(crate) fn since(before: Option<Self>) -> Option<Self> {
        let (before, now) = (before?, Self::now()?);
        Some(Self {
            read_bytes: now.read_bytes.saturating_sub(before.read_bytes),
            write_bytes: now.write_bytes.saturating_sub(before.write_bytes),
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(':')?.trim().parse().ok()
        };
        Some(Self { read_bytes: value("read_bytes")?, write_bytes: value("write_bytes")? })
    }
}

/// Processor time of this process so far.
pub(crate) fn cpu_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

/// Processor time of this thread so far.
pub(crate) fn thread_cpu_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_text_is_understood() {
        let text = "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 7\n";
        assert_eq!(KernelIo::parse(text), Some(KernelIo { read_bytes: 4096, write_bytes: 8192 }));
        assert_eq!(KernelIo::parse("rchar: 1\n"), None);
    }
}
