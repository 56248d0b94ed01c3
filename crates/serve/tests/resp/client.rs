//! A client that shows replies as they came.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// A connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    inbox: Vec<u8>,
}

/// A command as clients send it.
pub(crate) fn command<T: AsRef<[u8]>>(args: &[T]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.as_ref().len()).bytes());
        bytes.extend(arg.as_ref());
        bytes.extend(b"\r\n");
    }
    bytes
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        // A server that does not answer fails the test instead of stopping it.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream, inbox: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// A command's reply, as it came.
    pub(crate) fn ask<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Vec<u8> {
        self.send(&command(args));
        self.reply().unwrap()
    }

    /// The same as text.
    pub(crate) fn say(&mut self, line: &str) -> String {
        let args: Vec<&str> = line.split(' ').collect();
        String::from_utf8_lossy(&self.ask(&args)).into_owned()
    }

    /// The next reply; an error at the end.
    pub(crate) fn reply(&mut self) -> io::Result<Vec<u8>> {
        let end = self.skip(0)?;
        let rest = self.inbox.split_off(end);
        Ok(std::mem::replace(&mut self.inbox, rest))
    }

    /// No more commands; replies still come.
    pub(crate) fn finish(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// All that still comes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.fill().is_ok() {}
        std::mem::take(&mut self.inbox)
    }

    /// Where the reply at `at` ends.
    fn skip(&mut self, at: usize) -> io::Result<usize> {
        let end = self.line(at)?;
        let number = || std::str::from_utf8(&self.inbox[at + 1..end - 2]).unwrap().parse::<i64>();
        let (count, is_bulk) = match self.inbox[at] {
            b'$' | b'=' => (number().unwrap(), true),
            b'*' | b'~' => (number().unwrap().max(0), false),
            b'%' => (number().unwrap() * 2, false),
            _ => (0, false),
        };
        if is_bulk {
            let end = if count < 0 { end } else { end + count as usize + 2 };
            while self.inbox.len() < end {
                self.fill()?;
            }
            return Ok(end);
        }
        (0..count).try_fold(end, |at, _| self.skip(at))
    }

    fn line(&mut self, at: usize) -> io::Result<usize> {
        loop {
            let rest = self.inbox.get(at..).unwrap_or_default();
            if let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
                return Ok(at + end + 2);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut part = [0; 32 << 10];
        let count = self.stream.read(&mut part)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.inbox.extend(&part[..count]);
        Ok(())
    }
}
