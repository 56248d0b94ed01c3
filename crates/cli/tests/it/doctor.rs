//! `wavetank doctor` on this machine: exit codes, both forms of output, and what it leaves behind.

use serde_json::Value;

use crate::sandbox::Sandbox;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Broken by: an exit code that is not what the worst verdict says, or a check that only one form has.
#[test]
fn this_machine_is_looked_at() {
    let sandbox = Sandbox::on_disk();
    sandbox.write("place/mine.txt", "mine");
    let run = sandbox.run("doctor place --json");
    let found = parsed(&run.stdout);
    let verdict = found["verdict"].as_str().expect("a verdict");
    assert_eq!(run.code, Some(i32::from(verdict == "problem")), "{verdict}: {}", run.stderr);
    assert_eq!(run.stderr, "");
    let checks = found["checks"].as_array().expect("checks");
    let worst = |word: &str| checks.iter().any(|check| check["verdict"] == word);
    let expected = if worst("problem") {
        "problem"
    } else if worst("note") {
        "note"
    } else {
        "ok"
    };
    assert_eq!(verdict, expected);
    let table = sandbox.run("doctor place").stdout;
    for check in checks {
        let name = check["name"].as_str().expect("a name");
        assert!(table.lines().any(|line| line.split_whitespace().nth(1) == Some(name)), "{name}: {table}");
        assert_eq!(check["remedy"].is_string(), check["verdict"] != "ok", "{check}");
    }
    assert!(table.contains(&format!("\n{} checks: ", checks.len())), "{table}");
    assert_eq!(sandbox.names_in("place"), ["mine.txt"], "nothing of ours stays");
}

/// Broken by: a directory that is looked at without being asked for.
#[test]
fn the_present_directory_is_meant_where_none_is_named() {
    let sandbox = Sandbox::on_disk();
    let found = parsed(&sandbox.run("doctor --json").stdout);
    let present = sandbox.path("").canonicalize().expect("a directory");
    assert_eq!(found["directory"].as_str(), present.to_str());
}

#[test]
fn what_is_no_directory_is_refused() {
    let sandbox = Sandbox::empty();
    sandbox.write("file", "");
    for (line, told) in [
        ("doctor none", "error: none: cannot be used: No such file"),
        ("doctor file", "error: file: is not a directory\nhint: "),
        ("doctor a b", "error: unexpected argument 'b'"),
        ("doctor --jsn", "error: unexpected argument '--jsn'"),
    ] {
        let run = sandbox.run(line);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}");
        assert!(run.stderr.starts_with(told), "{line}: {}", run.stderr);
    }
}
