//! The arguments of `submit_prefetch_task` in all generations, as the newest one means them: a row per object
//! group and rank (spec/storage-trace.md 1.5 to 1.7).

use wavetank_model::{FetchPolicy, KeyId, Keys, LayoutId, LockMode, Prefetch, Row};

use super::cursor::{Cursor, Fault, Read};
use super::generation::Generations;
use super::key::{Names, Salts};
use super::shape::{Field, keep, required};

/// A row takes more than this.
const LEAST_ROW: usize = 60;
/// All of a prefix must be there.
const WHOLE: i32 = -1;

/// What is asked for, without the name of who asks.
struct Spec {
    rows: Box<[Row]>,
    readers: u32,
    policy: FetchPolicy,
    lock: LockMode,
    evidence: Generations,
}

/// Reads the arguments; adds what they say of the file's generation.
pub(super) fn read(
    args: &mut Cursor<'_>,
    names: &mut Names,
    salts: &mut Salts<'_>,
) -> Read<(Prefetch, Generations)> {
    let (mut spec, mut request, mut skip_l2) = (None, None, None);
    let mut flat = Flat::default();
    args.fields(|name, cursor| match name {
        b"spec" => keep(&mut spec, spec_of(cursor, names, salts)),
        b"external_request_id" => keep(&mut request, cursor.text()),
        b"skip_l2" => keep(&mut skip_l2, cursor.boolean()),
        _ => flat.field(name, cursor, names, salts),
    })?;
    let spec = match spec {
        Some(spec) => spec,
        None => {
            let evidence = flat.evidence(skip_l2);
            flat.spec(names, evidence)?
        }
    };
    let Spec { rows, readers, policy, lock, evidence } = spec;
    let request = required("external_request_id", request)?.into();
    let skip_l2 = skip_l2.unwrap_or(false);
    Ok((Prefetch { rows, readers, policy, lock, request, skip_l2, handle: None }, evidence))
}

fn spec_of(cursor: &mut Cursor<'_>, names: &mut Names, salts: &mut Salts<'_>) -> Read<Spec> {
    cursor.tagged(|tag, cursor| match tag {
        "PrefetchTaskSpec" => grid(cursor, names, salts),
        "PrefetchRequestSpec" => {
            let mut flat = Flat::default();
            cursor.fields(|name, cursor| flat.field(name, cursor, names, salts))?;
            let evidence = if flat.extra_count { Generations::E } else { Generations::F };
            flat.spec(names, evidence)
        }
        _ => Err(Fault::unknown("tag", tag)),
    })
}

/// Generation G.
fn grid(cursor: &mut Cursor<'_>, names: &mut Names, salts: &mut Salts<'_>) -> Read<Spec> {
    let (mut rows, mut readers, mut policy, mut lock) = (None, None, None, None);
    cursor.fields(|name, cursor| match name {
        b"key_groups" => keep(&mut rows, cursor.list(LEAST_ROW, |cursor| row(cursor, names, salts))),
        b"num_kv_readers" => keep(&mut readers, cursor.integer()),
        b"fetching_policy" => keep(&mut policy, cursor.text().and_then(fetch_policy)),
        b"lock_mode" => keep(&mut lock, cursor.word("PrefetchLockMode").and_then(lock_mode)),
        _ => Ok(Field::Unknown),
    })?;
    let rows: Box<[Row]> = required("key_groups", rows)?;
    let columns = rows.first().ok_or_else(|| Fault::damaged("a prefetch without rows"))?.keys.len();
    if rows.iter().any(|row| row.keys.len() != columns) {
        return Err(Fault::damaged("rows of a prefetch differ in length"));
    }
    Ok(Spec {
        rows,
        readers: readers.unwrap_or(1),
        policy: policy.unwrap_or(FetchPolicy::Prefix),
        lock: lock.unwrap_or(LockMode::Lock),
        evidence: Generations::G,
    })
}

fn row(cursor: &mut Cursor<'_>, names: &mut Names, salts: &mut Salts<'_>) -> Read<Row> {
    let (mut keys, mut group, mut layout, mut window) = (None, None, None, None);
    cursor.of_tag("GroupedObjectKeys", |cursor| {
        cursor.fields(|name, cursor| match name {
            b"keys" => keep(&mut keys, names.keys(cursor, salts)),
            b"object_group_id" => keep(&mut group, cursor.integer()),
            b"layout_desc" => keep(&mut layout, names.layout(cursor)),
            b"sliding_window_size" => keep(&mut window, cursor.integer()),
            _ => Ok(Field::Unknown),
        })
    })?;
    Ok(Row {
        keys: required("keys", keys)?,
        group: required("object_group_id", group)?,
        layout: required("layout_desc", layout)?,
        window: window.unwrap_or(WHOLE),
    })
}

fn fetch_policy(name: &str) -> Read<FetchPolicy> {
    match name {
        "prefix" => Ok(FetchPolicy::Prefix),
        "full" => Ok(FetchPolicy::Full),
        _ => Err(Fault::unknown("fetching policy", name)),
    }
}

fn lock_mode(name: &str) -> Read<LockMode> {
    match name {
        "LOCK" => Ok(LockMode::Lock),
        "NO_LOCK" => Ok(LockMode::NoLock),
        _ => Err(Fault::unknown("lock mode", name)),
    }
}

/// Generations A to F: one list of keys, chunk by chunk.
#[derive(Default)]
struct Flat {
    keys: Option<Keys>,
    layout: Option<LayoutId>,
    group_layouts: Vec<(u32, LayoutId)>,
    readers: Option<u32>,
    extra_count: bool,
    policy: Option<FetchPolicy>,
    windows: Option<Box<[i32]>>,
    lock: Option<LockMode>,
}

