//! The sample recordings of the shared data, where it lies beside the checkout: each gives what its README
//! says.

use std::path::PathBuf;

use serde_json::Value;
use wavetank_model::{KeyTable, Nanos, Recorded, StorageCall};
use wavetank_trace::calls::CallReader;
use wavetank_trace::calls::lct::{self, FRAME_LIMIT, Generations, Header, Reader};
use wavetank_trace::{CallSurvey, Cut, Input, Output};

fn path(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/lct").join(name);
    path.exists().then_some(path)
}

fn open(name: &str) -> Option<wavetank_model::Result<Reader>> {
    Some(Reader::open(&Input::File(path(name)?), FRAME_LIMIT))
}

/// Everything of a recording.
struct Whole {
    header: Header,
    calls: Vec<Recorded>,
    survey: CallSurvey,
    generations: Generations,
    reader: Reader,
}

fn whole(name: &str) -> Option<Whole> {
    let mut reader = open(name)?.expect("a recording");
    let mut calls = Vec::new();
    while let Some(call) = reader.advance().expect("readable to its end") {
        calls.push(call);
    }
    let (header, survey, generations) = (reader.header().clone(), reader.survey(), reader.generations());
    Some(Whole { header, calls, survey, generations, reader })
}

/// A call as the decoded JSON has it, in the newest generation.
fn spelled(recorded: &Recorded, table: &KeyTable) -> String {
    let keys = recorded.call.keys().map(|id| {
        let key = table.key(id);
        let hash: String = key.chunk_hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let family = key.family;
        format!("{hash} {} {} {}", family.model_name, family.kv_rank, family.object_group_id)
    });
    let keys: Vec<String> = keys.collect();
    let shape = match &recorded.call {
        StorageCall::ReserveWrite { layout, .. } => format!("reserve_write {:?}", table.layout(*layout)),
        StorageCall::FinishWrite { .. } => "finish_write".to_owned(),
        StorageCall::SubmitPrefetch(prefetch) => {
            let rows: Vec<_> = prefetch
                .rows
                .iter()
                .map(|row| (row.keys.len(), row.group, table.layout(row.layout), row.window))
                .collect();
            let of = (prefetch.readers, prefetch.policy, prefetch.lock, &prefetch.request, prefetch.skip_l2);
            format!("submit_prefetch_task {rows:?} {of:?}")
        }
        StorageCall::ReadEnter { .. } => "enter".to_owned(),
        StorageCall::ReadExit { .. } => "exit".to_owned(),
        StorageCall::FinishRead { locks, .. } => format!("finish_read_prefetched {locks}"),
        other => format!("{other:?}"),
    };
    format!("{shape} {keys:?}")
}

/// Broken by: a record that is not read, or read twice.
#[test]
fn every_record_of_the_samples_is_read() {
    for (name, calls, generations) in [
        ("small.lct", 16, "G (releases 0.5.6)"),
        ("hybrid.lct", 369, "G (releases 0.5.6)"),
        ("big.lct.gz", 25_529, "G (releases 0.5.6)"),
        ("small_v0.4.5.lct", 7, "A (releases 0.4.4–0.4.6)"),
        ("small_v0.5.2.lct", 7, "D (releases 0.5.1–0.5.2)"),
        ("small_v0.5.4.lct", 7, "E (releases 0.5.3–0.5.4)"),
        ("small_v0.5.5.lct", 7, "F (releases 0.5.5)"),
        ("server_empty.lct", 0, "any (nothing in it tells)"),
        ("header_only.lct", 0, "any (nothing in it tells)"),
        ("header_extra_field.lct", 2, "G (releases 0.5.6)"),
    ] {
        let Some(whole) = whole(name) else { return };
        assert_eq!(whole.calls.len(), calls, "{name}");
        assert_eq!(whole.survey.records(), calls as u64, "{name}");
        assert_eq!(whole.generations.to_string(), generations, "{name}");
        let left_out = (whole.survey.unknown.count(), whole.survey.damaged.count(), whole.survey.cut);
        assert_eq!(left_out, (0, 0, None), "{name}");
    }
}

/// Broken by: locks, rows, windows or layouts of an older release taken for something else.
#[test]
fn generations_mean_the_same() {
    let spelled = |name: &str| -> Option<Vec<String>> {
        let whole = whole(name)?;
        Some(whole.calls.iter().map(|call| spelled(call, whole.reader.keys())).collect())
    };
    let Some(oldest) = spelled("small_v0.4.5.lct") else { return };
    assert!(oldest[0].starts_with("submit_prefetch_task [(4, 0, Layout"), "{}", oldest[0]);
    assert!(oldest[6].starts_with("finish_read_prefetched 1 ["), "{}", oldest[6]);
    for name in ["small_v0.5.2.lct", "small_v0.5.4.lct", "small_v0.5.5.lct"] {
        assert_eq!(spelled(name).unwrap(), oldest, "{name}");
    }
}

