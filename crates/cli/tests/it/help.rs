//! `wavetank help`, man pages, completions and the version.

use std::process::Command;

use insta::assert_snapshot;

use crate::sandbox::Sandbox;

fn said(line: &str) -> String {
    let run = Sandbox::empty().run(line);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{line}");
    run.stdout
}

/// The names in a list that begins after `heading`.
fn listed(text: &str, heading: &str) -> Vec<String> {
    let rows = text.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let rows = rows.take_while(|line| line.starts_with("  "));
    let named = rows.filter(|line| !line.starts_with("   "));
    named.map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

/// Broken by: a topic or a command that is listed and cannot be asked about.
#[test]
fn what_is_listed_can_be_asked_about() {
    let text = said("help");
    assert_eq!(text, said("--help"));
    let (commands, topics) = (listed(&text, "Commands:"), listed(&text, "Topics "));
    for name in ["metrics", "traces", "tiers", "bench", "serve", "reports", "seeds", "exit-codes"] {
        assert!(topics.iter().any(|topic| topic == name), "{topics:?}");
    }
    for name in ["replay", "doctor", "man", "completions", "help"] {
        assert!(commands.iter().any(|command| command == name), "{commands:?}");
    }
    for name in commands.iter().filter(|name| !topics.contains(name)) {
        assert_eq!(said(&format!("help {name}")), said(&format!("{name} --help")), "{name}");
    }
    for name in &topics {
        assert!(!said(&format!("help {name}")).contains("Usage:"), "{name}");
    }
    assert_eq!(said("help bench suite"), said("bench suite --help"));
    assert_eq!(said("trace help lint"), said("trace lint --help"));
    assert_eq!(said("help trace lint"), said("trace lint --help"));
}

#[test]
fn topics_are_told() {
    let names = listed(&said("help"), "Topics ");
    let texts: Vec<String> =
        names.iter().map(|name| format!("== {name} ==\n{}", said(&format!("help {name}")))).collect();
    assert_snapshot!(texts.join("\n"));
}

#[test]
fn an_unknown_topic_is_refused_with_the_nearest() {
    let sandbox = Sandbox::empty();
    for (line, near) in
        [("help metric", "'metrics'"), ("help exit-code", "'exit-codes'"), ("help relpay", "'replay'")]
    {
        let run = sandbox.run(line);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}");
        assert!(
            run.stderr.contains("a similar value exists: ") && run.stderr.contains(near),
            "{}",
            run.stderr
        );
    }
    assert_eq!(sandbox.run("help trace lnit").code, Some(2));
}

/// Broken by: a page that `man` cannot set, or one that is not written.
#[test]
fn man_pages_are_written() {
    let sandbox = Sandbox::empty();
    let run = sandbox.run("man pages/man1");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let names = sandbox.names_in("pages/man1");
    assert_eq!(run.stdout, format!("Saved {} pages to: pages/man1\n", names.len()));
    for name in ["wavetank.1", "wavetank-replay.1", "wavetank-trace-lint.1", "wavetank-bench-suite.1"] {
        assert!(names.iter().any(|there| there == name), "{names:?}");
    }
    assert_eq!(said("man"), sandbox.read("pages/man1/wavetank.1"));
    sandbox.write("file", "");
    let refused = sandbox.run("man file/man1");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.starts_with("error: file/man1/wavetank.1: cannot write: "), "{}", refused.stderr);
}

/// What bash offers for the last of `words`.
fn completed(script: &str, words: &[&str]) -> Vec<String> {
    let asked = r#"
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _wavetank wavetank "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", asked, "bash", script]).args(words);
    let output = bash.output().expect("bash runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

/// Broken by: a script for another name, or one that knows the commands only.
#[test]
fn bash_completes_commands_flags_and_topics() {
    let sandbox = Sandbox::empty();
    sandbox.write("wavetank.bash", said("completions bash"));
    let script = sandbox.path("wavetank.bash");
    let completed = |words: &[&str]| completed(script.to_str().expect("a name in UTF-8"), words);
    assert_eq!(completed(&["wavetank", "re"]), ["replay", "report"]);
    assert_eq!(completed(&["wavetank", "replay", "--num-w"]), ["--num-workers"]);
    assert_eq!(completed(&["wavetank", "trace", "li"]), ["lint"]);
    assert_eq!(completed(&["wavetank", "help", "me"]), ["metrics"]);
    assert_eq!(completed(&["wavetank", "completions", "ba"]), ["bash"]);
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = said(&format!("completions {shell}"));
        assert!(script.contains("num-workers") && script.contains("wavetank"), "{shell}");
    }
    let refused = Sandbox::empty().run("completions bsh");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("'bash'"), "{}", refused.stderr);
}

/// Broken by: a date, a path, or a version without the commit where there is one.
#[test]
fn the_version_has_the_commit_it_was_built_from() {
    let text = said("--version");
    let number = env!("CARGO_PKG_VERSION");
    let rest = text.strip_prefix(&format!("wavetank {number}")).unwrap_or_else(|| panic!("{text}"));
    let commit = rest.trim_end().strip_prefix(" (").and_then(|rest| rest.strip_suffix(')'));
    let is_commit = |name: &str| {
        let digits = name.strip_suffix("-dirty").unwrap_or(name);
        digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    assert!(rest == "\n" || commit.is_some_and(is_commit), "{text}");
    assert_eq!(said("replay --version"), text.replacen("wavetank", "wavetank-replay", 1));
}
