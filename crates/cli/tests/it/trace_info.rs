//! `wavetank trace info`, through the binary: recordings of ours, and the reference's where they lie beside
//! the checkout.

use std::path::PathBuf;

use insta::assert_snapshot;
use wavetank_model::{
    Fate, FetchPolicy, KeyFamily, KeyId, KeyTable, Layout, LayoutId, LockMode, Nanos, ObjectKey, Prefetch,
    Recorded, Row, StorageCall, WriteMode,
};
use wavetank_trace::calls::lct::{Header, LctOptions, Recording};

use crate::sandbox::Sandbox;

const CONFIG: &str = r#"{"shm_name": "lmcache_l1_pool_7", "size_in_bytes": 1048576}"#;

fn keys(numbers: &[u32]) -> Box<[KeyId]> {
    numbers.iter().copied().map(KeyId).collect()
}

/// Four chunks of one tenant and two of another.
fn table() -> KeyTable {
    let mut table = KeyTable::default();
    for (chunk, cache_salt) in [(0, "blue"), (1, "blue"), (2, "blue"), (3, "blue"), (0, "red"), (1, "red")] {
        let family = KeyFamily { model_name: "tiny", kv_rank: 0x0100_0100, object_group_id: 0, cache_salt };
        table.key_id(ObjectKey { chunk_hash: &[chunk; 32], family });
    }
    table.layout_id(Layout {
        shapes: Box::new([Box::new([2, 16, 64])]),
        dtypes: Box::new(["torch.bfloat16".into()]),
    });
    table
}

/// A caller that finds two of three chunks, reads them and stores the third; another tenant finds none.
fn calls() -> Vec<Recorded> {
    let layout = LayoutId(0);
    let prefetch = |numbers: &[u32]| {
        let row = Row { keys: keys(numbers), group: 0, layout, window: 2 };
        let (rows, policy, lock) = (Box::new([row]) as Box<[Row]>, FetchPolicy::Prefix, LockMode::Lock);
        let request = format!("request-{}", numbers[0]).into();
        StorageCall::SubmitPrefetch(Box::new(Prefetch {
            rows,
            readers: 1,
            policy,
            lock,
            request,
            skip_l2: false,
            handle: None,
        }))
    };
    let hits: Box<[Fate]> = Box::new([Fate::FirstTier, Fate::LowerTier, Fate::Absent]);
    let mut calls: Vec<Recorded> = [
        prefetch(&[0, 1, 2]),
        StorageCall::ReadEnter { keys: keys(&[0, 1]) },
        StorageCall::ReadExit { keys: keys(&[0, 1]) },
        StorageCall::FinishRead { keys: keys(&[0, 1]), locks: 1 },
        StorageCall::ReserveWrite { keys: keys(&[2, 3]), layout, mode: WriteMode::New },
        StorageCall::FinishWrite { keys: keys(&[2]) },
        StorageCall::StoreCompleted { tier: 1, keys: keys(&[2]) },
        prefetch(&[4, 5]),
        StorageCall::PrefetchCompleted { handle: 9, keys: keys(&[4]) },
        StorageCall::Removed { keys: keys(&[1]) },
        StorageCall::EvictionPass { tier: 0, evicted: 1, most: None },
        StorageCall::Gap { lost: 3 },
    ]
    .into_iter()
    .zip(1..)
    .map(|(call, ms)| Recorded::plain(Nanos(ms * 1_000_000), call))
    .collect();
    calls[0].outcome = Some(hits);
    calls[0].duration = Some(Nanos(250_000));
    calls[0].thread = Some(4);
    calls
}

pub(crate) fn record(sandbox: &Sandbox, name: &str, options: LctOptions) {
    let header = Header::storage(1_794_704_663.5, CONFIG.to_owned());
    let mut recording = Recording::create(&sandbox.path(name), header, options).expect("a file");
    calls().iter().for_each(|call| recording.write(call, &table()).expect("room"));
    recording.finish().expect("room");
}

/// Broken by: a count that is wrong, or something left out without a word.
#[test]
fn a_recording_of_ours() {
    let sandbox = Sandbox::empty();
    record(&sandbox, "ours.lct", LctOptions::default());
    record(&sandbox, "packed.lct.zst", LctOptions::default());
    let run = sandbox.run("trace info ours.lct");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(run.stdout);
    let packed = sandbox.run("trace info packed.lct.zst");
    assert_eq!(packed.stdout.replace("packed.lct.zst", "ours.lct"), run.stdout);
    let reading = sandbox.run_reading("trace info -", "ours.lct");
    assert_eq!(reading.stdout.replace("<stdin>", "ours.lct"), run.stdout);
}

/// Broken by: a field whose name or number changes.
#[test]
fn the_same_as_json() {
    let sandbox = Sandbox::empty();
    record(&sandbox, "ours.lct", LctOptions::default());
    let run = sandbox.run("trace info ours.lct --json");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(run.stdout);
}

/// Broken by: a part or an end of a recording that is taken for the whole.
#[test]
fn parts_say_that_they_are() {
    let sandbox = Sandbox::empty();
    record(&sandbox, "parts.lct", LctOptions { rotate_bytes: Some(1_000), cap_bytes: Some(2_500) });
    let first = sandbox.run("trace info parts.lct").stdout;
    assert!(first.contains("note         it is in 2 files, read as one\n"), "{first}");
    let second = sandbox.run("trace info parts.2.lct").stdout;
    assert!(second.contains(", level storage, part 2\n"), "{second}");
    let last = sandbox.names_in("").into_iter().rfind(|name| name.ends_with(".lct") && name != "parts.lct");
    let last = sandbox.run(&format!("trace info {}", last.expect("parts"))).stdout;
    assert!(
        last.contains("note         the recording reached its largest size, 2500 bytes, and stopped\n"),
        "{last}"
    );
    assert!(last.contains(" calls, which the recorder left out\n"), "{last}");
}

