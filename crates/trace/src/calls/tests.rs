//! Every format reads what it writes.

use std::sync::Arc;

use proptest::prelude::*;
use wavetank_model::{
    Clock, Fate, FetchPolicy, KeyFamily, KeyId, Layout, LayoutId, LockMode, ObjectKey, Prefetch, Row,
    StorageCall, WriteMode,
};

use super::*;

/// Calls of one kind, and the table of their keys.
type Sample = (Vec<Call>, Arc<KeyTable>);

/// Calls as a log has them: microseconds from the first one.
fn tier_calls() -> impl Strategy<Value = Sample> {
    let operation = prop::sample::select(vec![Operation::Read, Operation::Write, Operation::Delete]);
    let phase = prop::sample::select(vec![Phase::Prefill, Phase::Decode, Phase::Evict, Phase::Both]);
    let call = (0u64..1 << 40, operation, any::<u64>(), any::<u8>(), any::<String>(), phase);
    prop::collection::vec(call, 0..20).prop_map(|calls| {
        let mut micros = 0;
        let mut call =
            |(number, (pause, operation, bytes, tier, key, phase)): (usize, (_, _, _, _, String, _))| {
                micros += if number == 0 { 0 } else { pause };
                let key = key.into_boxed_str();
                Call::Tier(TierCall { at: Nanos(micros * 1000), operation, bytes, tier, key, phase })
            };
        (calls.into_iter().enumerate().map(&mut call).collect(), Arc::default())
    })
}

/// Keys that differ in every part, some of them with a tenant.
fn keys() -> impl Strategy<Value = KeyTable> {
    let key =
        (prop::collection::vec(any::<u8>(), 0..40), "[a-z/é]{0,40}", any::<u64>(), any::<u32>(), "[st]?");
    let shape = prop::collection::vec((prop::collection::vec(any::<u64>(), 0..5), "[a-z.]{0,9}"), 0..3);
    (prop::collection::vec(key, 1..12), prop::collection::vec(shape, 1..4)).prop_map(|(keys, layouts)| {
        let mut table = KeyTable::default();
        for (hash, model_name, kv_rank, object_group_id, cache_salt) in &keys {
            let (kv_rank, object_group_id) = (*kv_rank, *object_group_id);
            let family = KeyFamily { model_name, kv_rank, object_group_id, cache_salt };
            table.key_id(ObjectKey { chunk_hash: hash, family });
        }
        for tensors in layouts {
            let (shapes, dtypes): (Vec<_>, Vec<_>) =
                tensors.into_iter().map(|(shape, dtype)| (shape.into(), dtype.into())).unzip();
            table.layout_id(Layout { shapes: shapes.into(), dtypes: dtypes.into() });
        }
        table
    })
}

/// A call of any kind on keys there are.
fn storage_call(keys: u32, layouts: u32) -> impl Strategy<Value = StorageCall> {
    let some =
        move || prop::collection::vec((0..keys).prop_map(KeyId), 0..20).prop_map(Vec::into_boxed_slice);
    let layout = move || (0..layouts).prop_map(LayoutId);
    let mode = prop::sample::select(vec![WriteMode::New, WriteMode::Update, WriteMode::All]);
    let row = move |columns| {
        let keys = prop::collection::vec((0..keys).prop_map(KeyId), columns).prop_map(Vec::into_boxed_slice);
        (keys, any::<u32>(), layout(), any::<i32>()).prop_map(|(keys, group, layout, window)| Row {
            keys,
            group,
            layout,
            window,
        })
    };
    let rows = (0usize..9).prop_flat_map(move |columns| prop::collection::vec(row(columns), 1..5));
    let policy = prop::sample::select(vec![FetchPolicy::Prefix, FetchPolicy::Full]);
    let lock = prop::sample::select(vec![LockMode::Lock, LockMode::NoLock]);
    let prefetch = (rows, any::<u32>(), policy, lock, any::<String>(), any::<bool>(), any::<Option<u64>>())
        .prop_map(|(rows, readers, policy, lock, request, skip_l2, handle)| {
            let (rows, request) = (rows.into(), request.into());
            StorageCall::SubmitPrefetch(Box::new(Prefetch {
                rows,
                readers,
                policy,
                lock,
                request,
                skip_l2,
                handle,
            }))
        });
    prop_oneof![
        (some(), layout(), mode).prop_map(|(keys, layout, mode)| StorageCall::ReserveWrite {
            keys,
            layout,
            mode
        }),
        some().prop_map(|keys| StorageCall::FinishWrite { keys }),
        prefetch,
        some().prop_map(|keys| StorageCall::ReadEnter { keys }),
        some().prop_map(|keys| StorageCall::ReadExit { keys }),
        (some(), any::<u32>()).prop_map(|(keys, locks)| StorageCall::FinishRead { keys, locks }),
        (any::<u8>(), any::<u32>(), any::<Option<u32>>())
            .prop_map(|(tier, evicted, most)| StorageCall::EvictionPass { tier, evicted, most }),
        (any::<u8>(), some(), layout()).prop_map(|(tier, keys, layout)| StorageCall::Found {
            tier,
            keys,
            layout
        }),
        (any::<u8>(), some()).prop_map(|(tier, keys)| StorageCall::StoreCompleted { tier, keys }),
        (any::<u8>(), some()).prop_map(|(tier, keys)| StorageCall::StoreBegun { tier, keys }),
        (any::<u64>(), some()).prop_map(|(handle, keys)| StorageCall::PrefetchCompleted { handle, keys }),
        some().prop_map(|keys| StorageCall::Removed { keys }),
        any::<u64>().prop_map(|lost| StorageCall::Gap { lost }),
    ]
}

