//! MessagePack as far as events need it, read by its specification.

use std::collections::BTreeMap;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Nil,
    Natural(u64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Map(BTreeMap<String, Value>),
}

impl Value {
    /// The only value in `bytes`.
    pub(crate) fn of(mut bytes: &[u8]) -> Self {
        let value = read(&mut bytes);
        assert!(bytes.is_empty(), "{} bytes behind the value", bytes.len());
        value
    }

    pub(crate) fn natural(&self) -> u64 {
        let Self::Natural(natural) = self else { panic!("{self:?} is no number") };
        *natural
    }

    pub(crate) fn text(&self) -> &str {
        let Self::Text(text) = self else { panic!("{self:?} is no text") };
        text
    }

    pub(crate) fn list(&self) -> &[Value] {
        let Self::List(list) = self else { panic!("{self:?} is no list") };
        list
    }

    /// A value of a map.
    pub(crate) fn field(&self, name: &str) -> &Value {
        let Self::Map(fields) = self else { panic!("{self:?} is no map") };
        &fields[name]
    }

    pub(crate) fn naturals(&self) -> Vec<u64> {
        self.list().iter().map(Self::natural).collect()
    }
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> &'b [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn number(bytes: &mut &[u8], length: usize) -> u64 {
    take(bytes, length).iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn read(bytes: &mut &[u8]) -> Value {
    match take(bytes, 1)[0] {
        small @ 0..=0x7f => Value::Natural(u64::from(small)),
        map @ 0x80..=0x8f => {
            let pair = |_| (read(bytes).text().to_owned(), read(bytes));
            Value::Map((0..map & 0xf).map(pair).collect())
        }
        list @ 0x90..=0x9f => Value::List((0..list & 0xf).map(|_| read(bytes)).collect()),
        text @ 0xa0..=0xbf => {
            Value::Text(String::from_utf8(take(bytes, usize::from(text & 0x1f)).to_vec()).unwrap())
        }
        0xc0 => Value::Nil,
        0xcb => Value::Float(f64::from_bits(number(bytes, 8))),
        natural @ 0xcc..=0xcf => Value::Natural(number(bytes, 1 << (natural - 0xcc))),
        list @ 0xdc..=0xdd => {
            let length = number(bytes, if list == 0xdc { 2 } else { 4 });
            Value::List((0..length).map(|_| read(bytes)).collect())
        }
        other => panic!("{other:#x} is not expected"),
    }
}
