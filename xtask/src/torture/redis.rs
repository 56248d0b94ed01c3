//! The least of a Redis client: commands out, replies in, several at a time if wanted.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What takes longer hangs.
const LIMIT: Duration = Duration::from_secs(30);

/// A connection.
pub(super) struct Redis(BufReader<TcpStream>);

impl Redis {
    pub(super) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// The reply to one command: its bytes, or nothing for nil. A refusal is an error of kind `Other`; a
    /// server that is gone is one of another kind.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> io::Result<Option<Vec<u8>>> {
        self.send(&command(words))?;
        self.reply()
    }

    /// Sends what was put together from [`command`]s.
    pub(super) fn send(&mut self, commands: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(commands)
    }

    pub(super) fn reply(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        match line.split_at_checked(1).ok_or(io::ErrorKind::InvalidData)? {
            ("$", "-1") | ("_", "") => Ok(None),
            ("$", length) => {
                let length: usize = length.parse().map_err(|_| io::ErrorKind::InvalidData)?;
                let mut bytes = vec![0; length + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Ok(Some(bytes))
            }
            ("+" | ":", rest) => Ok(Some(rest.as_bytes().to_vec())),
            _ => Err(io::Error::other(line.to_owned())),
        }
    }
}

/// A command as it travels.
pub(super) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend_from_slice(word);
        bytes.extend(b"\r\n");
    }
    bytes
}
