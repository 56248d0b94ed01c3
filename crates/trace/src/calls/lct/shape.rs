//! The shapes values have in `.lct` files (spec/storage-trace.md 1.5): maps with names, tagged values, lists.

use super::cursor::{Cursor, Fault, Read};

const TAG: &[u8] = b"__t__";
const VALUE: &[u8] = b"v";
/// No model has more tensors in an object, or groups of layers.
const A_FEW: usize = 4096;

impl<'b> Cursor<'b> {
    /// Reads a map: `read` takes the value of a name and tells so, or leaves it to be passed.
    pub(super) fn fields(&mut self, mut read: impl FnMut(&'b [u8], &mut Self) -> Read<Field>) -> Read<()> {
        for _ in 0..self.map()? {
            let name = self.name()?;
            if let Field::Unknown = read(name, self)? {
                self.skip()?;
            }
        }
        Ok(())
    }

    /// Reads `{"__t__": tag, "v": value}`: `read` gets the tag and stands before the value.
    pub(super) fn tagged<T>(&mut self, read: impl FnOnce(&'b str, &mut Self) -> Read<T>) -> Read<T> {
        let mut ahead = *self;
        if ahead.map()? == 2 && ahead.name()? == TAG {
            let tag = ahead.text()?;
            if ahead.name()? == VALUE {
                *self = ahead;
                return read(tag, self);
            }
        }
        self.tagged_otherwise(read)
    }

    /// The same in any order and with more in it.
    #[cold]
    fn tagged_otherwise<T>(&mut self, read: impl FnOnce(&'b str, &mut Self) -> Read<T>) -> Read<T> {
        let (mut tag, mut value) = (None, None);
        self.fields(|name, cursor| match name {
            TAG => cursor.text().map(|text| {
                tag = Some(text);
                Field::Known
            }),
            VALUE => {
                value = Some(*cursor);
                Ok(Field::Unknown)
            }
            _ => Ok(Field::Unknown),
        })?;
        let tag = tag.ok_or_else(|| Fault::missing("__t__"))?;
        read(tag, &mut value.ok_or_else(|| Fault::missing("v"))?)
    }

    /// Reads a value that must have this tag.
    pub(super) fn of_tag<T>(&mut self, tag: &str, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.tagged(
            |found, cursor| {
                if found == tag { read(cursor) } else { Err(Fault::unknown("tag", found)) }
            },
        )
    }

    /// Reads a list, which may be tagged as a tuple, set or size, of items that take `least` bytes each:
    /// there cannot be more of them than that, and room is made for no more.
    pub(super) fn list<T>(
        &mut self,
        least: usize,
        mut read: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Box<[T]>> {
        let mut items = |cursor: &mut Self| {
            let length = cursor.array()?;
            if length > cursor.rest().len() / least {
                return Err(Fault::damaged("a list is longer than its frame"));
            }
            let mut items = Vec::with_capacity(length.min(cursor.rest().len() / least.max(size_of::<T>())));
            for _ in 0..length {
                items.push(read(cursor)?);
            }
            Ok(items.into_boxed_slice())
        };
        if !self.is_map() {
            return items(self);
        }
        self.tagged(|tag, cursor| match tag {
            "tuple" | "set" | "torch.Size" => items(cursor),
            _ => Err(Fault::unknown("tag", tag)),
        })
    }

    /// Reads a list of things of which there are a few: shapes, sides, windows.
    pub(super) fn short_list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Read<T>) -> Read<Box<[T]>> {
        let mut read_so_far = 0;
        self.list(1, |cursor| {
            read_so_far += 1;
            if read_so_far > A_FEW { Err(Fault::damaged("a list is too long")) } else { read(cursor) }
        })
    }

    /// Reads a text, which may be tagged.
    pub(super) fn word(&mut self, tag: &str) -> Read<&'b str> {
        if self.is_map() { self.of_tag(tag, Self::text) } else { self.text() }
    }

    pub(super) fn is_text(&self) -> bool {
        self.rest().first().is_some_and(|byte| matches!(byte, 0xa0..=0xbf | 0xd9..=0xdb))
    }

    pub(super) fn is_map(&self) -> bool {
        self.rest().first().is_some_and(|byte| matches!(byte, 0x80..=0x8f | 0xde | 0xdf))
    }
}

/// What became of a value of a map.
pub(super) enum Field {
    /// It was read.
    Known,
    /// It was left.
    Unknown,
}

/// Keeps what was read.
pub(super) fn keep<T>(place: &mut Option<T>, value: Read<T>) -> Read<Field> {
    *place = Some(value?);
    Ok(Field::Known)
}

/// The value of a field that must be there.
pub(super) fn required<T>(field: &str, value: Option<T>) -> Read<T> {
    value.ok_or_else(|| Fault::missing(field))
}
