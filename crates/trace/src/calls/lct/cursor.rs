//! MessagePack read where it lies: a borrowed position in a frame. No value is built that is not asked for.

use std::borrow::Cow;

use rmp::Marker;

/// Why a record cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) reason: Cow<'static, str>,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The frame is no record: skipped and counted.
    Damaged,
    /// A record of something not known: skipped and counted.
    Unknown,
    /// The file is not what its header says.
    Refused,
}

pub(super) type Read<T> = std::result::Result<T, Fault>;

impl Fault {
    #[cold]
    pub(super) fn damaged(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: FaultKind::Damaged, reason: reason.into() }
    }

    #[cold]
    pub(super) fn unknown(what: &str, name: &str) -> Self {
        Self { kind: FaultKind::Unknown, reason: format!("unknown {what} \"{}\"", brief(name)).into() }
    }

    #[cold]
    pub(super) fn refused(reason: &'static str) -> Self {
        Self { kind: FaultKind::Refused, reason: reason.into() }
    }

    /// A field that must be there is not.
    #[cold]
    pub(super) fn missing(field: &str) -> Self {
        Self::damaged(format!("\"{field}\" is missing"))
    }
}

/// Names in messages are cut: they come from the file.
pub(super) fn brief(name: &str) -> Cow<'_, str> {
    const LONGEST: usize = 80;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]).into(),
        None => name.into(),
    }
}

