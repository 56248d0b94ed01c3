//! One record to one frame, byte for byte as the newest release of the reference writes it. What it does
//! not know of stands in keys of the record's map that it passes over, before the arguments.

use rmp::encode;
use wavetank_model::{
    Clock, FetchPolicy, KeyId, KeyTable, LayoutId, LockMode, Prefetch, Recorded, Row, StorageCall, WriteMode,
};

use super::header::{FORMAT, Header, MAGIC, SCHEMAS};
use super::operation::Operation;

/// Bytes before the content of a frame.
const PREFIX: usize = 4;

/// A frame being written; memory takes every byte, so nothing fails.
#[derive(Default)]
pub(super) struct Pen {
    frame: Vec<u8>,
}

macro_rules! put {
    ($($name:ident($value:ty) = $write:path;)*) => {$(
        fn $name(&mut self, value: $value) {
            $write(&mut self.frame, value).expect("memory takes every byte");
        }
    )*};
}

impl Pen {
    put! {
        map(u32) = encode::write_map_len;
        array(u32) = encode::write_array_len;
        text(&str) = encode::write_str;
        binary(&[u8]) = encode::write_bin;
        integer(i64) = encode::write_sint;
        natural(u64) = encode::write_uint;
        float(f64) = encode::write_f64;
    }

    fn boolean(&mut self, value: bool) {
        encode::write_bool(&mut self.frame, value).expect("memory takes every byte");
    }

    fn begin(&mut self) {
        self.frame.clear();
        self.frame.extend_from_slice(&[0; PREFIX]);
    }

    /// The frame with its length.
    fn end(&mut self) -> &[u8] {
        let length = u32::try_from(self.frame.len() - PREFIX).expect("a record is smaller than 4 GiB");
        self.frame[..PREFIX].copy_from_slice(&length.to_be_bytes());
        &self.frame
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.array(u32::try_from(items.len()).expect("a list in memory"));
        for item in items {
            write(self, item);
        }
    }

    fn tag(&mut self, tag: &str) {
        self.map(2);
        self.text("__t__");
        self.text(tag);
        self.text("v");
    }

    /// The first frame of a file.
    pub(super) fn header(&mut self, header: &Header) -> &[u8] {
        let extras = u32::from(!header.level_meta.is_empty()) + u32::from(header.part > 1);
        self.begin();
        self.map(9 + extras);
        self.text("type");
        self.text("header");
        self.text("magic");
        self.binary(MAGIC);
        self.text("format_version");
        self.natural(FORMAT);
        self.text("level");
        self.text(&header.level);
        self.text("trace_schema_version");
        self.natural(SCHEMAS[0]);
        self.text("t_mono_start");
        self.float(header.mono_start_s);
        self.text("t_wall_start");
        self.float(header.wall_start_s);
        self.text("sm_config_json");
        self.text(&header.config_json);
        self.text("sm_config_digest");
        self.text(&header.config_digest);
        if !header.level_meta.is_empty() {
            self.text("level_meta");
            self.level_meta(header);
        }
        if header.part > 1 {
            self.text("wt_part");
            self.natural(header.part.into());
        }
        self.end()
    }

    fn level_meta(&mut self, header: &Header) {
        self.map(u32::try_from(header.level_meta.len()).expect("a map in memory"));
        for (name, value) in &header.level_meta {
            self.text(name);
            match value.as_i64() {
                Some(number) => self.integer(number),
                None => self.text(value.as_str().unwrap_or_default()),
            }
        }
    }

    /// A mark of the recorder.
    pub(super) fn mark(&mut self, operation: Operation, clock: Clock, number: u64) -> &[u8] {
        self.begin();
        self.map(5);
        self.outline(operation, clock);
        self.text("args");
        self.map(1);
        self.text(if operation == Operation::Continued { "part" } else { "bytes" });
        self.natural(number);
        self.end()
    }

    fn outline(&mut self, operation: Operation, clock: Clock) {
        self.text("type");
        self.text("record");
        self.text("t_mono");
        self.float(clock.mono_s);
        self.text("t_wall");
        self.float(clock.wall_s);
        self.text("qualname");
        self.text(operation.qualname());
    }

