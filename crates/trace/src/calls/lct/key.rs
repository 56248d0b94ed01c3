//! Keys and layouts of records, each looked into once. Keys of one model, rank and group differ in their hash
//! only: what stands before and after it is kept as it was encoded, and the next key is compared with that.

use wavetank_model::{FamilyId, KeyFamily, KeyId, KeyTable, Keys, Layout, LayoutId};

use super::cursor::{Cursor, Fault, Read};
use super::generation::Generations;
use super::shape::{Field, keep, required};

/// Encodings kept: of keys, where new ones take the place of old ones, and of layouts, where they do not.
const ENCODINGS: usize = 64;
/// A key takes more than this.
const LEAST_KEY: usize = 40;

/// Reads keys and layouts into a table.
pub(super) struct Names {
    pub(super) table: KeyTable,
    encodings: Vec<Encoding>,
    /// The one that fitted last.
    last: usize,
    /// How many keys were looked into.
    learnt: usize,
    /// The family of the last key whose tenant stood beside it, with and without it, and the key after it.
    salted: Option<(FamilyId, FamilyId, KeyId)>,
    layouts: Vec<(Box<[u8]>, LayoutId)>,
    schema: u64,
    /// What the shape of keys says of the file.
    pub(super) evidence: Generations,
}

/// A key without its hash.
struct Encoding {
    head: Box<[u8]>,
    hash: usize,
    tail: Box<[u8]>,
    family: FamilyId,
    /// The key that came after the last one when both were new.
    next: KeyId,
}

impl Encoding {
    #[inline]
    fn fits(&self, bytes: &[u8]) -> bool {
        let after = bytes.strip_prefix(&*self.head).and_then(|after| after.get(self.hash..));
        after.is_some_and(|after| after.starts_with(&self.tail))
    }
}

/// Tenants of a record's keys, which stand outside of them.
pub(super) enum Salts<'b> {
    /// The keys say it themselves.
    Inside,
    /// One for all.
    One(&'b str),
    /// One for each, in their order: those not used yet, and how many they are.
    Each(Cursor<'b>, usize),
}

impl<'b> Salts<'b> {
    pub(super) fn read(cursor: &mut Cursor<'b>) -> Read<Self> {
        if cursor.is_text() {
            return cursor.text().map(Self::One);
        }
        let mut salts = *cursor;
        cursor.skip()?;
        let left = salts.array()?;
        Ok(Self::Each(salts, left))
    }

    fn next(&mut self) -> Read<Option<&'b str>> {
        match self {
            Self::Inside => Ok(None),
            Self::One(salt) => Ok(Some(salt)),
            Self::Each(salts, left) => {
                *left = left.checked_sub(1).ok_or_else(|| Fault::damaged("fewer salts than keys"))?;
                salts.text().map(Some)
            }
        }
    }
}

impl Names {
    pub(super) fn new(schema: u64) -> Self {
        Self {
            table: KeyTable::default(),
            encodings: Vec::new(),
            last: 0,
            learnt: 0,
            salted: None,
            layouts: Vec::new(),
            schema,
            evidence: Generations::ANY,
        }
    }

    pub(super) fn keys(&mut self, cursor: &mut Cursor<'_>, salts: &mut Salts<'_>) -> Read<Keys> {
        cursor.list(LEAST_KEY, |cursor| self.key(cursor, salts))
    }

    #[inline]
    fn key(&mut self, cursor: &mut Cursor<'_>, salts: &mut Salts<'_>) -> Read<KeyId> {
        let Some((at, hash)) = self.known(cursor) else { return self.unfamiliar(cursor, salts) };
        let Encoding { family, next, .. } = self.encodings[at];
        if !matches!(salts, Salts::Inside) {
            return self.salted(family, hash, salts);
        }
        let key = self.table.key_near(next, family, hash);
        self.encodings[at].next = KeyId(key.0.wrapping_add(1));
        Ok(key)
    }

