//! The bpftrace program: which events are looked at, and what is made of them.
//!
//! Only tracepoints: they are there without probes into functions, and keep their names from one kernel to
//! the next. Events of a disk are everybody's, since the kernel completes requests in whatever process it is
//! in; calls are ours. Nothing is counted outside the window: this process calls `kill(itself, 0)`, which
//! does nothing, when the window opens and when it closes.

use std::path::Path;

use super::device::{Device, Disk};

/// What there has to be.
pub(super) const NEEDED: [&str; 4] =
    ["block/block_bio_queue", "block/block_rq_issue", "block/block_rq_complete", "syscalls/sys_enter_kill"];
/// What the program says when it looks at everything.
pub(super) const ATTACHED: &str = "attached";
/// How often the window's edges were seen.
pub(super) const PHASE: &str = "phase";
/// Ends of bios that never become requests of their own.
const MERGES: [&str; 2] = ["block/block_bio_backmerge", "block/block_bio_frontmerge"];
const SPLIT: &str = "block/block_split";
/// A request of io_uring, from when it is submitted to when its completion is posted.
const RING: [&str; 2] = ["io_uring/io_uring_submit_req", "io_uring/io_uring_complete"];
/// Calls and what is made of their times.
const CALLS: [(&str, &str); 4] = [
    ("pread64", "vfs_us[\"read\"]"),
    ("pwrite64", "vfs_us[\"write\"]"),
    ("fsync", "fsync_us"),
    ("fdatasync", "fsync_us"),
];

/// The program for `process` and `disks`, of those events that are in the folder `events`.
pub(super) fn script(process: u32, disks: &[Disk], events: &Path) -> String {
    let is_there = |event: &&str| events.join(event).exists();
    let to_itself = format!("pid == {process} && args->pid == {process} && args->sig == 0");
    let mut text = format!(
        "BEGIN {{ @phase = 0; printf(\"{ATTACHED}\\n\"); }}\n\
         tracepoint:syscalls:sys_enter_kill /{to_itself}/ {{\n  @phase = @phase + 1;\n}}\n"
    );
    text += &block(disks, &is_there);
    if RING.iter().all(is_there) {
        text += &ring(process);
    }
    for (call, times) in CALLS {
        let [enter, exit] = ["enter", "exit"].map(|edge| format!("syscalls/sys_{edge}_{call}"));
        if is_there(&enter.as_str()) && is_there(&exit.as_str()) {
            text += &timed(process, call, times);
        }
    }
    text + "END { clear(@queued); clear(@issued); clear(@under_way); clear(@reading); clear(@writing); \
            clear(@called); }\n"
}

