//! The parity step of `ci`: `wavetank replay` against recorded reference runs, which live beside the checkout
//! in `../shared`. Cases that need something not built yet are left out, by the table [`SKIPPED`].

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{self, cargo};
use crate::tally::Tally;

const SCRIPT: &str = "../shared/tools/parity";
const GOLDEN: &str = "../shared/data/golden";

/// Case files that are run, without `.json`.
const GROUPS: &[&str] = &["replay_engine", "replay_router", "replay_sessions"];

/// A case is left out when one of its arguments contains the marker.
struct Skip {
    marker: &'static str,
    why: &'static str,
}

/// The first row that fits gives the reason; a row goes when its feature comes.
const SKIPPED: &[Skip] = &[Skip { marker: "--prefill-engine-args", why: "no disaggregated replay yet" }];

/// Builds the release binary and compares every case that is not skipped.
pub(crate) fn run(tally: &mut Tally) -> Result<(), String> {
    if !Path::new(SCRIPT).exists() {
        println!("skipped: no {SCRIPT} beside the checkout");
        return Ok(());
    }
    let cases = GROUPS.iter().map(|group| write_group(group)).collect::<Result<Vec<_>, _>>()?;
    process::run(&mut cargo(&["build", "--release"]))?;
    let mut script = Command::new("python3");
    script.arg(SCRIPT).arg("--bin").arg(process::release_binary()).arg("--cases").args(cases);
    process::run_seen(&mut script, |line| {
        if let Some(counts) = Tally::of_parity(line) {
            *tally += counts;
        }
    })
}

/// Writes the cases of a group that can run, says which cannot, and returns the file.
fn write_group(group: &str) -> Result<PathBuf, String> {
    let source = Path::new(GOLDEN).join(format!("{group}.json"));
    let failed = |path: &Path, e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = fs::read_to_string(&source).map_err(|e| failed(&source, &e))?;
    let cases: Vec<Value> = serde_json::from_str(&text).map_err(|e| failed(&source, &e))?;
    let kept = runnable(group, cases)?;
    let folder = process::target_dir().join("parity");
    let file = folder.join(format!("{group}.json"));
    fs::create_dir_all(&folder).map_err(|e| failed(&folder, &e))?;
    fs::write(&file, Value::from(kept).to_string()).map_err(|e| failed(&file, &e))?;
    Ok(file)
}

/// The cases without a marker of [`SKIPPED`]. A group of which nothing is left would pass for no reason.
fn runnable(group: &str, cases: Vec<Value>) -> Result<Vec<Value>, String> {
    let mut kept = Vec::new();
    for case in cases {
        match SKIPPED.iter().find(|skip| needs(&case, skip.marker)) {
            None => kept.push(case),
            Some(skip) => println!("skipped {group}/{}: {}", case["name"].as_str().unwrap_or("?"), skip.why),
        }
    }
    if kept.is_empty() { Err(format!("{group}: every case is skipped")) } else { Ok(kept) }
}

fn needs(case: &Value, marker: &str) -> bool {
    let args = case["args"].as_array().into_iter().flatten();
    args.filter_map(Value::as_str).any(|arg| arg.replace(' ', "").contains(marker))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_row_skips_its_cases_and_no_others() {
        for skip in SKIPPED {
            let plain = json!({"name": "plain", "args": ["--num-workers", "4", r#"{"engine_type":"vllm"}"#]});
            let marked = json!({"name": "marked", "args": ["--flag", format!("{{ {} }}", skip.marker)]});
            let kept = runnable("group", vec![marked.clone(), plain.clone()]);
            assert_eq!(kept, Ok(vec![plain]), "{}", skip.marker);
            assert_eq!(runnable("group", vec![marked]), Err("group: every case is skipped".to_owned()));
        }
    }

    #[test]
    fn spaces_in_json_arguments_do_not_matter() {
        let case = json!({"args": [r#"{"worker_type": "prefill"}"#]});
        assert!(needs(&case, r#""worker_type":"prefill""#));
    }
}
