//! Commands come out as they went in, however the bytes are cut.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Bytes of a command as clients send it.
fn sent(args: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.len()).into_bytes());
        bytes.extend(arg);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Reads `bytes` in parts of the sizes given, as a connection does.
fn commands(bytes: &[u8], parts: &[usize], limits: Limits) -> Result<Vec<Vec<Vec<u8>>>, Fault> {
    let mut parser = Parser::new(limits);
    let (mut inbox, mut found, mut large) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rest, mut parts) = (bytes, parts.iter().cycle());
    loop {
        match parser.step(&mut inbox)? {
            Step::More => {
                if rest.is_empty() {
                    return Ok(found);
                }
                let (part, after) = rest.split_at((*parts.next().unwrap_or(&1)).clamp(1, rest.len()));
                inbox.extend(part);
                rest = after;
            }
            Step::Announced(length) => {
                let here = (inbox.len() - parser.position()).min(length as usize);
                let mut body: Vec<u8> = inbox.drain(parser.position()..parser.position() + here).collect();
                let missing = (length as usize - here).min(rest.len());
                body.extend(&rest[..missing]);
                rest = &rest[missing..];
                large.push(body);
                parser.elsewhere();
            }
            Step::Command => {
                let mut large = std::mem::take(&mut large).into_iter();
                let arg = |arg: &Arg| match arg {
                    Arg::Here(range) => inbox[range.clone()].to_vec(),
                    Arg::Elsewhere(_) => large.next().unwrap(),
                };
                found.push(parser.args().iter().map(arg).collect());
                inbox.drain(..parser.take());
            }
        }
    }
}

proptest! {
    /// Broken by: a state that forgets where it was, an argument cut short, bytes of the next command eaten.
    #[test]
    fn commands_survive_any_cut(
        all in vec(vec(vec(any::<u8>(), 0..40), 1..6), 1..8),
        parts in vec(1usize..50, 1..10),
        announced in 1u64..50,
    ) {
        let bytes: Vec<u8> = all.iter().flat_map(|args| sent(args)).collect();
        let limits = Limits { announced_bytes: announced, ..Limits::default() };
        prop_assert_eq!(commands(&bytes, &parts, limits).unwrap(), all);
    }

    /// Broken by: a panic, or a loop without end.
    #[test]
    fn anything_is_a_command_or_a_fault(bytes in prop::collection::vec(prop_oneof![
        any::<u8>(), prop::sample::select(b"*$\r\n0123456789-\"' ".to_vec())
    ], 0..200)) {
        let _ = commands(&bytes, &[7], Limits { announced_bytes: 20, ..Limits::default() });
    }
}

#[test]
fn words_can_be_typed() {
    let read = |text: &[u8]| commands(text, &[3], Limits::default());
    assert_eq!(read(b"PING\r\n").unwrap(), [[b"PING".to_vec()]]);
    assert_eq!(
        read(b"set  a \"b c\" ''\n\r\nget a\r\n").unwrap(),
        [vec![b"set".to_vec(), b"a".to_vec(), b"b c".to_vec(), vec![]], vec![b"get".to_vec(), b"a".to_vec()]]
    );
    assert_eq!(read(b"set a \"b\r\n"), Err(Fault::Quotes));
    assert_eq!(read(b"*0\r\n*-1\r\n").unwrap(), Vec::<Vec<Vec<u8>>>::new());
}

/// A length is believed only within limits: nothing is allocated for it.
#[test]
fn what_is_too_much_is_refused_at_once() {
    let refused = |text: &[u8]| commands(text, &[1], Limits::default()).unwrap_err();
    assert_eq!(refused(b"*2147483648\r\n"), Fault::Count);
    assert_eq!(refused(b"*x\r\n"), Fault::Count);
    assert_eq!(refused(b"*1\r\n$2147483648\r\n"), Fault::Length);
    assert_eq!(refused(b"*1\r\n$-1\r\n"), Fault::Length);
    assert_eq!(refused(b"*1\r\n$+1\r\n"), Fault::Length);
    assert_eq!(refused(b"*1\r\n:1\r\n"), Fault::Expected(b':'));
    assert_eq!(refused(b"*1\r\n$1\r\nabc"), Fault::Unended);
    assert_eq!(refused(&[b'*'; 100]), Fault::Length);
    assert_eq!(commands(&vec![b'a'; 64 << 10], &[1000], Limits::default()), Err(Fault::Line));
    assert_eq!(
        refused(b"*1\r\n:1\r\n").to_string(),
        "Protocol error: expected '$', got ':'",
        "as other servers say it"
    );
}