/// Recorded calls with and without what is ours.
fn storage_calls() -> impl Strategy<Value = Sample> {
    keys().prop_flat_map(|table| {
        let (keys, layouts) = (table.len() as u32, table.layouts().len() as u32);
        let table = Arc::new(table);
        let extras = (any::<Option<u64>>(), any::<Option<u32>>(), any::<Option<u8>>(), any::<u64>());
        let call = (0.0f64..1e6, 0.0f64..2e9, extras, storage_call(keys, layouts));
        prop::collection::vec(call, 0..12).prop_map(move |calls| {
            let recorded = |(mono_s, wall_s, extras, call): (f64, f64, _, StorageCall)| {
                let (duration, thread, first, unnamed): (Option<u64>, _, Option<u8>, u64) = extras;
                let fates = || Fate::ALL.iter().cycle().copied();
                let outcome = first
                    .map(|first| call.keys().zip(fates().skip(first.into())).map(|(_, fate)| fate).collect());
                Call::Storage(Recorded {
                    at: Nanos::from_seconds(mono_s),
                    clock: Some(Clock { mono_s, wall_s }),
                    duration: duration.map(Nanos),
                    thread,
                    outcome,
                    unnamed,
                    call,
                })
            };
            (calls.into_iter().map(recorded).collect(), Arc::clone(&table))
        })
    })
}

fn written(format: &Entry, (calls, keys): &Sample) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = (format.write)(Output::to(&mut bytes)).unwrap();
    for call in calls {
        writer.write(call, keys).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// A call with its keys spelled out: numbers of two tables differ.
fn spelled(call: &Call, table: &KeyTable) -> String {
    let Call::Storage(recorded) = call else { return format!("{call:?}") };
    let (mut plain, mut keys, mut layouts) = (recorded.clone(), Vec::new(), Vec::new());
    plain.call.renumber(
        |key| {
            keys.push(table.key(key));
            KeyId(0)
        },
        |layout| {
            layouts.push(table.layout(layout));
            LayoutId(0)
        },
    );
    format!("{plain:?} {keys:?} {layouts:?}")
}

fn samples(format: &Entry) -> BoxedStrategy<Sample> {
    match format.name {
        "mlperf-csv" => tier_calls().boxed(),
        _ => storage_calls().boxed(),
    }
}

/// Broken by: a field that is not written, not read, or written in another's place.
#[test]
fn what_is_written_reads_back() {
    for format in ALL {
        let mut runner = proptest::test_runner::TestRunner::default();
        let run = runner.run(&samples(format), |sample| {
            let bytes = written(format, &sample);
            let mut reader = (format.read)(&Input::Bytes(Arc::from(bytes))).unwrap();
            let read: Vec<Call> = reader.by_ref().collect::<Result<_>>().unwrap();
            let read: Vec<_> = read.iter().map(|call| spelled(call, reader.keys())).collect();
            let expected: Vec<_> = sample.0.iter().map(|call| spelled(call, &sample.1)).collect();
            prop_assert_eq!(read, expected, "{}", format.name);
            let survey = reader.survey();
            prop_assert_eq!(survey.records(), sample.0.len() as u64, "{}", format.name);
            prop_assert_eq!((survey.unknown.count(), survey.damaged.count(), survey.cut), (0, 0, None));
            Ok(())
        });
        run.unwrap();
    }
}

/// Broken by: a writer that drops calls of the other kind without a word.
#[test]
fn calls_of_another_kind_are_refused() {
    let gap = Call::Storage(Recorded::plain(Nanos(1), StorageCall::Gap { lost: 1 }));
    let (operation, phase) = (Operation::Read, Phase::Both);
    let tier = Call::Tier(TierCall { at: Nanos(1), operation, bytes: 1, tier: 0, key: "k".into(), phase });
    for format in ALL {
        let mut writer = (format.write)(Output::to(Vec::new())).unwrap();
        let taken = [&gap, &tier].map(|call| writer.write(call, &KeyTable::default()).is_ok());
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{}", format.name);
    }
}

#[test]
fn rows_may_begin_at_any_time() {
    let (operation, phase) = (Operation::Read, Phase::Both);
    let call =
        |at| Call::Tier(TierCall { at: Nanos(at), operation, bytes: 1, tier: 0, key: "k".into(), phase });
    let origin = 1_700_000_000_000_000_000;
    let bytes = written(&mlperf_csv::ENTRY, &(vec![call(origin), call(origin + 5_000)], Arc::default()));
    let read: Result<Vec<Call>> = read("mlperf-csv", &Input::Bytes(Arc::from(bytes))).unwrap().collect();
    assert_eq!(read.unwrap(), [call(0), call(5_000)]);
}

#[test]
fn an_unknown_format_lists_the_known_ones() {
    let error = read("csv", &Input::Stdin).err().unwrap().to_string();
    assert!(error.contains("unknown storage-call format \"csv\"\nhint: known: lct, mlperf-csv"), "{error}");
}
