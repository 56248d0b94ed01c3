//! `profile tier`: a table, a file, what changed since, and nothing left behind.

use std::process::Stdio;
use std::time::Duration;

use crate::sandbox::Sandbox;

const SOON: Duration = Duration::from_secs(20);
/// Eight points, a few milliseconds each.
const SMALL: &str =
    "--sizes 16KiB,64KiB --depths 2 --seconds-per-point 0.01 --sustained-seconds 0.05 --size-gb 0.001";

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
    for words in
        ["reads", "70 % reads", "50 % reads", "writes", "16 KiB", "64 KiB", "Sustained writes of 64 KiB"]
    {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
    assert!(run.stdout.ends_with("Saved profile to: kv.toml\n"), "{}", run.stdout);
    assert_eq!(sandbox.names_in("kv"), ["mine"]);
    let text = sandbox.read("kv.toml");
    assert!(text.starts_with("layout = \"wavetank-tier/1\"\npartial = false\n"), "{text}");
    assert_eq!(text.matches("[[points]]").count(), 8);

    let again =
        sandbox.run(&format!("profile tier kv --backend buffered {SMALL} -o kv.json --against kv.toml"));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stdout.contains(" of 8 points changed by more than they scatter\n"), "{}", again.stdout);
    let json = sandbox.report("kv.json");
    assert_eq!(json.json()["points"].as_array().unwrap().len(), 8);
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
    let line = "profile tier kv --backend buffered --sizes 16KiB --depths 1,2,3,4,5,6,7,8 \
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
    assert!((1..32).contains(&text.matches("[[points]]").count()), "{text}");
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
        ("memory --sizes 3", "--sizes: \"3\" is no size"),
        ("memory --against bad.toml", "bad.toml:2: not a profile of a tier: "),
        ("memory --against bad.toml -o bad.toml", "is the same file as --against"),
        ("memory --against none.toml", "none.toml: cannot open"),
    ] {
        let run = sandbox.run(&format!("profile tier {line}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}");
        assert!(run.stderr.contains(expected), "{line}: {}", run.stderr);
    }
    assert_eq!(sandbox.names_in(""), ["bad.toml", "kv"]);
}