/// Requests of the disks.
fn block(disks: &[Disk], is_there: &dyn Fn(&&str) -> bool) -> String {
    let one_of = |devices: &mut dyn Iterator<Item = Device>| {
        let mut numbers: Vec<u32> = devices.map(Device::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let tests: Vec<String> = numbers.iter().map(|number| format!("args->dev == {number}")).collect();
        format!("({})", tests.join(" || "))
    };
    let ours = one_of(&mut disks.iter().flat_map(|disk| [disk.named, disk.disk]));
    let of_disk = one_of(&mut disks.iter().map(|disk| disk.disk));
    let parts = disks.iter().filter(|disk| disk.named != disk.disk);
    let disk = parts.fold("args->dev".to_owned(), |rest, Disk { named, disk }| {
        format!("(args->dev == {} ? {} : {rest})", named.number(), disk.number())
    });
    let mut text = format!(
        "tracepoint:block:block_bio_queue /@phase == 1 && {ours}/ {{\n  \
           @queued[{disk}, args->sector] = nsecs;\n}}\n"
    );
    if is_there(&SPLIT) {
        text += &format!(
            "tracepoint:block:block_split /@phase == 1 && {ours}/ {{\n  \
               @queued[{disk}, args->new_sector] = @queued[{disk}, args->sector];\n}}\n"
        );
    }
    for merge in MERGES.iter().filter(|merge| is_there(merge)) {
        let event = merge.replace('/', ":");
        text += &format!("tracepoint:{event} /{ours}/ {{\n  delete(@queued[{disk}, args->sector]);\n}}\n");
    }
    let way = "$way = strncmp(args->rwbs, \"R\", 1) == 0 ? \"read\" : \
               (strncmp(args->rwbs, \"W\", 1) == 0 ? \"write\" : \"other\");";
    let key = "args->dev, args->sector";
    text += &format!(
        "tracepoint:block:block_rq_issue /@phase == 1 && {of_disk}/ {{\n  {way}\n  \
           $queued = @queued[{key}];\n  \
           if ($queued) {{\n    @q2d_us[$way] = hist((nsecs - $queued) / 1000);\n    \
             delete(@queued[{key}]);\n  }}\n  \
           @issued[{key}] = nsecs;\n  \
           @under_way = @under_way + 1;\n  @queue_depth = hist(@under_way);\n  \
           @block_bytes[$way] = hist(args->bytes);\n}}\n"
    );
    // What was issued within the window counts, also when it completes after it.
    text + &format!(
        "tracepoint:block:block_rq_complete /@phase > 0 && {of_disk}/ {{\n  {way}\n  \
           $issued = @issued[{key}];\n  \
           if ($issued) {{\n    @d2c_us[$way] = hist((nsecs - $issued) / 1000);\n    \
             delete(@issued[{key}]);\n    @under_way = @under_way - 1;\n  }}\n}}\n"
    )
}

/// Reads and writes through io_uring, by the kernel's numbers of operations (`io_uring.h`): vectored,
/// registered, plain.
fn ring(process: u32) -> String {
    let done = |map: &str, way: &str| {
        format!(
            "  $begun = @{map}[(uint64)args->req];\n  if ($begun) {{\n    \
               @vfs_us[\"{way}\"] = hist((nsecs - $begun) / 1000);\n    \
               delete(@{map}[(uint64)args->req]);\n  }}\n"
        )
    };
    let is = |codes: [u8; 3]| codes.map(|code| format!("args->opcode == {code}")).join(" || ");
    format!(
        "tracepoint:io_uring:io_uring_submit_req /@phase == 1 && pid == {process}/ {{\n  \
           if ({}) {{ @reading[(uint64)args->req] = nsecs; }}\n  \
           if ({}) {{ @writing[(uint64)args->req] = nsecs; }}\n}}\n\
         tracepoint:io_uring:io_uring_complete /@phase > 0/ {{\n{}{}}}\n",
        is([1, 4, 22]),
        is([2, 5, 23]),
        done("reading", "read"),
        done("writing", "write"),
    )
}

/// A call, from its begin to its end, by thread.
fn timed(process: u32, call: &str, times: &str) -> String {
    format!(
        "tracepoint:syscalls:sys_enter_{call} /@phase == 1 && pid == {process}/ {{ @called[tid] = nsecs; }}\n\
         tracepoint:syscalls:sys_exit_{call} /@called[tid]/ {{\n  \
           @{times} = hist((nsecs - @called[tid]) / 1000);\n  delete(@called[tid]);\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_a_partition_and_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        for event in NEEDED.iter().chain(&MERGES[..1]).chain(&RING).chain(&[
            SPLIT,
            "syscalls/sys_enter_fsync",
            "syscalls/sys_exit_fsync",
            "syscalls/sys_enter_pread64",
        ]) {
            std::fs::create_dir_all(folder.path().join(event)).unwrap();
        }
        let device = |minor| Device { major: 259, minor };
        let disks = [Disk { named: device(2), disk: device(0) }, Disk { named: device(1), disk: device(1) }];
        insta::assert_snapshot!(script(4242, &disks, folder.path()));
    }
}