    /// Passes a key if it is like one seen before: which encoding it has, and its hash.
    #[inline]
    fn known<'b>(&mut self, cursor: &mut Cursor<'b>) -> Option<(usize, &'b [u8])> {
        let bytes = cursor.rest();
        let at = match self.encodings.get(self.last) {
            Some(encoding) if encoding.fits(bytes) => self.last,
            _ => self.encodings.iter().position(|encoding| encoding.fits(bytes))?,
        };
        self.last = at;
        let Encoding { head, hash, tail, .. } = &self.encodings[at];
        cursor.pass(head.len() + hash + tail.len());
        Some((at, &bytes[head.len()..head.len() + hash]))
    }

    #[cold]
    fn unfamiliar(&mut self, cursor: &mut Cursor<'_>, salts: &mut Salts<'_>) -> Read<KeyId> {
        let (family, hash) = self.learn(cursor)?;
        self.salted(family, hash, salts)
    }

    /// The key of the tenant that stands beside it, if one does.
    fn salted(&mut self, family: FamilyId, hash: &[u8], salts: &mut Salts<'_>) -> Read<KeyId> {
        let Some(salt) = salts.next()? else { return Ok(self.table.key_of(family, hash)) };
        let (salted, next) = match self.salted {
            Some((plain, salted, next))
                if plain == family && self.table.family(salted).cache_salt == salt =>
            {
                (salted, next)
            }
            _ => {
                let KeyFamily { model_name, kv_rank, object_group_id, .. } = self.table.family(family);
                let model_name = &model_name.to_owned();
                let salted = KeyFamily { model_name, kv_rank, object_group_id, cache_salt: salt };
                (self.table.family_id(salted), KeyId(0))
            }
        };
        let key = self.table.key_near(next, salted, hash);
        self.salted = Some((family, salted, KeyId(key.0.wrapping_add(1))));
        Ok(key)
    }

    /// Looks into a key and keeps how it is encoded.
    fn learn<'b>(&mut self, cursor: &mut Cursor<'b>) -> Read<(FamilyId, &'b [u8])> {
        let start = cursor.rest();
        let key = object_key(cursor)?;
        if self.schema >= 2 && key.salt.is_none() {
            let reason = "trace_schema_version is 2, but a key has no \"cache_salt\"";
            return Err(if self.table.is_empty() { Fault::refused(reason) } else { Fault::damaged(reason) });
        }
        self.evidence.narrow(if key.group.is_some() { Generations::B_TO_G } else { Generations::A });
        let family = self.table.family_id(KeyFamily {
            model_name: key.model,
            kv_rank: key.rank,
            object_group_id: key.group.unwrap_or(0),
            cache_salt: key.salt.unwrap_or(""),
        });
        let whole = &start[..start.len() - cursor.rest().len()];
        let (head, rest) = whole.split_at(start.len() - key.before);
        let (hash, tail) = rest.split_at(key.hash.len());
        let (head, hash, tail, next) = (head.into(), hash.len(), tail.into(), KeyId(0));
        self.last = self.learnt % ENCODINGS;
        self.learnt += 1;
        match self.encodings.get_mut(self.last) {
            Some(oldest) => *oldest = Encoding { head, hash, tail, family, next },
            None => self.encodings.push(Encoding { head, hash, tail, family, next }),
        }
        Ok((family, key.hash))
    }

    pub(super) fn layout(&mut self, cursor: &mut Cursor<'_>) -> Read<LayoutId> {
        let start = cursor.rest();
        // A MessagePack value says itself where it ends: what begins with one is one.
        if let Some((bytes, id)) = self.layouts.iter().find(|(bytes, _)| start.starts_with(bytes)) {
            cursor.pass(bytes.len());
            return Ok(*id);
        }
        let id = self.table.layout_id(cursor.of_tag("MemoryLayoutDesc", layout)?);
        if self.layouts.len() < ENCODINGS {
            self.layouts.push((start[..start.len() - cursor.rest().len()].into(), id));
        }
        Ok(id)
    }
}

/// A key as it is encoded.
struct Encoded<'b> {
    hash: &'b [u8],
    /// Bytes of the frame from the hash on.
    before: usize,
    model: &'b str,
    rank: u64,
    group: Option<u32>,
    salt: Option<&'b str>,
}

fn object_key<'b>(cursor: &mut Cursor<'b>) -> Read<Encoded<'b>> {
    let (mut hash, mut model, mut rank, mut group, mut salt) = (None, None, None, None, None);
    cursor.of_tag("ObjectKey", |cursor| {
        cursor.fields(|name, cursor| match name {
            b"chunk_hash" => {
                let found = cursor.binary()?;
                hash = Some((found, cursor.rest().len() + found.len()));
                Ok(Field::Known)
            }
            b"model_name" => keep(&mut model, cursor.text()),
            b"kv_rank" => keep(&mut rank, cursor.integer()),
            b"object_group_id" => keep(&mut group, cursor.integer()),
            b"cache_salt" => keep(&mut salt, cursor.text()),
            _ => Ok(Field::Unknown),
        })
    })?;
    let (hash, before) = required("chunk_hash", hash)?;
    let (model, rank) = (required("model_name", model)?, required("kv_rank", rank)?);
    Ok(Encoded { hash, before, model, rank, group, salt })
}

fn layout(cursor: &mut Cursor<'_>) -> Read<Layout> {
    let (mut shapes, mut dtypes) = (None, None);
    cursor.fields(|name, cursor| match name {
        b"shapes" => keep(&mut shapes, cursor.short_list(|cursor| cursor.short_list(Cursor::integer::<u64>))),
        b"dtypes" => keep(&mut dtypes, cursor.short_list(|cursor| Ok(cursor.word("torch.dtype")?.into()))),
        _ => Ok(Field::Unknown),
    })?;
    let layout = Layout { shapes: required("shapes", shapes)?, dtypes: required("dtypes", dtypes)? };
    if layout.shapes.len() != layout.dtypes.len() {
        return Err(Fault::damaged("a layout has more shapes than types, or fewer"));
    }
    Ok(layout)
}
