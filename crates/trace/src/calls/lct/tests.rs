//! Files as they come: in parts, cut, damaged, compressed, of other shapes.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use rmp::encode;
use wavetank_model::{
    Fate, FetchPolicy, KeyFamily, KeyTable, Layout, LockMode, Nanos, ObjectKey, Prefetch, Recorded, Result,
    Row, StorageCall, WriteMode,
};

use super::*;
use crate::calls::CallReader;
use crate::{CallSurvey, Input, Output};

/// A table with one key per tenant, and calls of every kind on them.
fn sample(calls: u64) -> (Vec<Recorded>, KeyTable) {
    let mut table = KeyTable::default();
    let keys: Box<[_]> = ["", "tenant"]
        .into_iter()
        .map(|cache_salt| {
            let family = KeyFamily { model_name: "m", kv_rank: 0x0100_0100, object_group_id: 0, cache_salt };
            table.key_id(ObjectKey { chunk_hash: &[7; 32], family })
        })
        .collect();
    let shapes = Box::new([[2u64, 3].into()]);
    let layout = table.layout_id(Layout { shapes, dtypes: Box::new(["torch.uint8".into()]) });
    let row = |group| Row { keys: keys.clone(), group, layout, window: -1 };
    let prefetch = Prefetch {
        rows: Box::new([row(0), row(1)]),
        readers: 2,
        policy: FetchPolicy::Full,
        lock: LockMode::NoLock,
        request: "request".into(),
        skip_l2: true,
        handle: Some(7),
    };
    let kinds = [
        StorageCall::FinishRead { keys: keys.clone(), locks: 1 },
        StorageCall::ReserveWrite { keys: keys.clone(), layout, mode: WriteMode::Update },
        StorageCall::FinishWrite { keys: keys.clone() },
        StorageCall::SubmitPrefetch(Box::new(prefetch)),
        StorageCall::EvictionPass { tier: 1, evicted: 300, most: None },
        StorageCall::StoreCompleted { tier: 2, keys },
    ];
    let call = |number: u64| {
        let call = kinds[number as usize % kinds.len()].clone();
        let outcome = call.keys().map(|_| Fate::Done).collect();
        let (at, duration) = (Nanos(number * 1_000_000), Some(Nanos(number)));
        Recorded { duration, thread: Some(1), outcome: Some(outcome), ..Recorded::plain(at, call) }
    };
    ((0..calls).map(call).collect(), table)
}

fn bytes_of(calls: u64) -> Vec<u8> {
    let (calls, table) = sample(calls);
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(Output::to(&mut bytes), &Header::storage(1e9, "{}".to_owned())).unwrap();
    calls.iter().for_each(|call| writer.record(call, &table).unwrap());
    writer.finish().unwrap();
    bytes
}

/// Reads to the end: how many calls, and what was met.
fn read(input: &Input) -> Result<(u64, CallSurvey)> {
    let mut reader = Reader::open(input, FRAME_LIMIT)?;
    let mut calls = 0;
    while reader.advance()?.is_some() {
        calls += 1;
    }
    Ok((calls, reader.survey()))
}

fn read_bytes(bytes: &[u8]) -> Result<(u64, CallSurvey)> {
    read(&Input::Bytes(Arc::from(bytes)))
}

/// Broken by: a part that is lost, without its header, larger than it may be, not read with the first, or of
/// another recording and read all the same.
#[test]
fn a_full_file_is_followed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.lct", "a.lct.zst", "plain"] {
        let path = folder.path().join(name);
        let (calls, table) = sample(100);
        let options = LctOptions { rotate_bytes: Some(5_000), cap_bytes: None };
        let mut recording = Recording::create(&path, Header::storage(1e9, String::new()), options).unwrap();
        calls.iter().for_each(|call| recording.write(call, &table).unwrap());
        let written = recording.finish().unwrap();
        assert_eq!((written.calls, written.lost), (100, 0));
        assert!(written.files.len() > 5, "{written:?}");
        let second = written.files[1].file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(
            second,
            if name == "plain" { "plain.2".to_owned() } else { name.replace(".lct", ".2.lct") }
        );
        for (part, file) in (2..).zip(&written.files[1..]) {
            let input = Input::File(file.clone());
            assert_eq!(Reader::open(&input, FRAME_LIMIT).unwrap().header().part, part);
            let (calls, survey) = read(&input).unwrap();
            let last = written.files.len() == part as usize;
            let note = format!("the recording goes on in part {}", part + 1);
            assert_eq!(survey.notes, if last { Vec::new() } else { vec![note] });
            assert!(calls > 0 && calls < 100, "a part by itself is a part");
        }
        let (calls, survey) = read(&Input::File(path.clone())).unwrap();
        let note = format!("it is in {} files, read as one", written.files.len());
        assert_eq!((calls, survey.notes, survey.missing_part), (100, vec![note], None));
        let read_again = || read(&Input::File(path.clone())).unwrap();
        std::fs::copy(&written.files[1], &written.files[2]).unwrap();
        let (calls, survey) = read_again();
        assert!(calls < 100 && survey.missing_part.unwrap().contains("it is of another recording"));
        std::fs::remove_file(&written.files[1]).unwrap();
        let (fewer, survey) = read_again();
        assert!(fewer < calls && survey.missing_part.is_some(), "{:?}", survey.notes);
    }
}

