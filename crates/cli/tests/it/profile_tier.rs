//! `profile tier`: a table, a file, what changed since, and nothing left behind.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;

const SOON: Duration = Duration::from_secs(20);
/// Six points, a few milliseconds each.
const SMALL: &str = "--sizes 16KiB,64KiB --depths 2 --seconds-per-point 0.01 --sustained-seconds 0.05 \
    --size-gb 0.001 --threads 2";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("kv/mine", "stays");
    sandbox
}

/// Broken by: a point without a row, a file that another run cannot read, or entries that stay.
#[test]
fn a_directory_is_measured_and_left_as_it_was() {
    let sandbox = sandbox();
    let run = sandbox.run(&format!("profile tier kv --backend buffered {SMALL} -o kv.toml"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.starts_with("wavetank profile tier\nBackend: buffered ("), "{}", run.stdout);
    for words in [
        "reads",
        "50 % reads",
        "writes",
        "2 threads",
        "3 passes",
        "16 KiB",
        "64 KiB",
        "Sustained writes of 64 KiB",
    ] {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
    assert!(run.stdout.ends_with("Saved profile to: kv.toml\n"), "{}", run.stdout);
    assert_eq!(sandbox.names_in("kv"), ["mine"]);
    let text = sandbox.read("kv.toml");
    assert!(text.starts_with("layout = \"wavetank-tier/1\"\npartial = false\n"), "{text}");
    for setting in ["passes = 3\n", "entries_max = 4096\n", "threads = 2\n"] {
        assert!(text.contains(setting), "{setting}: {text}");
    }
    assert_eq!(text.matches("[[points]]").count(), 10);

    let again =
        sandbox.run(&format!("profile tier kv --backend buffered {SMALL} -o kv.json --against kv.toml"));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stdout.contains(" of 6 points changed by more than passes differ"), "{}", again.stdout);
    assert!(again.stdout.contains("\nDrift: "), "{}", again.stdout);
    let json = sandbox.report("kv.json");
    assert_eq!(json.json()["points"].as_array().unwrap().len(), 10);
    assert_eq!(json.json()["origin"]["backend"], "buffered");
    assert_eq!(sandbox.names_in("kv"), ["mine"]);
}

/// Broken by: memory that is described as the directory the command runs in.
#[test]
fn memory_has_no_place() {
    let sandbox = Sandbox::empty();
    let run = sandbox.run(&format!("profile tier memory {SMALL} -o m.json"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report = sandbox.report("m.json");
    assert_eq!(report.json()["origin"]["location"], "");
    assert!(report.json()["origin"].get("file_system").is_none());
}

/// Broken by: a signal that loses what was measured, leaves entries, or is not told by the exit code.
#[test]
fn ctrl_c_keeps_what_was_measured() {
    let sandbox = sandbox();
    let line = "profile tier kv --backend buffered --sizes 16KiB --depths 1,2,3,4,5,6,7,8 --passes 1 \
                --seconds-per-point 0.5 --sustained-seconds 0 --size-gb 0.001 -o kv.toml";
    let running = sandbox.start(line, Stdio::null());
    std::thread::sleep(Duration::from_secs(4));
    running.interrupt();
    let run = running.finish(SOON);
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert_eq!(sandbox.names_in("kv"), ["mine"]);
    assert!(run.stdout.starts_with("wavetank profile tier (partial)\n"), "{}{}", run.stdout, run.stderr);
    let text = sandbox.read("kv.toml");
    assert!(text.contains("\npartial = true\n"), "{text}");
    assert!((1..30).contains(&text.matches("[[points]]").count()), "{text}");
}

/// Broken by: a signal that ends the process before what it wrote is removed, though there is no point yet.
#[test]
fn ctrl_c_before_the_first_point_leaves_nothing() {
    let sandbox = sandbox();
    let line = "profile tier kv --backend buffered --sizes 16KiB --depths 2 --sustained-seconds 600 \
                --size-gb 0.001 -o kv.toml";
    let running = sandbox.start(line, Stdio::null());
    let deadline = Instant::now() + SOON;
    while sandbox.names_in("kv").len() < 2 {
        assert!(Instant::now() < deadline, "nothing is written");
        std::thread::sleep(Duration::from_millis(10));
    }
    running.interrupt();
    let run = running.finish(SOON);
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(
        run.stderr.contains("before the first point was measured: there is no profile"),
        "{}",
        run.stderr
    );
    assert_eq!(sandbox.names_in("kv"), ["mine"]);
    assert_eq!(sandbox.names_in(""), ["kv"]);
}

/// Broken by: a machine without a GPU that is told so late, or not what to do.
#[test]
fn a_missing_driver_is_named() {
    if Path::new("/dev/nvidiactl").exists() {
        return;
    }
    let sandbox = Sandbox::empty();
    for line in ["cuda", "cuda:1"] {
        let run = sandbox.run(&format!("profile tier {line} {SMALL} -o gpu.toml"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}");
        assert!(run.stderr.starts_with("error: cuda: no NVIDIA d"), "{}", run.stderr);
        assert!(run.stderr.contains("\nhint: the gpu_sim backend models a GPU"), "{}", run.stderr);
    }
    assert!(sandbox.names_in("").is_empty());
    let modelled = sandbox.run(&format!("profile tier gpu_sim {SMALL}"));
    assert_eq!(modelled.code, Some(0), "the hint can be followed: {}", modelled.stderr);
}

/// Broken by: a refusal that comes after measuring, or does not name what is wrong.
#[test]
fn what_cannot_be_measured_is_refused_first() {
    let sandbox = sandbox();
    sandbox.write("bad.toml", "layout = \"wavetank-tier/1\"\npartial = 3\n");
    for (line, expected) in [
        ("nowhere", "nowhere: cannot be used: "),
        ("bad.toml", "bad.toml: is not a directory"),
        ("null", "null: null holds no bytes"),
        ("memory --size-gb 0.01", "--size-gb: must be at least "),
        ("memory --threads 0", "--threads: must be between 1 and 256"),
        ("memory --max-in-flight 1MiB", "--max-in-flight: the largest of --sizes does not fit"),
        ("ftp://host/x", "ftp://host/x: is no address of a backend that is measured"),
        ("kv --sizes 64GiB --depths 1 --size-gb 900000", " GiB are needed, "),
        ("memory --sizes 3", "--sizes: \"3\" is no size"),
        ("memory --against bad.toml", "bad.toml:2: not a profile of a tier: "),
        ("memory --against bad.toml -o bad.toml", "is the same file as --against"),
        ("memory --against none.toml", "none.toml: cannot open"),
    ] {
        let run = sandbox.run(&format!("profile tier {line}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}");
        assert!(run.stderr.contains(expected), "{line}: {}", run.stderr);
        let has_hint = run.stderr.contains("\nhint: ");
        assert!(has_hint || line.contains(" --"), "{line}: {}", run.stderr);
    }
    assert_eq!(sandbox.names_in(""), ["bad.toml", "kv"]);
}