/// Broken by: a damaged file that is refused, or one that is no recording that is not.
#[test]
fn damage_and_other_files() {
    let sandbox = Sandbox::empty();
    record(&sandbox, "ours.lct", LctOptions::default());
    let whole = std::fs::read(sandbox.path("ours.lct")).expect("a file");
    sandbox.write("cut.lct", &whole[..whole.len() - 7]);
    let cut = sandbox.run("trace info cut.lct");
    assert_eq!(cut.code, Some(0));
    assert!(cut.stdout.contains("\ncut          it ends within the frame at byte "), "{}", cut.stdout);
    sandbox.write("wrong.lct", String::from_utf8_lossy(b"\0\0\0\x01\xc0").as_bytes());
    sandbox.write("empty.lct", "");
    sandbox.write("log", "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n");
    for (line, expected) in [
        ("wrong.lct", "error: wrong.lct: its first frame is no header: "),
        ("empty.lct", "error: empty.lct: it is empty\nhint: "),
        ("missing.lct", "error: missing.lct: cannot open: "),
        (
            "log --format lct",
            "error: log: byte 0: a frame of 1416195429 bytes, above the limit of 67108864\nhint: ",
        ),
        ("ours.lct --format mlperf-csv", "error: ours.lct:"),
        ("log --format csv", "unknown storage-call format"),
        ("log.csv --frame-limit 1", "error: --frame-limit: mlperf-csv has no frames"),
    ] {
        let run = sandbox.run(&format!("trace info {line}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}");
        assert!(run.stderr.contains(expected), "{line}: {}", run.stderr);
    }
}

/// A length that was hit by damage hides everything after it.
///
/// Broken by: what stands before it that is not told, or an end that looks like a whole file's.
#[test]
fn a_damaged_length_loses_only_what_follows() {
    let sandbox = Sandbox::empty();
    record(&sandbox, "ours.lct", LctOptions::default());
    let whole = std::fs::read(sandbox.path("ours.lct")).expect("a file");
    let at = whole.len();
    sandbox.write("long.lct", [&whole[..], &[0, 0x20, 0, 0], &whole[..]].concat());
    let sound = sandbox.run("trace info ours.lct").stdout.replace("ours.lct", "long.lct");
    let run = sandbox.run("trace info long.lct --frame-limit 1");
    let stopped = format!(
        "stopped      at byte {at}: a frame of 2097152 bytes, above the limit of 1048576; what follows is \
         not counted\n"
    );
    assert_eq!(run.stdout.replace(&stopped, ""), sound);
    assert!(run.stdout.contains(&stopped), "{}", run.stdout);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), "error: long.lct cannot be read to its end\n"));
    let json = sandbox.run("trace info long.lct --frame-limit 1 --json");
    assert_eq!(json.code, Some(1));
    assert!(json.stdout.contains(&format!("\"stopped_at\": {at}")), "{}", json.stdout);
    sandbox.write("torn.lct", [&whole[..], &[0x7f, 0, 0, 0], &whole[..]].concat());
    let replay = sandbox.run("trace replay torn.lct");
    assert_ne!(replay.code, Some(0), "calls that are missing are no success");
    assert!(replay.stderr.contains(&format!("byte {at}")), "{}", replay.stderr);
}

/// Broken by: operations of one kind or tier counted as another's, or a size that is added up wrongly.
#[test]
fn a_log_of_operations() {
    let sandbox = Sandbox::empty();
    let rows = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n\
                100.5,Write,4096,Tier-0,a,Prefill\n\
                100.75,Write,8192,Tier-1,b,Evict\n\
                101,Read,8192,Tier-1,b,Decode\n\
                101.25,Read,4096,Tier-0,a,Decode\n\
                102,Read,4096,Tier-0,a,Decode\n\
                102.5,Delete,8192,Tier-1,b,Evict\n";
    sandbox.write("log.csv", rows);
    let run = sandbox.run("trace info log.csv");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(run.stdout);
    sandbox.write("log", rows);
    let named = sandbox.run("trace info log --format mlperf-csv");
    assert_eq!(named.stdout.replace("file         log\n", "file         log.csv\n"), run.stdout);
    let json = sandbox.run("trace info log.csv --json").stdout;
    assert!(json.contains("\"distinct_keys\": 2") && json.contains("\"total_records\": 6"), "{json}");
}

/// Broken by: a sample of the reference that is read otherwise.
#[test]
fn samples_of_the_reference() {
    let samples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/lct");
    if !samples.exists() {
        return;
    }
    let sandbox = Sandbox::empty();
    let mut names: Vec<String> = std::fs::read_dir(&samples)
        .expect("samples")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains(".lct"))
        .collect();
    names.sort();
    assert!(names.len() >= 18, "{names:?}");
    let mut said = String::new();
    for name in names {
        std::fs::copy(samples.join(&name), sandbox.path(&name)).expect("a copy");
        let run = sandbox.run(&format!("trace info {name}"));
        assert_eq!(run.code, Some(if name.starts_with("bad_") { 2 } else { 0 }), "{name}");
        said += &format!("{}{}\n", run.stdout, run.stderr);
    }
    assert_snapshot!(said);
}