/// Broken by: a number that the writer has no way to write again.
#[test]
fn a_part_without_a_number_is_the_first() {
    let mut header = Header::storage(1e9, String::new());
    header.part = 2;
    let mut bytes = Vec::new();
    Writer::begin(Output::to(&mut bytes), &header).and_then(Writer::finish).unwrap();
    assert_eq!(bytes.pop(), Some(2), "the part is written last");
    bytes.push(0);
    assert_eq!(Reader::open(&Input::Bytes(Arc::from(bytes)), FRAME_LIMIT).unwrap().header().part, 1);
}

/// Broken by: a recording that grows past its largest size, or does not say that calls are missing.
#[test]
fn at_its_largest_size_a_recording_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for rotate_bytes in [None, Some(3_000)] {
        let path = folder.path().join("capped.lct");
        let (calls, table) = sample(100);
        let options = LctOptions { rotate_bytes, cap_bytes: Some(10_000) };
        let mut recording = Recording::create(&path, Header::storage(1e9, String::new()), options).unwrap();
        calls.iter().for_each(|call| recording.write(call, &table).unwrap());
        let written = recording.finish().unwrap();
        assert!(written.bytes <= 10_000 && written.bytes > 8_000, "{written:?}");
        assert_eq!(written.calls + written.lost, 100);
        let last = Input::File(written.files.last().unwrap().clone());
        let (_, survey) = read(&last).unwrap();
        assert_eq!(survey.lost, written.lost);
        assert_eq!(survey.notes, ["the recording reached its largest size, 10000 bytes, and stopped"]);
    }
}

/// Broken by: a mark that is held back: a process that is killed then leaves a file that looks whole.
#[test]
fn that_it_is_full_can_be_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capped.lct");
    let (calls, table) = sample(100);
    let options = LctOptions { rotate_bytes: None, cap_bytes: Some(10_000) };
    let mut recording = Recording::buffered(&path, Header::storage(1e9, String::new()), options).unwrap();
    calls.iter().for_each(|call| recording.write(call, &table).unwrap());
    // No finish: the process was killed.
    std::mem::forget(recording);
    let (_, survey) = read(&Input::File(path)).unwrap();
    assert_eq!(survey.notes, ["the recording reached its largest size, 10000 bytes, and stopped"]);
}

/// Broken by: a part that replaces a file that came there while it was recorded, or a recording that replaces
/// one that is being written.
#[test]
fn a_part_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.lct");
    let (calls, table) = sample(100);
    let options = LctOptions { rotate_bytes: Some(5_000), cap_bytes: None };
    let mut recording = Recording::create(&path, Header::storage(1e9, String::new()), options).unwrap();
    let second = folder.path().join("a.2.lct");
    std::fs::write(&second, "mine").unwrap();
    let error = calls.iter().try_for_each(|call| recording.write(call, &table)).unwrap_err().to_string();
    assert!(error.contains("a.2.lct: cannot write: "), "{error}");
    assert_eq!(std::fs::read(&second).unwrap(), b"mine");
    let written = std::fs::read(&path).unwrap();
    let again = || Recording::create(&path, Header::storage(1e9, String::new()), options).err().unwrap();
    let error = again().to_string();
    assert!(error.contains("a.lct: another recording is being written to it"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), written);
    drop(recording);
    let error = again().to_string();
    assert!(error.contains("a.2.lct: is there already"), "{error}");
}

