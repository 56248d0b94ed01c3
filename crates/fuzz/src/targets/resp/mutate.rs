//! What clients send, and changes of it: blind ones, and ones that know lengths.

use rand::RngExt;
use wavetank_model::Draw;

use crate::blind::{LONGEST, blind};

/// Bytes that mean something.
const TELLING: &[u8] = b"*$\r\n0123456789-+:%_~=#,(\"' ax\0\xff";
/// Numbers that are the last of something.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "-1",
    "-2",
    "10",
    "11",
    "512",
    "16383",
    "16384",
    "65536",
    "536870912",
    "536870913",
    "2147483647",
    "2147483648",
    "9223372036854775807",
];

/// A command as clients send it.
fn command(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.len()).bytes());
        bytes.extend(*arg);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// One of every command, as clients send them and as people type them.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    const LINES: [&str; 12] = [
        "SET a 1|GET a|SET a 2 NX|SET a 3 XX GET|SET a 4 EX 10|SET a 5 PX 100000|STRLEN a|DEL a|GET a",
        "MSET a 1 b 2 c 3|MGET a b c d|EXISTS a a b z|UNLINK a b|DBSIZE|GETRANGE c 0 -1|GETRANGE c -5 2",
        "HELLO 3|GET z|HELLO 2 SETNAME me|CLIENT GETNAME|CLIENT ID|CLIENT INFO|RESET|PING|PING x|ECHO hello",
        "INFO|INFO stats|CONFIG GET *|CONFIG GET [ms]a?e save|COMMAND|COMMAND COUNT|COMMAND DOCS get",
        "COMMAND INFO get nothing|COMMAND LIST|CLIENT SETINFO lib-name x|CLIENT NO-EVICT on|SELECT 0",
        "AUTH x|AUTH default x|AUTH a b|HELLO 3 AUTH default x|FLUSHALL|FLUSHDB ASYNC|QUIT|PING",
        "set a 1 foo|get|nothing at all|SET a 1 EX x|GETRANGE a x y|MSET a|HELLO 9|SELECT 1|CLIENT what",
        "SET k VALUE|GET k|GETRANGE k 100 5000|MGET k k k|SET k VALUE GET|STRLEN k|EXISTS k|DEL k",
        "MSET a VALUE b VALUE|ECHO VALUE|GET VALUE|SET VALUE 1|PING VALUE|SET a 1 VALUE|VALUE a",
        "EXISTS a|SET a 1|EXISTS a a a|GET a|EXISTS a|DEL a|EXISTS a",
        "SET a |GET a|SET  x|GET |APPEND a b|TTL a|KEYS *",
        "PING|PING|PING|PING|PING|PING|PING|PING|PING|PING|PING|PING|PING",
    ];
    let value = "v".repeat(17_000);
    let spelled = |line: &str| {
        let commands = line.split('|').map(|text| {
            let args: Vec<Vec<u8>> =
                text.split(' ').map(|word| word.replace("VALUE", &value).into()).collect();
            command(&args.iter().map(Vec::as_slice).collect::<Vec<_>>())
        });
        commands.flatten().take(LONGEST).collect()
    };
    let typed = LINES.iter().map(|line| line.replace('|', "\r\n").replace("VALUE", "\"a b\"").into_bytes());
    LINES.iter().map(|line| spelled(line)).chain(typed).collect()
}

/// `bytes` changed a few times, with parts of `other`.
pub(super) fn changed(bytes: &[u8], other: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 << draw.random_range(0..5_u32) {
        if bytes.is_empty() {
            bytes.push(b'*');
        }
        match draw.random_range(0..3_u32) {
            0 => renumber(&mut bytes, draw),
            _ => blind(&mut bytes, other, TELLING, draw),
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// Another number in place of one.
fn renumber(bytes: &mut Vec<u8>, draw: &mut Draw) {
    let at = draw.random_range(0..bytes.len());
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|found| at + found) else { return };
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + length, NUMBERS[draw.random_range(0..NUMBERS.len())].bytes());
}
