//! What an entry costs a server in memory, besides the bytes of its key and value.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use super::server::{Kind, Server};

/// Entries written.
pub(super) const COUNT: u64 = 200_000;
/// Values of a size that Redis' allocator has a class for, and of one just above (a page, as KV chunks are
/// multiples of).
const SIZES: [usize; 2] = [4000, 4096];
/// Commands sent before their answers are read.
const BATCH: u64 = 64;

const HEAD: &str = "\
| entries | value bytes | key bytes | server | bytes besides, each |
|---:|---:|---:|---|---:|
";

/// Both servers at every size, each fresh.
pub(super) fn measure() -> Result<String, String> {
    let mut table = HEAD.to_owned();
    for size in SIZES {
        for kind in [Kind::Redis, Kind::Ours] {
            let server = Server::start(kind)?;
            // What the first connection and the first entries bring with them is no entry's cost.
            fill(&server, 0, BATCH, size)?;
            let before = server.resident_bytes()?;
            fill(&server, BATCH, BATCH + COUNT, size)?;
            let grown = (server.resident_bytes()? - before) as f64;
            let besides = grown / COUNT as f64 - (size + key(0).len()) as f64;
            table += &format!("| {COUNT} | {size} | {} | {} | {besides:.0} |\n", key(0).len(), kind.name());
        }
    }
    Ok(table)
}

/// As LMCache names objects.
fn key(number: u64) -> String {
    format!("meta-llama/Llama-3.1-8B@01000100@0@{number:064x}")
}

fn fill(server: &Server, from: u64, to: u64, size: usize) -> Result<(), String> {
    let told = |e: std::io::Error| format!("filling: {e}");
    let mut to_server = TcpStream::connect(("127.0.0.1", server.port())).map_err(told)?;
    let mut answers = BufReader::new(to_server.try_clone().map_err(told)?);
    let (value, mut line) = (vec![b'v'; size], String::new());
    for first in (from..to).step_by(BATCH as usize) {
        let mut batch = Vec::new();
        let last = to.min(first + BATCH);
        for number in first..last {
            let key = key(number);
            let head = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${size}\r\n", key.len());
            batch.extend_from_slice(head.as_bytes());
            batch.extend_from_slice(&value);
            batch.extend_from_slice(b"\r\n");
        }
        to_server.write_all(&batch).map_err(told)?;
        for _ in first..last {
            line.clear();
            answers.read_line(&mut line).map_err(told)?;
            if line != "+OK\r\n" {
                return Err(format!("filling: the server said {line}"));
            }
        }
    }
    Ok(())
}