/// Broken by: a frame that is written in pieces, or held back.
#[test]
fn what_is_written_can_be_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.lct");
    let header = Header::storage(1e9, String::new());
    let mut recording = Recording::create(&path, header, LctOptions::default()).unwrap();
    let (calls, table) = sample(3);
    for (before, call) in (0..).zip(&calls) {
        assert_eq!(read(&Input::File(path.clone())).unwrap().0, before);
        recording.write(call, &table).unwrap();
    }
    // No finish: the process was killed.
    std::mem::forget(recording);
    assert_eq!(read(&Input::File(path)).unwrap().0, 3);
}

/// Broken by: an archive whose end is missing that is refused as a whole.
#[test]
fn a_cut_archive_is_read_as_far_as_it_goes() {
    let plain = bytes_of(2_000);
    let zstd = zstd::encode_all(&plain[..], 3).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    let gzip = gzip.finish().unwrap();
    for archive in [zstd, gzip] {
        let (calls, survey) = read_bytes(&archive).unwrap();
        assert_eq!((calls, survey.cut), (2_000, None));
        let (calls, survey) = read_bytes(&archive[..archive.len() - 12]).unwrap();
        assert!(calls <= 2_000 && survey.cut.is_some(), "{calls} {survey:?}");
    }
}

/// Broken by: a length that is believed before its bytes are there.
#[test]
fn a_frame_above_the_limit_names_its_place() {
    let mut bytes = bytes_of(2);
    let at = bytes.len();
    bytes.extend_from_slice(&[0x7f, 0, 0, 0, 1, 2, 3]);
    let error = read_bytes(&bytes).unwrap_err().to_string();
    let expected =
        format!("<memory>: byte {at}: a frame of 2130706432 bytes, above the limit of 67108864\nhint: ");
    assert!(error.starts_with(&expected), "{error}");
    let mut reader = Reader::open(&Input::Bytes(Arc::from(bytes)), 1 << 20).unwrap();
    assert_eq!(reader.by_ref().filter(|call| call.is_ok()).count(), 2, "what is before it is read");
    assert!(reader.next().is_none(), "nothing follows an error");
    let stopped = reader.survey().stopped.expect("it says where");
    assert_eq!(stopped.offset, at as u64);
}

/// Broken by: a message that does not say what is wrong with a file that is no recording.
#[test]
fn what_is_no_recording_is_refused() {
    for (bytes, expected) in [
        (&b""[..], "<memory>: it is empty"),
        (b"\0\0", "<memory>: it ends within its first frame"),
        (b"\0\0\0\x01\xc0", "<memory>: its first frame is no header: no map where one belongs"),
        (b"\0\0\0\x01\x80", "<memory>: its first frame is no header: \"type\" is missing"),
        (b"Timestamp,Operation\n", "<memory>: byte 0: a frame of 1416195429 bytes, above the limit"),
    ] {
        let error = read_bytes(bytes).unwrap_err().to_string();
        assert!(error.starts_with(expected) && error.contains("\nhint: "), "{error}");
    }
}

/// A value written by hand.
fn packed(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    encode::write_str(bytes, text).unwrap();
}

/// A frame of a record with these arguments, `more` of its map after them.
fn record(qualname: &str, args: &[u8], more: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let body = packed(|out| {
        encode::write_map_len(out, 5 + more.len() as u32).unwrap();
        text(out, "args");
        out.extend_from_slice(args);
        for (name, value) in more {
            text(out, name);
            out.extend_from_slice(value);
        }
        text(out, "qualname");
        text(out, qualname);
        text(out, "t_wall");
        out.push(5);
        text(out, "t_mono");
        out.push(3);
        text(out, "type");
        text(out, "record");
    });
    [&(body.len() as u32).to_be_bytes(), &body[..]].concat()
}

/// A key with its parts in another order, and its tenant inside.
fn key(hash: u8, rank: i64, group: i64) -> Vec<u8> {
    packed(|out| {
        encode::write_map_len(out, 3).unwrap();
        text(out, "v");
        encode::write_map_len(out, 6).unwrap();
        text(out, "cache_salt");
        text(out, "inside");
        text(out, "later");
        encode::write_nil(out).unwrap();
        text(out, "object_group_id");
        encode::write_sint(out, group).unwrap();
        text(out, "kv_rank");
        encode::write_sint(out, rank).unwrap();
        text(out, "model_name");
        text(out, "m");
        text(out, "chunk_hash");
        encode::write_bin(out, &[hash; 3]).unwrap();
        text(out, "__t__");
        text(out, "ObjectKey");
        text(out, "x");
        out.push(0);
    })
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    packed(|out| {
        encode::write_array_len(out, items.len() as u32).unwrap();
        items.iter().for_each(|item| out.extend_from_slice(item));
    })
}

