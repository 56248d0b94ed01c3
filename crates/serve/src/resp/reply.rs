//! Replies as bytes. Values are not copied: a reply with one is a head, the value, and a line end.

use std::io::Write;

/// Which version a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// What every client begins with.
    #[default]
    Resp2,
    /// After `HELLO 3`.
    Resp3,
}

/// Part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply<'a> {
    /// It worked, in a word.
    Simple(&'a str),
    /// It did not: a code such as `ERR`, and why.
    Error(&'a str, &'a str),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(&'a [u8]),
    /// The head of so many bytes, which follow by themselves with [`END`] after them.
    BulkHead(u64),
    /// Nothing there.
    Nil,
    /// So many replies follow.
    Array(usize),
    /// So many pairs of replies follow.
    Map(usize),
    /// So many replies follow, in no order.
    Set(usize),
}

/// What ends a value.
pub const END: &[u8] = b"\r\n";

impl Reply<'_> {
    /// Appends it to what is sent.
    pub fn write(&self, protocol: Protocol, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = match self {
            Self::Simple(word) => write!(out, "+{word}\r\n"),
            Self::Error(code, why) => write!(out, "-{code} {}\r\n", why.replace(['\r', '\n'], " ")),
            Self::Integer(number) => write!(out, ":{number}\r\n"),
            Self::Bulk(bytes) => {
                Reply::BulkHead(bytes.len() as u64).write(protocol, out);
                out.write_all(bytes).and_then(|()| out.write_all(END))
            }
            Self::BulkHead(bytes) => write!(out, "${bytes}\r\n"),
            Self::Nil if protocol == Protocol::Resp3 => out.write_all(b"_\r\n"),
            Self::Nil => out.write_all(b"$-1\r\n"),
            Self::Set(count) if protocol == Protocol::Resp3 => write!(out, "~{count}\r\n"),
            Self::Array(count) | Self::Set(count) => write!(out, "*{count}\r\n"),
            Self::Map(pairs) if protocol == Protocol::Resp3 => write!(out, "%{pairs}\r\n"),
            Self::Map(pairs) => write!(out, "*{}\r\n", pairs * 2),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: &Reply<'_>, protocol: Protocol) -> String {
        let mut out = Vec::new();
        reply.write(protocol, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn replies_are_what_clients_read() {
        let cases = [
            (Reply::Simple("OK"), "+OK\r\n", "+OK\r\n"),
            (Reply::Error("ERR", "a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (Reply::Integer(-3), ":-3\r\n", ":-3\r\n"),
            (Reply::Bulk(b"ab"), "$2\r\nab\r\n", "$2\r\nab\r\n"),
            (Reply::BulkHead(7), "$7\r\n", "$7\r\n"),
            (Reply::Nil, "$-1\r\n", "_\r\n"),
            (Reply::Array(2), "*2\r\n", "*2\r\n"),
            (Reply::Map(2), "*4\r\n", "%2\r\n"),
            (Reply::Set(2), "*2\r\n", "~2\r\n"),
        ];
        for (reply, two, three) in cases {
            assert_eq!(
                (written(&reply, Protocol::Resp2), written(&reply, Protocol::Resp3)),
                (two.into(), three.into())
            );
        }
    }
}