/// The JSON beside a sample, as calls are spelled.
fn expected(record: &Value) -> String {
    let args = &record["args"];
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let keys = |list: &Value| -> Vec<String> {
        let keys = list.as_array().expect("a list").iter().map(|key| {
            let key = &key["v"];
            let hash = text(&key["chunk_hash"]["__bytes_hex__"]);
            format!("{hash} {} {} {}", text(&key["model_name"]), key["kv_rank"], key["object_group_id"])
        });
        keys.collect()
    };
    let layout = |layout: &Value| {
        format!("Layout {{ shapes: {}, dtypes: {} }}", layout["v"]["shapes"], layout["v"]["dtypes"])
    };
    let operation = text(&record["qualname"]);
    let operation = operation.rsplit('.').next().expect("a name");
    let (shape, keys) = match operation {
        "submit_prefetch_task" => {
            let spec = &args["spec"]["v"];
            let groups = spec["key_groups"].as_array().expect("a list").iter().map(|group| &group["v"]);
            let rows: Vec<String> = groups
                .clone()
                .map(|row| {
                    let (columns, layout) =
                        (row["keys"].as_array().expect("a list").len(), layout(&row["layout_desc"]));
                    format!(
                        "({columns}, {}, {layout}, {})",
                        row["object_group_id"], row["sliding_window_size"]
                    )
                })
                .collect();
            let policy = if spec["fetching_policy"] == "full" { "Full" } else { "Prefix" };
            let lock = if spec["lock_mode"]["v"] == "LOCK" { "Lock" } else { "NoLock" };
            let of = format!(
                "({}, {policy}, {lock}, {}, {})",
                spec["num_kv_readers"], args["external_request_id"], args["skip_l2"]
            );
            let keys = groups.flat_map(|row| keys(&row["keys"])).collect();
            (format!("submit_prefetch_task [{}] {of}", rows.join(", ")), keys)
        }
        "reserve_write" => (format!("reserve_write {}", layout(&args["layout_desc"])), keys(&args["keys"])),
        "finish_read_prefetched" => {
            (format!("finish_read_prefetched {}", args["read_locks"]), keys(&args["keys"]))
        }
        other => (other.trim_matches('_').to_owned(), keys(&args["keys"])),
    };
    format!("{shape} {keys:?}")
}

/// Broken by: any field of any record read wrongly.
#[test]
fn decoded_forms_match() {
    for name in ["small", "hybrid"] {
        let Some(whole) = whole(&format!("{name}.lct")) else { return };
        let json = std::fs::read_to_string(path(&format!("{name}.json")).unwrap()).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        let records = json["records"].as_array().expect("a list");
        // The larger one is decoded as far as its sixtieth record.
        assert_eq!(records.len(), whole.calls.len().min(60));
        assert_eq!(json["frames"], whole.calls.len() + 1);
        for (record, call) in records.iter().map(|record| &record["record"]).zip(&whole.calls) {
            // Lists are printed with a space by one and without by the other.
            let dense = |text: String| text.replace(", ", ",");
            assert_eq!(dense(spelled(call, whole.reader.keys())), dense(expected(record)), "{name}");
            let clock = call.clock.unwrap();
            // The last digit of a number in JSON depends on its parser.
            let near = |seconds: f64, field: &str| (seconds - record[field].as_f64().unwrap()).abs() < 1e-6;
            assert!(near(clock.mono_s, "t_mono") && near(clock.wall_s, "t_wall"), "{clock:?}");
            assert_eq!(call.at, Nanos::from_seconds(clock.mono_s));
        }
        let header = &json["header"];
        assert_eq!(whole.header.config_json, header["sm_config_json"].as_str().expect("a text"));
        assert_eq!(whole.header.config_digest, header["sm_config_digest"].as_str().expect("a text"));
        assert_eq!(whole.header.config_digest, lct::plain_digest(&whole.header.config_json));
        assert_eq!(Some(whole.header.mono_start_s), header["t_mono_start"].as_f64());
    }
}