fn map(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    packed(|out| {
        encode::write_map_len(out, fields.len() as u32).unwrap();
        for (name, value) in fields {
            text(out, name);
            out.extend_from_slice(value);
        }
    })
}

fn tagged(tag: &str, value: Vec<u8>) -> Vec<u8> {
    map(&[("__t__", packed(|out| text(out, tag))), ("v", value)])
}

fn word(word: &str) -> Vec<u8> {
    packed(|out| text(out, word))
}

fn layout() -> Vec<u8> {
    let shapes = list(&[tagged("torch.Size", list(&[vec![2], vec![3]]))]);
    let dtypes = list(&[tagged("torch.dtype", word("torch.uint8"))]);
    tagged("MemoryLayoutDesc", map(&[("shapes", shapes), ("dtypes", dtypes)]))
}

const STORAGE: &str = "lmcache.v1.distributed.storage_manager.StorageManager";

fn first_call(frame: &[u8]) -> (Option<Recorded>, Reader) {
    let bytes = [&bytes_of(0), frame].concat();
    let mut reader = Reader::open(&Input::Bytes(Arc::from(bytes)), FRAME_LIMIT).unwrap();
    (reader.advance().unwrap(), reader)
}

/// Broken by: a name that must stand where the reference writes it.
#[test]
fn names_come_in_any_order() {
    let keys = tagged("tuple", list(&[key(1, 1, 0), key(2, 1, 0)]));
    let args = map(&[("extra_count", vec![2]), ("keys", keys)]);
    let frame = record(&format!("{STORAGE}.finish_read_prefetched"), &args, &[("new", list(&[]))]);
    let (call, reader) = first_call(&frame);
    let call = call.expect("a call");
    assert_eq!((call.at, call.clock.unwrap().wall_s), (Nanos(3_000_000_000), 5.0), "whole numbers are times");
    let StorageCall::FinishRead { keys, locks: 3 } = call.call else { panic!("{call:?}") };
    let key = reader.keys().key(keys[1]);
    assert_eq!((key.chunk_hash, key.family.cache_salt), (&[2, 2, 2][..], "inside"));
    assert_eq!(reader.generations().to_string(), "B to E");
}

/// A prefetch in the flat form of generation E: hashes, ranks and groups of its keys.
fn flat_prefetch(cells: &[(u8, i64, i64)]) -> Vec<u8> {
    let keys: Vec<_> = cells.iter().map(|&(hash, rank, group)| key(hash, rank, group)).collect();
    let windows = map(&[("num_chunks_in_sw", list(&[vec![0xff], vec![4]])), ("world_size", vec![2])]);
    let spec = map(&[
        ("keys", list(&keys)),
        ("extra_count", vec![0]),
        ("policy", tagged("TrimPolicy", word("SPARSE"))),
        ("attn_desc", tagged("AttnWindowDesc", windows)),
        ("group_layout_descs", map(&[("0", layout()), ("1", layout())])),
        ("mode", tagged("PrefetchMode", word("WARM"))),
    ]);
    let spec = tagged("PrefetchRequestSpec", spec);
    let args = map(&[("spec", spec), ("external_request_id", word("r")), ("skip_l2", vec![0xc3])]);
    record(&format!("{STORAGE}.submit_prefetch_task"), &args, &[])
}

/// Two groups and two ranks, two chunks, in the flat form of generation E with windows.
///
/// Broken by: rows that are not one per group and rank, or windows and layouts of another group.
#[test]
fn flat_keys_become_rows() {
    let cells =
        [(1, 10, 0), (1, 11, 0), (1, 10, 1), (1, 11, 1), (2, 10, 0), (2, 11, 0), (2, 10, 1), (2, 11, 1)];
    let (call, reader) = first_call(&flat_prefetch(&cells));
    let StorageCall::SubmitPrefetch(prefetch) = call.expect("a call").call else { panic!("another call") };
    let rows: Vec<_> = prefetch
        .rows
        .iter()
        .map(|row| {
            let keys: Vec<_> = row.keys.iter().map(|key| reader.keys().key(*key)).collect();
            let hashes: Vec<_> = keys.iter().map(|key| key.chunk_hash[0]).collect();
            (hashes, keys[0].family.kv_rank, row.group, row.window)
        })
        .collect();
    let row = |rank, group, window| (vec![1, 2], rank, group, window);
    assert_eq!(rows, [row(10, 0, -1), row(11, 0, -1), row(10, 1, 4), row(11, 1, 4)]);
    assert_eq!(prefetch.policy, FetchPolicy::Full);
    assert_eq!((prefetch.lock, prefetch.skip_l2), (LockMode::NoLock, true));
    assert_eq!(reader.keys().layouts()[0].bytes().unwrap(), 6);
    assert_eq!(reader.generations().to_string(), "E (releases 0.5.3–0.5.4)");
    let (call, reader) = first_call(&flat_prefetch(&[(1, 10, 0), (1, 11, 0), (2, 10, 0)]));
    let survey = reader.survey();
    assert_eq!((call, survey.records(), survey.damaged.count()), (None, 1, 1));
    assert_eq!(survey.damaged.reasons[0].reason, "keys of a prefetch are not in the order of chunks");
}

