//! Whether anybody else works on the machine: processors, the drives below the directory, and other machines
//! on the same hardware. What is measured beside others is theirs too.
//!
//! Reference: proc(5) for `stat` and `loadavg`; Documentation/block/stat.rst of the kernel for a drive's.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::super::finding::Finding;
use super::super::subject::Subject;
use super::Check;
use crate::host::{Ticks, disks_below};

pub(super) const ENTRY: Check =
    Check { name: "load", about: "whether processors and drives are busy with something else", look };

/// How long is watched.
const WATCHED: Duration = Duration::from_millis(250);
/// What a machine does by itself.
const NOTABLE: f64 = 0.1;
/// Nothing that is measured here is right.
const BUSY: f64 = 0.5;
/// Time that other machines take is missing in the middle of what is measured.
const STOLEN: f64 = 0.02;
const REMEDY: &str = "end what runs beside it and look again: ps -eo pcpu,pid,comm --sort=-pcpu | head";
const DRIVE_REMEDY: &str = "end what reads and writes there and look again: iotop -o, or pidstat -d 1";

/// What was seen, as parts of the time that was watched.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    /// Processes that wanted to run, on average over the last minute.
    load: Option<f64>,
    /// What processors worked.
    busy: Option<f64>,
    /// What other machines took.
    stolen: Option<f64>,
    /// What each drive worked.
    drives: Vec<(String, f64)>,
}

fn look(subject: &Subject) -> Finding {
    let disks = subject.mount().map(|mount| disks_below(&subject.host, &mount)).unwrap_or_default();
    let start = Instant::now();
    let before: Vec<Option<u64>> = disks.iter().map(|disk| busy_ms(&disk.whole)).collect();
    let ticks = subject.host.ticks();
    thread::sleep(WATCHED);
    let (busy, stolen) = shares(ticks, subject.host.ticks()).unzip();
    let elapsed = start.elapsed().as_secs_f64() * 1e3;
    let drives = disks.iter().zip(before).filter_map(|(disk, before)| {
        let name = disk.whole.file_name()?.to_string_lossy().into_owned();
        let worked = busy_ms(&disk.whole)?.saturating_sub(before?);
        Some((name, (worked as f64 / elapsed).min(1.0)))
    });
    let drives = drives.collect();
    judged(&Seen { load: subject.host.load(), busy, stolen, drives }, subject.processors)
}

/// What processors worked between two looks, and what was taken from them.
fn shares(before: Option<Ticks>, after: Option<Ticks>) -> Option<(f64, f64)> {
    let (before, after) = (before?, after?);
    let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
    let idle = after.idle.saturating_sub(before.idle);
    let stolen = after.stolen.saturating_sub(before.stolen);
    let share = |ticks: u64| ticks as f64 / all as f64;
    Some((share(all.saturating_sub(idle + stolen)), share(stolen)))
}

/// For how long a drive had something to do since it is there: the tenth number of its `stat`.
fn busy_ms(drive: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(drive.join("stat")).ok()?;
    text.split_whitespace().nth(9)?.parse().ok()
}

fn judged(seen: &Seen, processors: u32) -> Finding {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let (busy, stolen) = (seen.busy.unwrap_or(0.0), seen.stolen.unwrap_or(0.0));
    let drive = seen.drives.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let crowded = seen.load.is_some_and(|load| load >= f64::from(processors));
    let mut parts =
        vec![format!("processors {} busy", seen.busy.map_or("not known how".to_owned(), percent))];
    parts.extend(seen.load.map(|load| format!("load {load:.1} on {processors}")));
    parts.extend(seen.stolen.filter(|share| *share > 0.0).map(|share| format!("{} stolen", percent(share))));
    parts.extend(seen.drives.iter().map(|(name, share)| format!("{name} {} busy", percent(*share))));
    let told = parts.join(", ");
    let finding = if busy >= BUSY {
        Finding::problem(format!("{told}: what is measured now is wrong"), REMEDY)
    } else if drive >= BUSY {
        Finding::problem(format!("{told}: what is measured now is wrong"), DRIVE_REMEDY)
    } else if stolen >= STOLEN {
        let remedy = "other machines on the same hardware take processor time: measure on one of its own, or \
                      often, and compare";
        Finding::note(told, remedy)
    } else if busy >= NOTABLE || crowded {
        Finding::note(told, REMEDY)
    } else if drive >= NOTABLE {
        Finding::note(told, DRIVE_REMEDY)
    } else {
        Finding::ok(told)
    };
    let drives: serde_json::Map<_, _> =
        seen.drives.iter().map(|(name, share)| (name.clone(), (*share).into())).collect();
    finding
        .with("busy", seen.busy)
        .with("stolen", seen.stolen)
        .with("load_1min", seen.load)
        .with("drives_busy", drives)
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    fn seen(busy: f64) -> Seen {
        Seen { load: Some(0.5), busy: Some(busy), stolen: Some(0.0), drives: vec![("sda".to_owned(), 0.01)] }
    }

    #[test]
    fn who_works_beside_is_told() {
        let verdict = |seen: Seen| judged(&seen, 2).verdict;
        assert_eq!(judged(&seen(0.03), 2).found, "processors 3 % busy, load 0.5 on 2, sda 1 % busy");
        assert_eq!(verdict(seen(0.03)), Verdict::Ok);
        assert_eq!(verdict(seen(0.2)), Verdict::Note);
        assert_eq!(verdict(seen(0.7)), Verdict::Problem);
        assert_eq!(verdict(Seen { load: Some(2.0), ..seen(0.0) }), Verdict::Note);
        assert_eq!(verdict(Seen { stolen: Some(0.05), ..seen(0.0) }), Verdict::Note);
        let drive = Seen { drives: vec![("sda".to_owned(), 0.9)], ..seen(0.0) };
        assert!(judged(&drive, 2).remedy.unwrap().contains("iotop"));
        assert_eq!(verdict(Seen::default()), Verdict::Ok);
    }

    /// Broken by: time of other machines counted as work of this one.
    #[test]
    fn shares_are_of_the_time_between_two_looks() {
        let ticks = |all, idle, stolen| Some(Ticks { all, idle, stolen });
        assert_eq!(shares(ticks(100, 50, 0), ticks(200, 110, 20)), Some((0.2, 0.2)));
        assert_eq!(shares(ticks(100, 50, 0), ticks(100, 50, 0)), None, "nothing passed");
        assert_eq!(shares(None, ticks(1, 1, 1)), None);
    }

    #[test]
    fn a_machine_whose_counters_stand_still_is_not_known() {
        let machine = Machine::sound();
        machine.system.write("/sys/devices/sda/stat", "1 2 3 4 5 6 7 8 9 400 11\n");
        let found = look(&machine.subject());
        assert_eq!(found.found, "processors not known how busy, load 0.1 on 2, sda 0 % busy");
    }
}