/// Broken by: another order of names, another form of a number, a name that is not the reference's.
#[test]
fn what_is_read_is_written_as_it_was() {
    for name in ["small.lct", "hybrid.lct", "server_empty.lct", "header_only.lct", "big.lct.gz"] {
        let Some(path) = path(name) else { return };
        let mut original = Vec::new();
        if name.ends_with(".gz") {
            let file = std::fs::File::open(&path).unwrap();
            std::io::copy(&mut flate2::read::GzDecoder::new(file), &mut original).unwrap();
        } else {
            original = std::fs::read(&path).unwrap();
        }
        let mut reader = Reader::open(&Input::File(path), FRAME_LIMIT).unwrap();
        let mut bytes = Vec::new();
        let mut writer = lct::Writer::begin(Output::to(&mut bytes), reader.header()).unwrap();
        while let Some(call) = reader.advance().expect("readable to its end") {
            writer.record(&call, reader.keys()).unwrap();
        }
        writer.finish().unwrap();
        assert!(bytes == original, "{name}: {} bytes of {}", bytes.len(), original.len());
    }
}

/// Broken by: a damaged file that is refused, or read on as if nothing were missing.
#[test]
fn damage_is_counted() {
    let Some(cut) = whole("trunc_body.lct") else { return };
    assert_eq!((cut.calls.len(), cut.survey.cut.map(|cut| cut.offset)), (4, Some(4756)));
    let prefix = whole("trunc_prefix.lct").unwrap();
    assert_eq!((prefix.calls.len(), prefix.survey.cut), (4, Some(Cut { offset: 4756, bytes: 2 })));
    let middle = whole("malformed_middle.lct").unwrap();
    assert_eq!((middle.calls.len(), middle.survey.damaged.count(), middle.survey.cut), (5, 1, None));
    assert_eq!(middle.survey.damaged.reasons[0].first_offset, 3050);
    let unknown = whole("unknown_op_tag_field.lct").unwrap();
    assert_eq!((unknown.calls.len(), unknown.survey.records()), (4, 6));
    let reasons: Vec<_> = unknown.survey.unknown.reasons.iter().map(|reason| &*reason.reason).collect();
    let operation = "lmcache.v1.distributed.storage_manager.StorageManager.touch_l1_keys";
    assert_eq!(reasons, [&format!("unknown operation \"{operation}\""), "unknown tag \"Mystery\""]);
    let events = whole("events.lct").unwrap();
    assert_eq!((events.calls.len(), events.survey.records(), events.survey.unknown.count()), (0, 2, 0));
    assert_eq!(events.header.level, "events");
    let error = wavetank_trace::calls::read("lct", &Input::File(path("events.lct").unwrap())).err().unwrap();
    assert!(error.to_string().contains("events.lct: its level is \"events\""), "{error}");
}

/// Broken by: a version that is taken for another.
#[test]
fn other_versions_are_refused() {
    let refused = |name: &str| match open(name)? {
        Err(error) => Some(error.to_string()),
        Ok(mut reader) => Some(reader.advance().unwrap_err().to_string()),
    };
    for (name, expected) in [
        ("bad_magic.lct", "its magic is 58585858, not 4c4d4354 (LMCT)\nhint: "),
        ("bad_format_version.lct", "format_version is 2\nhint: "),
        (
            "bad_schema_version.lct",
            "byte 1546: trace_schema_version is 2, but a key has no \"cache_salt\"\nhint: ",
        ),
    ] {
        let Some(error) = refused(name) else { return };
        assert!(error.contains(&format!("{name}: {expected}")), "{error}");
    }
}

/// big.lct as spec/storage-trace.md 10.1 counts it.
#[test]
fn the_big_one_holds_what_was_counted() {
    let Some(whole) = whole("big.lct.gz") else { return };
    let count = |wanted: fn(&StorageCall) -> bool| {
        let calls = whole.calls.iter().filter(|recorded| wanted(&recorded.call));
        calls.fold((0, 0), |(calls, keys), recorded| (calls + 1, keys + recorded.call.keys().count()))
    };
    assert_eq!(count(|call| matches!(call, StorageCall::SubmitPrefetch(_))), (3_600, 90_966));
    assert_eq!(count(|call| matches!(call, StorageCall::ReadEnter { .. })), (5_422, 61_882));
    assert_eq!(count(|call| matches!(call, StorageCall::ReadExit { .. })), (5_422, 61_882));
    assert_eq!(count(|call| matches!(call, StorageCall::FinishRead { .. })), (5_614, 64_014));
    assert_eq!(count(|call| matches!(call, StorageCall::ReserveWrite { .. })), (2_738, 26_952));
    assert_eq!(count(|call| matches!(call, StorageCall::FinishWrite { .. })), (2_733, 26_879));
    assert_eq!((whole.reader.keys().len(), whole.reader.keys().families().count()), (14_240, 2));
    assert!(whole.calls.is_sorted_by_key(|call| call.at));
    assert!((whole.survey.last_s - 36.1605).abs() < 1e-4, "{}", whole.survey.last_s);
}