/// Each release as its arguments tell it.
///
/// Broken by: evidence that names the wrong releases.
#[test]
fn arguments_tell_the_release() {
    let plain = vec![("keys", list(&[key(1, 1, 0)])), ("layout_desc", layout()), ("extra_count", vec![0])];
    let steps =
        [("C", ("skip_l2", vec![0xc2])), ("D", ("attn_desc", tagged("AttnWindowDesc", list(&[vec![0xff]]))))];
    let mut fields = plain;
    fields.push(("external_request_id", word("r")));
    fields.push(("policy", tagged("TrimPolicy", word("PREFIX"))));
    let generation = |fields: &[(&str, Vec<u8>)]| {
        let (call, reader) =
            first_call(&record(&format!("{STORAGE}.submit_prefetch_task"), &map(fields), &[]));
        assert!(call.is_some(), "{:?}", reader.survey());
        reader.generations().to_string()
    };
    assert!(generation(&fields).starts_with("B ("));
    for (letter, field) in steps {
        fields.push(field);
        assert!(generation(&fields).starts_with(&format!("{letter} (")), "{letter}");
    }
}

/// Broken by: salts of one key given to another.
#[test]
fn tenants_are_written_beside_the_keys() {
    let bytes = bytes_of(1);
    let holds = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(holds(b"\xa7wt_salt\x92\xa0\xa6tenant\xa4args") && !holds(b"cache_salt"));
    let mut reader = Reader::open(&Input::Bytes(Arc::from(bytes)), FRAME_LIMIT).unwrap();
    let call = reader.advance().unwrap().unwrap();
    let salts: Vec<_> = call.call.keys().map(|key| reader.keys().key(key).family.cache_salt).collect();
    assert_eq!(salts, ["", "tenant"]);
}

/// More families than encodings are kept, twice over.
///
/// Broken by: an encoding that takes another's place and keeps its family.
#[test]
fn many_families_are_told_apart() {
    let keys: Vec<_> = (0..500).map(|rank| key(9, rank % 250, 0)).collect();
    let args = map(&[("keys", list(&keys))]);
    let (call, reader) = first_call(&record(&format!("{STORAGE}.finish_write"), &args, &[]));
    let call = call.expect("a call").call;
    let ranks: Vec<_> = call.keys().map(|key| reader.keys().key(key).family.kv_rank).collect();
    assert_eq!(ranks, (0..500).map(|rank| rank % 250).collect::<Vec<u64>>());
    assert_eq!(reader.keys().len(), 250);
}

#[test]
fn a_recording_that_cannot_be_written_is_named() {
    let path = Path::new("no such folder/a.lct");
    let error = Recording::create(path, Header::storage(0.0, String::new()), LctOptions::default());
    let error = error.err().unwrap().to_string();
    assert!(error.starts_with("no such folder/a.lct: cannot write: "), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Broken by: an index or a length taken from the file without a look.
    #[test]
    fn damage_never_panics(
        edits in prop::collection::vec((0..5_000usize, any::<u8>(), 0u8..4), 1..8),
    ) {
        let flat = flat_prefetch(&[(1, 10, 0), (1, 11, 1), (2, 10, 0), (2, 11, 1)]);
        let mut bytes = [bytes_of(6), flat].concat();
        for (position, byte, kind) in edits {
            let position = position % bytes.len();
            match kind {
                0 => bytes[position] = byte,
                1 => bytes.insert(position, byte),
                2 if bytes.len() > 1 => drop(bytes.remove(position)),
                _ => bytes.truncate(position.max(1)),
            }
        }
        match read_bytes(&bytes) {
            Ok((calls, survey)) => prop_assert!(calls <= survey.records()),
            Err(error) => prop_assert!(error.to_string().starts_with("<memory>"), "{}", error),
        }
    }
}