impl Flat {
    fn field(
        &mut self,
        name: &[u8],
        cursor: &mut Cursor<'_>,
        names: &mut Names,
        salts: &mut Salts<'_>,
    ) -> Read<Field> {
        match name {
            b"keys" => keep(&mut self.keys, names.keys(cursor, salts)),
            b"layout_desc" => keep(&mut self.layout, names.layout(cursor)),
            b"group_layout_descs" => self.layouts(cursor, names),
            b"extra_count" => {
                self.extra_count = true;
                keep(&mut self.readers, locks_of_extra(cursor))
            }
            b"num_kv_readers" => keep(&mut self.readers, cursor.integer()),
            b"policy" => keep(&mut self.policy, cursor.word("TrimPolicy").and_then(trim_policy)),
            b"attn_desc" => keep(&mut self.windows, cursor.of_tag("AttnWindowDesc", windows)),
            b"mode" => keep(&mut self.lock, cursor.word("PrefetchMode").and_then(prefetch_mode)),
            _ => Ok(Field::Unknown),
        }
    }

    fn layouts(&mut self, cursor: &mut Cursor<'_>, names: &mut Names) -> Read<Field> {
        cursor.fields(|group, cursor| {
            let group = std::str::from_utf8(group).ok().and_then(|digits| digits.parse().ok());
            let group = group.ok_or_else(|| Fault::damaged("a layout of no group"))?;
            self.group_layouts.push((group, names.layout(cursor)?));
            Ok(Field::Known)
        })?;
        Ok(Field::Known)
    }

    /// What arguments without a specification say; each release added one.
    fn evidence(&self, skip_l2: Option<bool>) -> Generations {
        match (self.windows.is_some() || self.lock.is_some(), skip_l2.is_some(), self.policy.is_some()) {
            (true, ..) => Generations::D,
            (_, true, _) => Generations::C,
            (.., true) => Generations::B,
            _ => Generations::A,
        }
    }

    fn spec(self, names: &Names, evidence: Generations) -> Read<Spec> {
        let keys = required("keys", self.keys.as_deref())?;
        let rows = rows_of(keys, names)?;
        let rows = rows.into_iter().map(|keys| {
            let family = names.table.key(keys[0]).family;
            let group = family.object_group_id;
            let layout = self.group_layouts.iter().find(|(known, _)| *known == group);
            let layout = required("layout_desc", layout.map(|(_, layout)| *layout).or(self.layout))?;
            let window = match self.windows.as_deref() {
                None | Some([]) => WHOLE,
                Some(windows) => *windows
                    .get(group as usize)
                    .ok_or_else(|| Fault::damaged(format!("no attention window of group {group}")))?,
            };
            Ok(Row { keys: keys.into(), group, layout, window })
        });
        Ok(Spec {
            rows: rows.collect::<Read<_>>()?,
            readers: self.readers.unwrap_or(1),
            policy: self.policy.unwrap_or(FetchPolicy::Prefix),
            lock: self.lock.unwrap_or(LockMode::Lock),
            evidence,
        })
    }
}

/// A flat list as rows. It is chunk by chunk, and within a chunk one key of each group and rank, so a row
/// ends where the first group and rank come again.
fn rows_of(keys: &[KeyId], names: &Names) -> Read<Vec<Vec<KeyId>>> {
    let family = |key: &KeyId| names.table.family_of(*key);
    let first = keys.first().ok_or_else(|| Fault::damaged("a prefetch without keys"))?;
    let rows = keys[1..].iter().position(|key| family(key) == family(first)).map_or(keys.len(), |at| at + 1);
    let regular = keys.iter().zip(&keys[rows..]).all(|(key, next)| family(key) == family(next));
    if !keys.len().is_multiple_of(rows) || !regular {
        return Err(Fault::damaged("keys of a prefetch are not in the order of chunks"));
    }
    Ok((0..rows).map(|row| keys[row..].iter().step_by(rows).copied().collect()).collect())
}

/// `n` more locks than one.
pub(super) fn locks_of_extra(cursor: &mut Cursor<'_>) -> Read<u32> {
    cursor.integer::<u32>()?.checked_add(1).ok_or_else(|| Fault::damaged("\"extra_count\" is out of range"))
}

/// What became `prefix` and `full`: anything but a prefix keeps what is found after a gap.
fn trim_policy(name: &str) -> Read<FetchPolicy> {
    match name {
        "PREFIX" => Ok(FetchPolicy::Prefix),
        "SEGMENTED_PREFIX" | "SPARSE" => Ok(FetchPolicy::Full),
        _ => Err(Fault::unknown("trim policy", name)),
    }
}

fn prefetch_mode(name: &str) -> Read<LockMode> {
    match name {
        "LOOKUP" => Ok(LockMode::Lock),
        "WARM" => Ok(LockMode::NoLock),
        _ => Err(Fault::unknown("prefetch mode", name)),
    }
}

fn windows(cursor: &mut Cursor<'_>) -> Read<Box<[i32]>> {
    if !cursor.is_map() {
        return cursor.short_list(Cursor::integer);
    }
    let mut windows = None;
    cursor.fields(|name, cursor| match name {
        b"num_chunks_in_sw" => keep(&mut windows, cursor.short_list(Cursor::integer)),
        _ => Ok(Field::Unknown),
    })?;
    required("num_chunks_in_sw", windows)
}