/// A position in a frame.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'b> {
    rest: &'b [u8],
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What is not read yet.
    pub(super) fn rest(&self) -> &'b [u8] {
        self.rest
    }

    /// Passes `length` bytes that are known to be there.
    pub(super) fn pass(&mut self, length: usize) {
        self.rest = &self.rest[length..];
    }

    pub(super) fn map(&mut self) -> Read<usize> {
        match self.marker()? {
            Marker::FixMap(length) => self.counted(length.into()),
            Marker::Map16 => self.number::<2>().and_then(|length| self.counted(length)),
            Marker::Map32 => self.number::<4>().and_then(|length| self.counted(length)),
            _ => Err(Fault::damaged("no map where one belongs")),
        }
    }

    pub(super) fn array(&mut self) -> Read<usize> {
        match self.marker()? {
            Marker::FixArray(length) => self.counted(length.into()),
            Marker::Array16 => self.number::<2>().and_then(|length| self.counted(length)),
            Marker::Array32 => self.number::<4>().and_then(|length| self.counted(length)),
            _ => Err(Fault::damaged("no list where one belongs")),
        }
    }

    /// The bytes of a string, as names are compared.
    pub(super) fn name(&mut self) -> Read<&'b [u8]> {
        let length = match self.marker()? {
            Marker::FixStr(length) => length.into(),
            Marker::Str8 => self.number::<1>()?,
            Marker::Str16 => self.number::<2>()?,
            Marker::Str32 => self.number::<4>()?,
            _ => return Err(Fault::damaged("no text where one belongs")),
        };
        self.bytes(length)
    }

    pub(super) fn text(&mut self) -> Read<&'b str> {
        std::str::from_utf8(self.name()?).map_err(|_| Fault::damaged("text is not UTF-8"))
    }

    pub(super) fn binary(&mut self) -> Read<&'b [u8]> {
        let length = match self.marker()? {
            Marker::Bin8 => self.number::<1>()?,
            Marker::Bin16 => self.number::<2>()?,
            Marker::Bin32 => self.number::<4>()?,
            _ => return Err(Fault::damaged("no bytes where they belong")),
        };
        self.bytes(length)
    }

    pub(super) fn boolean(&mut self) -> Read<bool> {
        match self.marker()? {
            Marker::True => Ok(true),
            Marker::False => Ok(false),
            _ => Err(Fault::damaged("no boolean where one belongs")),
        }
    }

    /// A whole number that `T` can hold.
    pub(super) fn integer<T: TryFrom<i128>>(&mut self) -> Read<T> {
        let value = match self.marker()? {
            Marker::FixPos(value) => value.into(),
            Marker::FixNeg(value) => value.into(),
            Marker::U8 => u8::from_be_bytes(self.taken()?).into(),
            Marker::U16 => u16::from_be_bytes(self.taken()?).into(),
            Marker::U32 => u32::from_be_bytes(self.taken()?).into(),
            Marker::U64 => u64::from_be_bytes(self.taken()?).into(),
            Marker::I8 => i8::from_be_bytes(self.taken()?).into(),
            Marker::I16 => i16::from_be_bytes(self.taken()?).into(),
            Marker::I32 => i32::from_be_bytes(self.taken()?).into(),
            Marker::I64 => i64::from_be_bytes(self.taken()?).into(),
            _ => return Err(Fault::damaged("no whole number where one belongs")),
        };
        T::try_from(value).map_err(|_| Fault::damaged(format!("{value} is out of range")))
    }

    /// A number; whole ones are taken too.
    pub(super) fn float(&mut self) -> Read<f64> {
        let value = match self.rest.first().map(|&byte| Marker::from_u8(byte)) {
            Some(Marker::F64) => {
                self.pass(1);
                f64::from_be_bytes(self.taken()?)
            }
            Some(Marker::F32) => {
                self.pass(1);
                f32::from_be_bytes(self.taken()?).into()
            }
            _ => self.integer::<i128>()? as f64,
        };
        if value.is_finite() { Ok(value) } else { Err(Fault::damaged("a number is not finite")) }
    }

    /// Passes one value, however deep it is.
    pub(super) fn skip(&mut self) -> Read<()> {
        let mut pending = 1usize;
        while pending > 0 {
            pending -= 1;
            let (bytes, values) = self.extent()?;
            self.bytes(bytes)?;
            pending += values;
            // Every value takes a byte at least: more of them than bytes are a wrong count.
            if pending > self.rest.len() {
                return Err(cut());
            }
        }
        Ok(())
    }

    /// Passes a marker and its length; tells how many bytes and how many values follow.
    fn extent(&mut self) -> Read<(usize, usize)> {
        Ok(match self.marker()? {
            Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::True | Marker::False => (0, 0),
            Marker::U8 | Marker::I8 => (1, 0),
            Marker::U16 | Marker::I16 | Marker::FixExt1 => (2, 0),
            Marker::FixExt2 => (3, 0),
            Marker::U32 | Marker::I32 | Marker::F32 => (4, 0),
            Marker::FixExt4 => (5, 0),
            Marker::U64 | Marker::I64 | Marker::F64 => (8, 0),
            Marker::FixExt8 => (9, 0),
            Marker::FixExt16 => (17, 0),
            Marker::FixStr(length) => (length.into(), 0),
            Marker::Str8 | Marker::Bin8 => (self.number::<1>()?, 0),
            Marker::Str16 | Marker::Bin16 => (self.number::<2>()?, 0),
            Marker::Str32 | Marker::Bin32 => (self.number::<4>()?, 0),
            Marker::Ext8 => (self.number::<1>()? + 1, 0),
            Marker::Ext16 => (self.number::<2>()? + 1, 0),
            Marker::Ext32 => (self.number::<4>()? + 1, 0),
            Marker::FixArray(length) => (0, length.into()),
            Marker::Array16 => (0, self.number::<2>()?),
            Marker::Array32 => (0, self.number::<4>()?),
            Marker::FixMap(length) => (0, 2 * usize::from(length)),
            Marker::Map16 => (0, 2 * self.number::<2>()?),
            Marker::Map32 => (0, 2 * self.number::<4>()?),
            Marker::Reserved => return Err(Fault::damaged("not MessagePack")),
        })
    }

    fn marker(&mut self) -> Read<Marker> {
        let (&byte, rest) = self.rest.split_first().ok_or_else(cut)?;
        self.rest = rest;
        Ok(Marker::from_u8(byte))
    }

    fn taken<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or_else(cut)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn number<const N: usize>(&mut self) -> Read<usize> {
        Ok(self.taken::<N>()?.iter().fold(0, |value, &byte| value << 8 | usize::from(byte)))
    }

    fn bytes(&mut self, length: usize) -> Read<&'b [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(cut)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A count of values that can be there.
    fn counted(&self, length: usize) -> Read<usize> {
        if length <= self.rest.len() { Ok(length) } else { Err(cut()) }
    }
}

#[cold]
fn cut() -> Fault {
    Fault::damaged("a value ends after its frame")
}