    /// A call at the time of `clock`.
    pub(super) fn record(&mut self, recorded: &Recorded, clock: Clock, keys: &KeyTable) -> &[u8] {
        let Recorded { duration, thread, outcome, unnamed, call, .. } = recorded;
        let salts = Salts::of(call, keys);
        let mode = match call {
            StorageCall::ReserveWrite { mode: WriteMode::Update, .. } => Some("update"),
            StorageCall::ReserveWrite { mode: WriteMode::All, .. } => Some("all"),
            _ => None,
        };
        let handle = match call {
            StorageCall::SubmitPrefetch(asked) => asked.handle,
            _ => None,
        };
        let extras = [
            duration.is_some(),
            thread.is_some(),
            outcome.is_some(),
            mode.is_some(),
            handle.is_some(),
            *unnamed > 0,
            !matches!(salts, Salts::None),
        ];
        self.begin();
        self.map(5 + extras.into_iter().map(u32::from).sum::<u32>());
        self.outline(operation_of(call), clock);
        if let Some(duration) = duration {
            self.text("wt_duration_ns");
            self.natural(duration.0);
        }
        if let Some(thread) = thread {
            self.text("wt_thread");
            self.natural((*thread).into());
        }
        if let Some(outcome) = outcome {
            self.text("wt_result");
            self.binary(&outcome.iter().map(|fate| *fate as u8).collect::<Vec<_>>());
        }
        if let Some(mode) = mode {
            self.text("wt_mode");
            self.text(mode);
        }
        if let Some(handle) = handle {
            self.text("wt_handle");
            self.natural(handle);
        }
        if *unnamed > 0 {
            self.text("wt_unnamed");
            self.natural(*unnamed);
        }
        self.salts(&salts);
        self.text("args");
        self.arguments(call, keys);
        self.end()
    }

    fn salts(&mut self, salts: &Salts<'_>) {
        match salts {
            Salts::None => {}
            Salts::One(salt) => {
                self.text("wt_salt");
                self.text(salt);
            }
            Salts::Each(salts) => {
                self.text("wt_salt");
                self.list(salts, |pen, salt| pen.text(salt));
            }
        }
    }

    fn arguments(&mut self, call: &StorageCall, table: &KeyTable) {
        match call {
            StorageCall::ReserveWrite { keys, layout, .. } => {
                self.map(2);
                self.keys(keys, table);
                self.layout(*layout, table);
            }
            StorageCall::FinishWrite { keys }
            | StorageCall::Removed { keys }
            | StorageCall::ReadEnter { keys }
            | StorageCall::ReadExit { keys } => {
                self.map(1);
                self.keys(keys, table);
            }
            StorageCall::SubmitPrefetch(prefetch) => self.prefetch(prefetch, table),
            StorageCall::FinishRead { keys, locks } => {
                self.map(2);
                self.keys(keys, table);
                self.text("read_locks");
                self.natural((*locks).into());
            }
            StorageCall::EvictionPass { tier, evicted, most } => {
                self.map(2 + u32::from(most.is_some()));
                self.tier(*tier);
                self.text("evicted");
                self.natural((*evicted).into());
                if let Some(most) = most {
                    self.text("most");
                    self.natural((*most).into());
                }
            }
            StorageCall::Found { tier, keys, layout } => {
                self.map(3);
                self.tier(*tier);
                self.keys(keys, table);
                self.layout(*layout, table);
            }
            StorageCall::StoreCompleted { tier, keys } | StorageCall::StoreBegun { tier, keys } => {
                self.map(2);
                self.tier(*tier);
                self.keys(keys, table);
            }
            StorageCall::PrefetchCompleted { handle, keys } => {
                self.map(2);
                self.text("handle");
                self.natural(*handle);
                self.keys(keys, table);
            }
            StorageCall::Gap { lost } => {
                self.map(1);
                self.text("lost");
                self.natural(*lost);
            }
        }
    }

