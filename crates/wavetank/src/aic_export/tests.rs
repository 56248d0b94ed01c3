//! How the process is handled, with shell scripts in the place of the interpreter.

use super::*;
use crate::test_program::write_program;

const CSV: &str = "kind,prefill_batch,prefill_tokens,prefill_context,decode_batch,decode_context,ms
prefill,1,1,0,0,0,2
prefill,1,1024,0,0,0,20
decode,0,0,0,1,16,2
decode,0,0,0,1,1024,3
decode,0,0,0,8,16,3
decode,0,0,0,8,1024,4
";

fn keys(tp: u32) -> Map<String, Value> {
    Map::from_iter([("aic_tp_size".to_owned(), Value::from(tp))])
}

/// An exporter whose interpreter is a script that counts its starts in `starts`.
fn fake(folder: &Path, body: &str) -> Exporter {
    let python = folder.join("python");
    write_program(&python, &format!("#!/bin/sh\necho >> {}/starts\n{body}\n", folder.display()));
    Exporter { python: Some(python), cache: Some(folder.join("cache")), limit: Duration::from_secs(30) }
}

fn starts(folder: &Path) -> usize {
    fs::read_to_string(folder.join("starts")).map_or(0, |text| text.lines().count())
}

/// A script that prints `csv` after an origin whose metadata is the file `METADATA` of `folder`.
fn printing(folder: &Path, version: &str, csv: &str) -> String {
    let metadata = folder.join("METADATA");
    fs::write(&metadata, version).unwrap();
    let origin = serde_json::json!({"package": version, "metadata": metadata, "engine": "vllm 1"});
    format!("echo noise >&2\ncat <<'END'\n{origin}\n{csv}END")
}

#[test]
fn fails_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let wrong = printing(folder, "p 1", &CSV.replace("decode,0,0,0,8,1024,4", "decode,0,0,0,8,1024,-4"));
    let empty = printing(folder, "p 1", "");
    for (body, part) in [
        ("echo no package p >&2; exit 3", "no package p"),
        ("exit 0", "printed no grid"),
        ("echo hello", "printed no grid"),
        (&wrong, "printed a wrong grid: line:7: \"-4\""),
        (&empty, "printed a wrong grid: line:1: the header is wrong"),
        ("echo slow >&2; exec sleep 60", "was ended after 0.2 s: slow"),
    ] {
        let mut exporter = fake(folder, body);
        if body.contains("sleep") {
            exporter.limit = Duration::from_millis(200);
        }
        let message = exporter.grid(&keys(1)).expect_err(body);
        assert!(message.contains(part), "{body}: {message}");
        let left = fs::read_dir(folder.join("cache")).unwrap().count();
        assert_eq!(left, 0, "{body}");
    }
    let nowhere = Exporter { python: Some(folder.join("none")), ..fake(folder, "") };
    assert!(nowhere.grid(&keys(1)).unwrap_err().contains("cannot be run"));
    let nobody = Exporter { python: None, ..fake(folder, "") };
    assert!(nobody.grid(&keys(1)).unwrap_err().contains("WAVETANK_PYTHON"));
}

#[test]
fn a_grid_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let exporter = fake(folder, &printing(folder, "p 1", CSV));
    let first = exporter.grid(&keys(1)).unwrap();
    assert_eq!(fs::read_to_string(&first.path).unwrap(), CSV);
    assert_eq!(exporter.grid(&keys(1)).unwrap(), first);
    assert_eq!(starts(folder), 1, "a kept grid starts nothing");
    assert_ne!(exporter.grid(&keys(2)).unwrap().path, first.path);
    assert_eq!(starts(folder), 2, "other keys are another grid");
    fs::write(&first.path, "cut").unwrap();
    assert_eq!(exporter.grid(&keys(1)).unwrap(), first);
    assert_eq!(starts(folder), 3, "a damaged grid is made again");
    fs::remove_file(folder.join("METADATA")).unwrap();
    let exporter = fake(folder, &printing(folder, "p 2", CSV));
    fs::rename(folder.join("METADATA"), folder.join("METADATA-2")).unwrap();
    assert_ne!(exporter.grid(&keys(1)).unwrap().path, first.path);
    assert_eq!(starts(folder), 4, "another version is another grid");
}

#[test]
fn programs_are_found_by_name_or_place() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("snake"), "").unwrap();
    let path = Some(folder.path().as_os_str().to_owned());
    assert_eq!(on_path(&"snake".into(), path.clone()), Some(folder.path().join("snake")));
    assert_eq!(on_path(&"adder".into(), path), None);
    assert_eq!(on_path(&"/opt/snake".into(), None), Some("/opt/snake".into()));
}