    fn tier(&mut self, tier: u8) {
        self.text("tier");
        self.natural(tier.into());
    }

    fn prefetch(&mut self, prefetch: &Prefetch, table: &KeyTable) {
        let Prefetch { rows, readers, policy, lock, request, skip_l2, .. } = prefetch;
        self.map(3);
        self.text("spec");
        self.tag("PrefetchTaskSpec");
        self.map(4);
        self.text("key_groups");
        self.list(rows, |pen, row| pen.row(row, table));
        self.text("num_kv_readers");
        self.natural((*readers).into());
        self.text("fetching_policy");
        self.text(match policy {
            FetchPolicy::Prefix => "prefix",
            FetchPolicy::Full => "full",
        });
        self.text("lock_mode");
        self.tag("PrefetchLockMode");
        self.text(match lock {
            LockMode::Lock => "LOCK",
            LockMode::NoLock => "NO_LOCK",
        });
        self.text("external_request_id");
        self.text(request);
        self.text("skip_l2");
        self.boolean(*skip_l2);
    }

    fn row(&mut self, row: &Row, table: &KeyTable) {
        self.tag("GroupedObjectKeys");
        self.map(4);
        self.keys(&row.keys, table);
        self.text("object_group_id");
        self.natural(row.group.into());
        self.layout(row.layout, table);
        self.text("sliding_window_size");
        self.integer(row.window.into());
    }

    fn keys(&mut self, keys: &[KeyId], table: &KeyTable) {
        self.text("keys");
        self.list(keys, |pen, key| {
            let key = table.key(*key);
            pen.tag("ObjectKey");
            pen.map(4);
            pen.text("chunk_hash");
            pen.binary(key.chunk_hash);
            pen.text("model_name");
            pen.text(key.family.model_name);
            pen.text("kv_rank");
            pen.natural(key.family.kv_rank);
            pen.text("object_group_id");
            pen.natural(key.family.object_group_id.into());
        });
    }

    fn layout(&mut self, layout: LayoutId, table: &KeyTable) {
        let layout = table.layout(layout);
        self.text("layout_desc");
        self.tag("MemoryLayoutDesc");
        self.map(2);
        self.text("shapes");
        self.list(&layout.shapes, |pen, shape| pen.list(shape, |pen, side| pen.natural(*side)));
        self.text("dtypes");
        self.list(&layout.dtypes, |pen, dtype| pen.text(dtype));
    }
}

/// Tenants of a call's keys.
enum Salts<'k> {
    None,
    One(&'k str),
    Each(Vec<&'k str>),
}

impl<'k> Salts<'k> {
    fn of(call: &StorageCall, table: &'k KeyTable) -> Self {
        let salt = |key| table.family(table.family_of(key)).cache_salt;
        let mut salts = call.keys().map(salt);
        let Some(first) = salts.next() else { return Self::None };
        match (salts.all(|salt| salt == first), first) {
            (true, "") => Self::None,
            (true, salt) => Self::One(salt),
            (false, _) => Self::Each(call.keys().map(salt).collect()),
        }
    }
}

fn operation_of(call: &StorageCall) -> Operation {
    match call {
        StorageCall::ReserveWrite { .. } => Operation::ReserveWrite,
        StorageCall::FinishWrite { .. } => Operation::FinishWrite,
        StorageCall::SubmitPrefetch(_) => Operation::SubmitPrefetch,
        StorageCall::ReadEnter { .. } => Operation::ReadEnter,
        StorageCall::ReadExit { .. } => Operation::ReadExit,
        StorageCall::FinishRead { .. } => Operation::FinishRead,
        StorageCall::EvictionPass { .. } => Operation::EvictionPass,
        StorageCall::StoreCompleted { .. } => Operation::StoreCompleted,
        StorageCall::StoreBegun { .. } => Operation::StoreBegun,
        StorageCall::PrefetchCompleted { .. } => Operation::PrefetchCompleted,
        StorageCall::Found { .. } => Operation::Found,
        StorageCall::Removed { .. } => Operation::Removed,
        StorageCall::Gap { .. } => Operation::Gap,
    }
}
